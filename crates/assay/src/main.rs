//! The one executable: every role, the standalone, and the tools of operators and of those who send conversations.

mod cli;
mod commands;
mod import;
mod roles;
mod settings;
mod signals;
mod standalone;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&error.into()),
    };
    match runtime.block_on(commands::run(cli.command)) {
        Ok(code) => code,
        Err(error) => report(&error),
    }
}

#[allow(clippy::print_stderr, reason = "the last word of a command line tool")]
fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("assay: {error:#}");
    ExitCode::FAILURE
}
