//! One supervised process: what to run, when it may start again, and in which order it is stopped.

use std::{
    fmt::{self, Debug},
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{
    backoff::Backoff,
    services::{EPMD, GATEWAY, POSTGRES, RABBITMQ},
};
use crate::process::{Process, ProcessSpec, Signal};

/// The order in which processes are stopped: whoever takes work goes before whoever does it or keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Takes requests from outside.
    Gateway,
    /// Services and workers.
    Services,
    /// PostgreSQL and RabbitMQ.
    Backends,
    /// The port mapper of RabbitMQ, which needs it until its end.
    PortMapper,
}

impl Phase {
    pub(super) const ALL: [Self; 4] = [Self::Gateway, Self::Services, Self::Backends, Self::PortMapper];

    /// The phase of the process `name`.
    pub(super) fn of(name: &str) -> Self {
        match name {
            GATEWAY => Self::Gateway,
            POSTGRES | RABBITMQ => Self::Backends,
            EPMD => Self::PortMapper,
            _ => Self::Services,
        }
    }
}

/// The signal that asks the process `name` to stop in an orderly way.
pub(super) fn stop_signal(name: &str) -> Signal {
    match name {
        // "Fast shutdown": its SIGTERM would wait for every client to leave by itself.
        POSTGRES => Signal::SIGINT,
        _ => Signal::SIGTERM,
    }
}

/// Says whether nothing is left of an earlier run, and tells what is left to go.
type Clearing = Box<dyn Fn() -> Result<bool>>;

/// A process and its life so far.
pub(super) struct Unit {
    pub(super) spec: ProcessSpec,
    pub(super) state: State,
    clear: Clearing,
    backoff: Backoff,
}

/// What a unit does now.
#[derive(Debug)]
pub(super) enum State {
    /// It runs, since when.
    Running { process: Process, since: Instant },
    /// It died and is started again at this time.
    Waiting { until: Instant },
    /// It is not to run any more.
    Stopped,
}

impl Unit {
    pub(super) fn new(spec: ProcessSpec) -> Self {
        Self::with_clearing(spec, || Ok(true))
    }

    /// A unit that may leave processes behind when it is killed, and must not start again before they are gone.
    pub(super) fn with_clearing(spec: ProcessSpec, clear: impl Fn() -> Result<bool> + 'static) -> Self {
        let state = State::Waiting { until: Instant::now() };
        Self { spec, state, clear: Box::new(clear), backoff: Backoff::new() }
    }

    pub(super) fn name(&self) -> &str {
        self.spec.name()
    }

    /// Whether nothing is left of an earlier run. Call it only while the process does not run.
    pub(super) fn is_clear(&self) -> Result<bool> {
        (self.clear)()
    }

    pub(super) fn process(&self) -> Option<&Process> {
        match &self.state {
            State::Running { process, .. } => Some(process),
            State::Waiting { .. } | State::Stopped => None,
        }
    }

    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, State::Waiting { until } if until <= Instant::now())
    }

    pub(super) fn run(&mut self, process: Process) {
        self.state = State::Running { process, since: Instant::now() };
    }

    /// Schedules the next start and returns how long it is away.
    pub(super) fn retry(&mut self) -> Duration {
        let lifetime = match &self.state {
            State::Running { since, .. } => since.elapsed(),
            State::Waiting { .. } | State::Stopped => Duration::ZERO,
        };
        let wait = self.backoff.after(lifetime);
        self.state = State::Waiting { until: Instant::now() + wait };
        wait
    }

    /// Looks again soon whether it is clear, without counting it as a failure.
    pub(super) fn ask_again(&mut self) {
        self.state = State::Waiting { until: Instant::now() + Duration::from_millis(100) };
    }
}

// Not derived: the clearing is a closure.
impl Debug for Unit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Unit")
            .field("spec", &self.spec)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
