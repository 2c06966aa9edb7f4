//! Starts a stack, sends requests to it, and reports failures.

mod api;
mod cases;
mod commands;
mod conversation;
mod operations;
mod private_stack;
mod raw;
mod receiver;
mod reply;
mod session;
mod shared;
mod stack;
mod table;

use std::time::Duration;

use anyhow::Result;

pub use self::api::{Api, expect_members, text};
pub use self::cases::Cases;
pub use self::commands::{
    exits_with, exits_with_summary, import_command, import_file, progress, read_lines, run_client,
    until_progress, write_lines,
};
pub use self::conversation::{Edit, by_ai, conversation, edited, message, messages, resolved_by, set, unset};
pub use self::operations::{Operation, SCOPES, documented_operations, routed_operations, serving_crates};
pub use self::private_stack::PrivateStack;
pub use self::raw::RawConnection;
pub use self::receiver::{Message, Receiver};
pub use self::reply::Reply;
pub use self::session::Session;
pub use self::shared::{Scenario, run_shared};
pub use self::stack::{Kind, Stack};
pub use self::table::Table;

/// Time limit of every wait.
pub const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Runs a scenario on a private stack. The logs are kept, and shown on failure.
pub fn run_private(
    kind: Kind,
    name: &str,
    scenario: impl AsyncFnOnce(&mut PrivateStack) -> Result<()>,
) -> Result<()> {
    let mut stack = PrivateStack::prepare(kind, name)?;
    let outcome = block_on(scenario(&mut stack));
    if outcome.is_err() {
        stack.show_logs();
    }
    outcome
}

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(future)
}

/// Polls `attempt` until it has a value; an error after [`WAIT_LIMIT`].
pub async fn until<T>(what: &str, mut attempt: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let waited = tokio::time::timeout(WAIT_LIMIT, async {
        loop {
            if let Some(value) = attempt().await? {
                return Ok(value);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| anyhow::bail!("timed out after {} s waiting for {what}", WAIT_LIMIT.as_secs()))
}
