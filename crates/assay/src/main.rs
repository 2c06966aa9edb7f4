//! The one executable: every role, the standalone, and the tools of operators and of those who send conversations.

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

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long blocking work may take to end when everything else has ended.
const BLOCKING_DEADLINE: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
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

#[allow(clippy::print_stderr, reason = "the last word of a command line tool")]
fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("assay: {error:#}");
    ExitCode::FAILURE
}
