//! The executable: every role, the standalone, and the command line for operators and users.

mod api;
mod capacity;
mod cli;
mod commands;
mod console_link;
mod exit;
mod freed_memory;
mod huge_pages;
mod import;
mod input;
mod installation;
mod open_files;
mod roles;
mod settings;
mod signals;
mod standalone;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use clap::FromArgMatches;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the exit waits for blocking work.
const BLOCKING_WORK_DEADLINE: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if matches!(cli.command, cli::Command::ExportWorker) {
        huge_pages::disable_transparent_huge_pages();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&error.into()),
    };
    let code = match runtime.block_on(commands::run(cli.command)) {
        Ok(code) => code,
        Err(error) => report(&error),
    };
    // Abandoned blocking work (a read from a pipe, a long query) must not delay the exit.
    runtime.shutdown_timeout(BLOCKING_WORK_DEADLINE);
    code
}

/// Whether the reader of our output closed the pipe, as `head` does. A broken network connection does not count.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        let direct = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let in_json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        direct.or(in_json) == Some(std::io::ErrorKind::BrokenPipe)
    };
    error.chain().any(is_broken_pipe) && !error.chain().any(|cause| cause.is::<reqwest::Error>())
}

#[allow(clippy::print_stderr, reason = "a command line tool reports its failure there")]
fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::from(exit::CLOSED_PIPE);
    }
    eprintln!("assay: {error:#}");
    if error.is::<exit::WrongUsage>() {
        return ExitCode::from(exit::WRONG_USAGE);
    }
    ExitCode::FAILURE
}
