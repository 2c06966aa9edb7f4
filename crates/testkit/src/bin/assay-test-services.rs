//! Runs a command, usually the whole test suite, with one PostgreSQL and one RabbitMQ for all of it.
//!
//! Without it every test process starts its own servers, which is correct but slow.

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _},
    os::unix::process::ExitStatusExt as _,
    process::{ExitCode, ExitStatus},
    sync::mpsc,
};

use anyhow::{Context as _, Result};
use assay_testkit::{
    PostgresOptions, PrivatePostgres, PrivateRabbit, RabbitOptions,
    process::{Output, Process, ProcessSpec, Signal},
    services::{AMQP_URL_VARIABLE, POSTGRES_URL_VARIABLE},
    signals::{self, Interruption},
};
use clap::{ArgGroup, Parser};

/// Runs a command with private servers for tests and exits with its code.
#[derive(Parser)]
#[command(version, group(ArgGroup::new("servers").args(["postgres", "rabbit"]).required(true).multiple(true)))]
struct Arguments {
    /// Start PostgreSQL and set ASSAY_TEST_POSTGRES_URL.
    #[arg(long)]
    postgres: bool,
    /// Start RabbitMQ and set ASSAY_TEST_AMQP_URL.
    #[arg(long)]
    rabbit: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

enum Event {
    Interrupted(Interruption),
    Ended(ExitStatus),
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let (sender, events) = mpsc::channel();
    let interruptions = sender.clone();
    // The receiver lives until the end of `main`.
    signals::listen(move |interruption| drop(interruptions.send(Event::Interrupted(interruption))))?;
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).init();

    let postgres =
        arguments.postgres.then(|| PrivatePostgres::start(&PostgresOptions::for_tests())).transpose()?;
    let rabbit = arguments.rabbit.then(|| PrivateRabbit::start(&RabbitOptions::for_tests())).transpose()?;
    let spec = command(&arguments.command, postgres.as_ref(), rabbit.as_ref())?;
    let process = Process::spawn_observed(&spec, move |exit| drop(sender.send(Event::Ended(exit.status))))?;
    let status = wait_for_end(&process, &events)?;
    // The servers hold nothing worth keeping: dropping them kills them.
    drop((postgres, rabbit));
    Ok(exit_code(status))
}

fn command(
    words: &[OsString],
    postgres: Option<&PrivatePostgres>,
    rabbit: Option<&PrivateRabbit>,
) -> Result<ProcessSpec> {
    let (program, arguments) = words.split_first().context("name a command after `--`")?;
    let mut spec = ProcessSpec::new("command", program, Output::Inherit)
        .arguments(arguments)
        .on_parent_death(Some(Signal::SIGTERM));
    if let Some(postgres) = postgres {
        spec = spec.variable(POSTGRES_URL_VARIABLE, postgres.url());
    }
    if let Some(rabbit) = rabbit {
        spec = spec.variable(AMQP_URL_VARIABLE, rabbit.amqp_url());
    }
    Ok(spec)
}

/// Waits for the command and forwards stop signals, except those that the terminal has sent to it as well.
fn wait_for_end(process: &Process, events: &mpsc::Receiver<Event>) -> Result<ExitStatus> {
    loop {
        match events.recv().context("the watcher of the command has ended")? {
            Event::Ended(status) => return Ok(status),
            Event::Interrupted(interruption) if interruption.from_terminal => {}
            Event::Interrupted(interruption) => process.signal(interruption.signal),
        }
    }
}

/// The command's code, or 128 and the number of the signal that ended it, as in shells.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
