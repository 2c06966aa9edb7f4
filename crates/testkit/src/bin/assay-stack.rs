//! The supervisor behind `make stack`, `make stack-down` and `make stack-key`.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    time::Duration,
};

use anyhow::Result;
use assay_testkit::stack::{self, StackSettings, UpOptions};
use clap::{Parser, Subcommand};

/// Runs every role of Assay as its own process on PostgreSQL and RabbitMQ.
///
/// ASSAY_STACK_DIR names the folder (.local/stack), ASSAY_GATEWAY__LISTEN the address (127.0.0.1:8080).
/// ASSAY_POSTGRES_URL (an administrator's) and ASSAY_AMQP_URL name servers to use instead of private ones, ASSAY_OBJECTS__URL
/// where files of exports are kept instead of the folder.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The assay executable; by default the one next to this executable.
    #[arg(long, global = true, value_name = "PATH")]
    assay: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Start the stack and supervise it until Ctrl-C.
    Up {
        /// How long the gateway may take to become ready.
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        ready_within: u64,
        /// How long each process may take to stop before it is killed.
        #[arg(long, value_name = "SECONDS", default_value_t = stack::GRACE.as_secs())]
        grace: u64,
    },
    /// Stop a stack, above all one whose supervisor crashed.
    Down,
    /// Print a new API key, alone, on standard output.
    Key {
        /// The organization the key belongs to; it is created if needed.
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
}

fn main() -> Result<()> {
    let Arguments { command, assay } = Arguments::parse();
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
    let settings = StackSettings::from_environment()?;
    match command {
        Command::Up { ready_within, grace } => {
            let (ready_within, grace) = (Duration::from_secs(ready_within), Duration::from_secs(grace));
            stack::up(&settings, &UpOptions { assay, ready_within, grace })
        }
        Command::Down => {
            let stopped = stack::down(&settings.folder)?;
            match stopped.as_slice() {
                [] => tracing::info!("nothing runs in {}", settings.folder.display()),
                names => tracing::info!("stopped {}", names.join(", ")),
            }
            Ok(())
        }
        Command::Key { organization } => stack::print_key(&settings, assay.as_deref(), &organization),
    }
}
