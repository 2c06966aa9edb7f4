//! One supervised process: its specification, restart delay and stop phase.

use std::time::{Duration, Instant};

use anyhow::Result;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use super::server_names::{EPMD, POSTGRES, RABBITMQ};
use crate::launcher::GATEWAY;
use crate::process::{Process, ProcessSpec, Signal};

/// Delays before a dead process is restarted.
const RESTART: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_max_delay(Duration::from_secs(5))
    .without_max_times();

/// A process that ran this long started properly: its exit resets the delay.
const RESET_AFTER: Duration = Duration::from_secs(10);

/// Stop order: processes that accept work first, then those that do it, then those that store it.
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
        // PostgreSQL's "fast shutdown"; on SIGTERM it would wait until every client has disconnected.
        POSTGRES => Signal::SIGINT,
        _ => Signal::SIGTERM,
    }
}

/// Signals leftover processes of an earlier run; returns whether none is left.
type Cleanup = Box<dyn Fn() -> Result<bool>>;

pub(super) struct Unit {
    pub(super) spec: ProcessSpec,
    pub(super) state: State,
    clear_leftovers: Cleanup,
    delays: ExponentialBackoff,
}

#[derive(Debug)]
pub(super) enum State {
    Running {
        process: Process,
        since: Instant,
    },
    /// Ended; restarts at this time.
    Waiting {
        until: Instant,
    },
    /// Not restarted any more.
    Stopped,
}

impl Unit {
    pub(super) fn new(spec: ProcessSpec) -> Self {
        Self::with_cleanup(spec, || Ok(true))
    }

    /// A unit that may leave processes behind when it is killed, and must not start again before they are gone.
    pub(super) fn with_cleanup(
        spec: ProcessSpec,
        clear_leftovers: impl Fn() -> Result<bool> + 'static,
    ) -> Self {
        let state = State::Waiting { until: Instant::now() };
        Self { spec, state, clear_leftovers: Box::new(clear_leftovers), delays: RESTART.build() }
    }

    pub(super) fn name(&self) -> &str {
        self.spec.name()
    }

    /// Signals left-over processes; true when none is left. Call it only while the process does not run.
    pub(super) fn clear_leftovers(&self) -> Result<bool> {
        (self.clear_leftovers)()
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

    pub(super) fn set_running(&mut self, process: Process) {
        self.state = State::Running { process, since: Instant::now() };
    }

    /// Schedules the next start and returns the delay.
    pub(super) fn schedule_restart(&mut self) -> Duration {
        let lifetime = match &self.state {
            State::Running { since, .. } => since.elapsed(),
            State::Waiting { .. } | State::Stopped => Duration::ZERO,
        };
        if lifetime >= RESET_AFTER {
            self.delays = RESTART.build();
        }
        let wait = self.delays.next().unwrap_or_default();
        self.state = State::Waiting { until: Instant::now() + wait };
        wait
    }

    /// Checks for leftovers again soon, without increasing the delay.
    pub(super) fn recheck_soon(&mut self) {
        self.state = State::Waiting { until: Instant::now() + Duration::from_millis(100) };
    }
}
