//! Tables of cases: runs all of them and reports all failures together.

use std::fmt::Display;

use anyhow::{Result, ensure};

/// The outcome of a table of cases.
#[derive(Default)]
pub struct Cases {
    tried: usize,
    failures: Vec<String>,
}

impl Cases {
    pub fn check(&mut self, name: impl Display, outcome: Result<()>) {
        self.tried += 1;
        if let Err(error) = outcome {
            self.failures.push(format!("{name}: {error:#}"));
        }
    }

    pub fn finish(self) -> Result<()> {
        let Self { tried, failures } = self;
        ensure!(tried > 0, "no case was tried");
        let list = failures.join("\n  - ");
        ensure!(failures.is_empty(), "{} of {tried} cases failed:\n  - {list}", failures.len());
        Ok(())
    }
}
