//! A private RabbitMQ broker: its own node name, ports, cookie, port mapper and folder.

mod binaries;
mod handshake;
mod node;

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};

pub(crate) use self::node::{RabbitNode, clear_leftovers};
use crate::{
    ports::MAX_PORTS_TRIED,
    process::{Process, Signal},
    scratch::{Location, ScratchFolder},
    wait::wait_for,
};

/// Time limit from the start of the broker to its first answer, which takes 3 to 5 s on an idle machine.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(120);

/// How long the broker may take to close its queues.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// How long a killed process may take to disappear.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Time limit for the first answer of the port mapper, which takes milliseconds.
pub(crate) const EPMD_LIMIT: Duration = Duration::from_secs(10);

/// How to run a [`PrivateRabbit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RabbitOptions {
    /// Where the data is kept.
    pub location: Location,
    /// Whether the kernel ends the broker when this process dies. Otherwise only `stop` and `Drop` do.
    pub dies_with_us: bool,
}

impl RabbitOptions {
    /// A broker for tests that leaves nothing behind.
    pub fn for_tests() -> Self {
        Self { location: Location::Temporary, dies_with_us: true }
    }

    /// A broker with a persistent folder.
    pub fn durable_in(folder: impl Into<PathBuf>) -> Self {
        Self { location: Location::Folder(folder.into()), dies_with_us: false }
    }
}

/// A running private RabbitMQ broker without plugins. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct PrivateRabbit {
    // Dropped in this order: the broker, the port mapper that it is registered with, their folder.
    broker: Process,
    epmd: Process,
    node: RabbitNode,
    _scratch: Option<ScratchFolder>,
}

impl PrivateRabbit {
    /// Starts a broker and waits until it answers.
    ///
    /// # Errors
    /// When RabbitMQ is not available, or the broker does not start; the message names its log.
    pub fn start(options: &RabbitOptions) -> Result<Self> {
        let (folder, scratch) = options.location.open("assay-rabbitmq-")?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let on_parent_death = options.dies_with_us.then_some(Signal::SIGKILL);
        let mut ports_tried = 0;
        loop {
            ports_tried += 1;
            let node = RabbitNode::prepare(&folder, &folder.join("rabbitmq.log"))?;
            match start_node(&node, on_parent_death) {
                Ok((broker, epmd)) => return Ok(Self { broker, epmd, node, _scratch: scratch }),
                Err(_) if ports_tried < MAX_PORTS_TRIED && node.found_a_port_taken() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// `amqp://user:password@127.0.0.1:port/%2f`, the default virtual host.
    pub fn amqp_url(&self) -> String {
        self.node.amqp_url()
    }

    /// The process id of the Erlang VM that is the broker, our child.
    pub fn pid(&self) -> u32 {
        self.broker.pid()
    }

    /// The process id of the broker's own port mapper.
    pub fn epmd_pid(&self) -> u32 {
        self.epmd.pid()
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.node.port()
    }

    /// Sends a signal to the broker.
    pub fn signal(&self, signal: Signal) {
        self.broker.signal(signal);
    }

    /// Whether the broker still runs.
    pub fn is_running(&self) -> bool {
        self.broker.exit_status().is_none()
    }

    /// Stops the broker in an orderly way, then its port mapper.
    pub fn stop(self) {
        self.broker.stop(Signal::SIGTERM, STOP_LIMIT);
    }
}

impl Drop for PrivateRabbit {
    fn drop(&mut self) {
        self.broker.stop(Signal::SIGKILL, KILL_LIMIT);
        let cleared = || Ok(clear_leftovers(self.node.folder())?.then_some(()));
        if let Err(error) = wait_for("the programs of RabbitMQ to end", KILL_LIMIT, cleared) {
            tracing::warn!(error = %format!("{error:#}"), "processes of RabbitMQ stay behind");
        }
    }
}

fn start_node(node: &RabbitNode, on_parent_death: Option<Signal>) -> Result<(Process, Process)> {
    let epmd = Process::spawn(&node.epmd().on_parent_death(on_parent_death))?;
    wait_for("the Erlang port mapper of RabbitMQ", EPMD_LIMIT, || {
        if let Some(status) = epmd.exit_status() {
            bail!("the Erlang port mapper ended with {status} instead of starting");
        }
        Ok(node.epmd_answers().then_some(()))
    })
    .with_context(|| node.end_of_log())?;
    let broker = Process::spawn(&node.broker().on_parent_death(on_parent_death))?;
    let what = format!("RabbitMQ to answer on port {}", node.port());
    wait_for(&what, START_LIMIT, || {
        if let Some(status) = broker.exit_status() {
            bail!("RabbitMQ ended with {status} instead of starting");
        }
        node.answers(broker.pid())
    })
    .with_context(|| node.end_of_log())?;
    Ok((broker, epmd))
}
