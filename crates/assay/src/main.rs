//! The one executable: every role, the standalone, and the tools of operators and of those who send conversations.

mod api;
mod capacity;
mod cli;
mod commands;
mod huge_pages;
mod import;
mod open_files;
mod roles;
mod settings;
mod signals;
mod standalone;

use std::process::ExitCode;
use std::time::Duration;

use clap::FromArgMatches;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long blocking work may take to end when everything else has ended.
const BLOCKING_DEADLINE: Duration = Duration::from_secs(3);

/// As clap's.
const WRONG_USAGE: u8 = 2;

/// As of a program that SIGPIPE ends.
const CLOSED_PIPE: u8 = 141;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if matches!(cli.command, cli::Command::ExportWorker) {
        huge_pages::do_without();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&error.into()),
    };
    let code = match runtime.block_on(commands::run(cli.command)) {
        Ok(code) => code,
        Err(error) => report(&error),
    };
    // Blocking work that nobody waits for any more (a line from a pipe, a long query) must not hold up the end.
    runtime.shutdown_timeout(BLOCKING_DEADLINE);
    code
}

/// Whoever read our output has read enough, as `head` does: nothing to complain about. A connection that broke is another
/// thing.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_output = |cause: &(dyn std::error::Error + 'static)| {
        let direct = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let in_json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        direct.or(in_json) == Some(std::io::ErrorKind::BrokenPipe)
    };
    error.chain().any(is_output) && !error.chain().any(|cause| cause.is::<reqwest::Error>())
}

#[allow(clippy::print_stderr, reason = "the last word of a command line tool")]
fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::from(CLOSED_PIPE);
    }
    eprintln!("assay: {error:#}");
    if error.is::<commands::WrongUsage>() {
        return ExitCode::from(WRONG_USAGE);
    }
    ExitCode::FAILURE
}
