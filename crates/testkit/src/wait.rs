//! Polls a condition with a deadline: the only kind of waiting in tests and in the stack.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Calls `attempt` until it returns a value.
///
/// # Errors
/// When `attempt` fails, or when `limit` has passed; the message is then "timed out … waiting for `what`".
pub fn wait_for<T>(what: &str, limit: Duration, mut attempt: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            bail!("timed out after {} s waiting for {what}", limit.as_secs_f32());
        }
        thread::sleep(POLL_INTERVAL);
    }
}
