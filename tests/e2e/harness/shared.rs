//! Scenarios that need only a separate organization run side by side on one stack.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use assay_platform::runtime::LockExt as _;

use super::private_stack::PrivateStack;
use super::stack::{Kind, Stack};
use super::{Cases, block_on};

/// How many scenarios run at a time: most of them wait most of the time.
const AT_ONCE: usize = 8;

/// Name and function of a scenario.
pub type Scenario = (&'static str, fn(&Stack) -> Result<()>);

/// Runs all scenarios and reports the failed ones by name. `E2E_SCENARIOS` selects by a part of the name, as in
/// `E2E_SCENARIOS=agents cargo nextest run -p assay shared`.
#[allow(clippy::disallowed_methods, reason = "a setting of the test, not of the product")]
pub fn run_shared(kind: Kind, scenarios: &[Scenario]) -> Result<()> {
    let wanted = std::env::var("E2E_SCENARIOS").unwrap_or_default();
    let scenarios: VecDeque<Scenario> =
        scenarios.iter().copied().filter(|(name, _)| name.contains(&wanted)).collect();
    ensure!(!scenarios.is_empty(), "no scenario is named like {wanted}");
    let mut stack = PrivateStack::prepare(kind, "shared")?;
    let started = block_on(stack.start()).context("the stack does not start");
    let outcome = started.and_then(|()| run_all(&stack, scenarios));
    if outcome.is_err() {
        stack.show_logs();
    }
    outcome
}

fn run_all(stack: &PrivateStack, scenarios: VecDeque<Scenario>) -> Result<()> {
    let (queue, cases) = (Mutex::new(scenarios), Mutex::new(Cases::default()));
    let next = || queue.locked().pop_front();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, scenario)) = next() {
                    let began = Instant::now();
                    // In a separate thread, so that a panic fails only this scenario.
                    let outcome =
                        thread::scope(|scope| scope.spawn(|| scenario(&block_on(stack.share(name))?)).join());
                    let outcome = outcome.unwrap_or_else(|_| Err(anyhow!("it panicked")));
                    let word = if outcome.is_ok() { "passed" } else { "FAILED" };
                    let seconds = began.elapsed().as_secs_f32();
                    // Best effort.
                    let _ = writeln!(std::io::stderr(), "{word} {name} in {seconds:.1} s");
                    cases.locked().check(name, outcome);
                }
            });
        }
    });
    cases.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
}
