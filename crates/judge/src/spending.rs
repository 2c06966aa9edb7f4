//! The daily spending cap. Counted in memory: the spending of this process since its start or midnight UTC.

use std::sync::Mutex;

use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_platform::runtime::LockExt as _;

#[derive(Debug)]
pub(crate) struct Spending {
    cap: Option<f64>,
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    /// Days since 1970-01-01.
    day: i64,
    /// US dollars; requests in flight count with their estimate.
    spent: f64,
    /// Whether reaching the cap was reported.
    is_reported: bool,
}

/// The daily cap allows no further request.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the day's spending cap is reached: {spent:.4} of {cap} US dollars are spent")]
pub(crate) struct CapReached {
    pub spent: f64,
    pub cap: f64,
    /// Whether this is the first refusal of the day.
    pub is_first: bool,
}

/// Money reserved for a request. A dropped reservation stays spent: the endpoint may bill a lost answer.
#[derive(Debug)]
#[must_use]
pub(crate) struct Reservation<'s> {
    spending: &'s Spending,
    day: i64,
    amount: f64,
}

impl Spending {
    /// `cap` in US dollars a day.
    pub(crate) fn new(cap: Option<f64>) -> Self {
        Self { cap, account: Mutex::default() }
    }

    /// Reserves `amount` US dollars.
    pub(crate) fn reserve(&self, amount: f64, now: Timestamp) -> Result<Reservation<'_>, CapReached> {
        let day = now.as_millis().div_euclid(DAY_MILLIS);
        let mut account = self.account.locked();
        // A clock that is set back does not grant another budget.
        if day > account.day {
            *account = Account { day, spent: 0.0, is_reported: false };
        }
        if let Some(cap) = self.cap
            && account.spent + amount > cap
        {
            let is_first = !std::mem::replace(&mut account.is_reported, true);
            return Err(CapReached { spent: account.spent, cap, is_first });
        }
        account.spent += amount;
        Ok(Reservation { spending: self, day: account.day, amount })
    }
}

impl Reservation<'_> {
    /// Replaces the estimate by the actual cost; 0 refunds it.
    pub(crate) fn charge(self, amount: f64) -> f64 {
        let mut account = self.spending.account.locked();
        if account.day == self.day {
            account.spent = (account.spent + amount - self.amount).max(0.0);
        }
        amount
    }

    /// Keeps the estimate: the actual cost is unknown.
    pub(crate) fn charge_estimate(self) -> f64 {
        self.amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Timestamp = Timestamp::saturating_from_millis(1_763_600_000_000);

    #[test]
    fn reservation_counts_until_charged() {
        let spending = Spending::new(Some(1.0));
        let first = spending.reserve(0.6, TODAY).unwrap();
        assert!(spending.reserve(0.6, TODAY).is_err());
        assert!((first.charge(0.1) - 0.1).abs() < 1e-9);
        let second = spending.reserve(0.6, TODAY).unwrap();
        drop(second);
        // The endpoint may bill a lost answer.
        assert!(spending.reserve(0.6, TODAY).is_err());
    }

    #[test]
    fn cap_is_reported_once_a_day_and_reset_at_midnight() {
        let spending = Spending::new(Some(1.0));
        spending.reserve(1.0, TODAY).unwrap().charge_estimate();
        let reported: Vec<bool> =
            (0..3).map(|_| spending.reserve(0.1, TODAY).unwrap_err().is_first).collect();
        assert_eq!(reported, [true, false, false]);
        let tomorrow = TODAY.plus_millis(DAY_MILLIS);
        spending.reserve(1.0, tomorrow).unwrap().charge_estimate();
        assert!(spending.reserve(0.1, tomorrow).unwrap_err().is_first);
        // A clock that is set back to yesterday still counts as today.
        assert!(spending.reserve(0.1, TODAY).is_err());
    }

    #[test]
    fn without_a_cap_nothing_is_refused() {
        let spending = Spending::new(None);
        for _ in 0..3 {
            spending.reserve(1e9, TODAY).unwrap().charge_estimate();
        }
    }
}
