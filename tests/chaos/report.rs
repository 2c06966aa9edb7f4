//! The report of a run.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use serde::Serialize;

use crate::faults::Fault;

/// Figures and violations of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    name: &'static str,
    seed: u64,
    pub struck: Vec<InjectedFault>,
    skipped: BTreeMap<String, &'static str>,
    pub requests: u64,
    pub accepted: u64,
    pub tickets: u64,
    pub deleted: u64,
    pub exports: u64,
    pub exports_failed: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub wrong: u64,
    pub dead_letters: u64,
    pub settled_after: Duration,
    pub failures: BTreeMap<String, u64>,
    pub violations: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct InjectedFault {
    pub fault: Fault,
    pub lasted: Duration,
    /// From the end of the fault until everything was ready and imports were accepted again.
    pub recovery: Duration,
}

impl Report {
    pub fn new(name: &'static str, seed: u64) -> Self {
        Self { name, seed, ..Self::default() }
    }

    pub fn skip(&mut self, fault: Fault, reason: &'static str) {
        self.skipped.insert(format!("{fault:?}"), reason);
    }

    pub fn record_lost(&mut self, what: impl Into<String>) {
        self.lost += 1;
        self.violations.push(format!("lost: {}", what.into()));
    }

    pub fn record_duplicate(&mut self, what: impl Into<String>) {
        self.duplicated += 1;
        self.violations.push(format!("duplicated: {}", what.into()));
    }

    pub fn record_wrong(&mut self, what: impl Into<String>) {
        self.wrong += 1;
        self.violations.push(format!("wrong: {}", what.into()));
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slowest = self.struck.iter().max_by_key(|injected| injected.recovery);
        writeln!(f, "chaos {} seed {}: {} faults", self.name, self.seed, self.struck.len())?;
        for (fault, reason) in &self.skipped {
            writeln!(f, "  skipped {fault}: {reason}")?;
        }
        writeln!(
            f,
            "  requests {}  202 {}  tickets {} (and {} deleted)  exports {} (failed {})",
            self.requests, self.accepted, self.tickets, self.deleted, self.exports, self.exports_failed
        )?;
        writeln!(
            f,
            "  lost {}  duplicated {}  wrong {}  dead letters {}",
            self.lost, self.duplicated, self.wrong, self.dead_letters
        )?;
        writeln!(f, "  settled after {:.1} s", self.settled_after.as_secs_f64())?;
        if let Some(slowest) = slowest {
            let seconds = slowest.recovery.as_secs_f64();
            writeln!(f, "  slowest recovery {seconds:.1} s, after {:?}", slowest.fault)?;
        }
        writeln!(f, "  failures by cause:")?;
        for (cause, count) in &self.failures {
            writeln!(f, "    {count:6}  {cause}")?;
        }
        for violation in self.violations.iter().take(30) {
            writeln!(f, "  VIOLATION {violation}")?;
        }
        Ok(())
    }
}
