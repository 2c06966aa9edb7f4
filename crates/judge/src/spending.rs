//! What a day's judgements cost, and the cap on it. Kept in memory: it counts what this process has spent since its start
//! or midnight UTC.

use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_contracts::time::Timestamp;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// The day's account.
#[derive(Debug)]
pub(crate) struct Spending {
    cap: Option<f64>,
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    /// Days since 1970-01-01.
    day: i64,
    /// US dollars, those under way with their estimate.
    spent: f64,
    /// Whether it was told that the cap is reached.
    told: bool,
}

/// The cap does not allow another request today.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the day's spending cap is reached: {spent:.4} of {cap} US dollars are spent")]
pub(crate) struct CapReached {
    pub spent: f64,
    pub cap: f64,
    /// Whether this is the first time today.
    pub first: bool,
}

/// Money set aside for a request. What is neither settled nor given back stays spent: an answer that got lost is billed.
#[derive(Debug)]
#[must_use]
pub(crate) struct Reservation<'s> {
    spending: &'s Spending,
    day: i64,
    amount: f64,
}

impl Spending {
    /// Nothing spent yet. `cap` in US dollars a day.
    pub(crate) fn new(cap: Option<f64>) -> Self {
        Self { cap, account: Mutex::default() }
    }

    /// Sets `amount` US dollars aside.
    pub(crate) fn reserve(&self, amount: f64, now: Timestamp) -> Result<Reservation<'_>, CapReached> {
        let day = now.as_millis().div_euclid(MILLIS_PER_DAY);
        let mut account = self.lock();
        // A clock that was set back does not give the day another budget.
        if day > account.day {
            *account = Account { day, spent: 0.0, told: false };
        }
        if let Some(cap) = self.cap
            && account.spent + amount > cap
        {
            let first = !std::mem::replace(&mut account.told, true);
            return Err(CapReached { spent: account.spent, cap, first });
        }
        account.spent += amount;
        Ok(Reservation { spending: self, day: account.day, amount })
    }

    /// Every change is a single step that does not panic.
    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// What it was in the end; 0 gives everything back.
    pub(crate) fn settle(self, amount: f64) -> f64 {
        let mut account = self.spending.lock();
        if account.day == self.day {
            account.spent = (account.spent + amount - self.amount).max(0.0);
        }
        amount
    }

    /// It is not known what it was: the estimate stays.
    pub(crate) fn keep(self) -> f64 {
        self.amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Timestamp = Timestamp::saturating_from_millis(1_763_600_000_000);

    #[test]
    fn money_under_way_counts_until_it_is_settled() {
        let spending = Spending::new(Some(1.0));
        let first = spending.reserve(0.6, DAY).unwrap();
        assert!(spending.reserve(0.6, DAY).is_err());
        assert!((first.settle(0.1) - 0.1).abs() < 1e-9);
        let second = spending.reserve(0.6, DAY).unwrap();
        drop(second);
        // An answer that got lost is billed.
        assert!(spending.reserve(0.6, DAY).is_err());
    }

    #[test]
    fn reaching_the_cap_is_told_once_a_day_and_midnight_ends_it() {
        let spending = Spending::new(Some(1.0));
        spending.reserve(1.0, DAY).unwrap().keep();
        let told: Vec<bool> = (0..3).map(|_| spending.reserve(0.1, DAY).unwrap_err().first).collect();
        assert_eq!(told, [true, false, false]);
        let tomorrow = DAY.plus_millis(MILLIS_PER_DAY);
        spending.reserve(1.0, tomorrow).unwrap().keep();
        assert!(spending.reserve(0.1, tomorrow).unwrap_err().first);
        // Yesterday by a clock that was set back is still today.
        assert!(spending.reserve(0.1, DAY).is_err());
    }

    #[test]
    fn without_a_cap_nothing_is_refused() {
        let spending = Spending::new(None);
        for _ in 0..3 {
            spending.reserve(1e9, DAY).unwrap().keep();
        }
    }
}
