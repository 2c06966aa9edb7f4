//! Keeps the processes of the stack running, and stops them in order.
//!
//! One thread does it all: it waits for an event (a process ended, somebody asks us to stop) or for the next start
//! that is due. Each step of starting the stack waits through [`Supervisor::wait_until`], so that processes are
//! restarted and requests to stop are heard at any time.

use std::{
    error::Error,
    fmt::{self, Display},
    process::ExitStatus,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::{
    ledger::Ledger,
    unit::{Phase, State, Unit, stop_signal},
};
use crate::{
    process::{Process, ProcessSpec, Signal},
    signals::Interruption,
    wait::wait_for,
};

/// How long a process may take to stop before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(15);

/// How long processes that were left behind may take to end.
const CLEAR_LIMIT: Duration = Duration::from_secs(10);

/// How often conditions are looked at while nothing happens.
const TICK: Duration = Duration::from_millis(50);

/// What the supervisor waits for.
#[derive(Debug)]
pub(super) enum Event {
    /// The process of the unit with this name ended.
    Ended { name: String, status: ExitStatus },
    /// Somebody asks us to stop.
    Interrupted(Interruption),
}

/// Why a step of starting or supervising was left: somebody asked us to stop.
#[derive(Debug)]
pub(super) struct StopRequested;

impl Display for StopRequested {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("somebody asked the stack to stop")
    }
}

impl Error for StopRequested {}

/// The processes of a stack.
#[derive(Debug)]
pub(super) struct Supervisor {
    units: Vec<Unit>,
    ledger: Ledger,
    events: Receiver<Event>,
    reporter: Sender<Event>,
}

impl Supervisor {
    pub(super) fn new(ledger: Ledger, events: Receiver<Event>, reporter: Sender<Event>) -> Self {
        Self { units: Vec::new(), ledger, events, reporter }
    }

    /// Starts a process that is started again whenever it ends.
    ///
    /// # Errors
    /// When its program cannot be executed; later failures to start it are logged and tried again.
    pub(super) fn start(&mut self, unit: Unit) -> Result<()> {
        let position = self.units.len();
        self.units.push(unit);
        self.try_start(position)
    }

    /// Runs a process to its end. It is stopped when somebody asks us to stop meanwhile.
    pub(super) fn run_to_end(&mut self, spec: &ProcessSpec) -> Result<ExitStatus> {
        let process = Process::spawn(spec)?;
        self.ledger.record(spec.name(), process.pid())?;
        let outcome = loop {
            if let Some(status) = process.exit_status() {
                break Ok(status);
            }
            if let Err(error) = self.tick() {
                process.stop(Signal::SIGTERM, GRACE);
                break Err(error);
            }
        };
        self.ledger.remove(spec.name())?;
        outcome
    }

    /// Supervises until the condition holds; `false` when `limit` has passed.
    ///
    /// # Errors
    /// [`StopRequested`] when somebody asks us to stop, or what the condition returns.
    pub(super) fn wait_until(
        &mut self,
        limit: Duration,
        mut condition: impl FnMut(&Self) -> Result<bool>,
    ) -> Result<bool> {
        let deadline = Instant::now() + limit;
        while !condition(self)? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.tick()?;
        }
        Ok(true)
    }

    /// Supervises until somebody asks us to stop.
    pub(super) fn supervise(&mut self) -> Result<()> {
        loop {
            match self.tick() {
                Err(error) if error.is::<StopRequested>() => return Ok(()),
                outcome => outcome?,
            }
        }
    }

    /// The process id of a unit that runs.
    pub(super) fn pid_of(&self, name: &str) -> Option<u32> {
        self.units.iter().find(|unit| unit.name() == name)?.process().map(Process::pid)
    }

    /// Stops everything in order. A second request to stop kills what is left at once.
    pub(super) fn stop(&mut self) {
        let mut patience = Patience::Full;
        for phase in Phase::ALL {
            self.signal_phase(phase, patience);
            let deadline = Instant::now() + GRACE;
            while patience == Patience::Full && self.phase_runs(phase) && Instant::now() < deadline {
                if let Ok(Event::Interrupted(_)) = self.events.recv_timeout(TICK) {
                    tracing::warn!("asked to stop a second time: killing what still runs");
                    patience = Patience::None;
                }
            }
            self.end_phase(phase);
        }
    }

    /// Handles one event, or none within a moment, then starts what is due.
    fn tick(&mut self) -> Result<()> {
        match self.events.recv_timeout(TICK) {
            Ok(Event::Interrupted(interruption)) => {
                tracing::info!(signal = %interruption.signal, "stopping; ask again to kill at once");
                return Err(StopRequested.into());
            }
            Ok(Event::Ended { name, status }) => self.note_end(&name, status),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("nobody reports events any longer"),
        }
        for position in 0..self.units.len() {
            if self.units[position].is_due() {
                self.restart(position);
            }
        }
        Ok(())
    }

    fn note_end(&mut self, name: &str, status: ExitStatus) {
        let Some(unit) = self.units.iter_mut().find(|unit| unit.name() == name) else { return };
        let wait = unit.retry();
        let log = unit.spec.log().map(|path| path.display().to_string());
        tracing::warn!(process = name, %status, restart_in = ?wait, log, "a process ended and will be restarted");
    }

    fn restart(&mut self, position: usize) {
        if let Err(error) = self.try_start(position) {
            let unit = &mut self.units[position];
            let wait = unit.retry();
            tracing::error!(process = unit.name(), error = %format!("{error:#}"), retry_in = ?wait, "cannot restart a process");
        }
    }

    fn try_start(&mut self, position: usize) -> Result<()> {
        let unit = &mut self.units[position];
        if !unit.is_clear()? {
            unit.ask_again();
            return Ok(());
        }
        let name = unit.name().to_owned();
        let reporter = self.reporter.clone();
        let report = move |status| {
            // Nobody listens any more once the supervisor has gone.
            let _ = reporter.send(Event::Ended { name, status });
        };
        let process = Process::spawn_observed(&unit.spec, report)?;
        let pid = process.pid();
        unit.run(process);
        tracing::info!(process = unit.name(), pid, "started");
        self.ledger.record(unit.name(), pid)
    }

    fn signal_phase(&self, phase: Phase, patience: Patience) {
        for unit in self.units_of(phase) {
            if let Some(process) = unit.process() {
                process.signal(match patience {
                    Patience::Full => stop_signal(unit.name()),
                    Patience::None => Signal::SIGKILL,
                });
            }
        }
    }

    fn phase_runs(&self, phase: Phase) -> bool {
        self.units_of(phase).filter_map(Unit::process).any(|process| process.exit_status().is_none())
    }

    /// Kills what is left of a phase and forgets its processes.
    fn end_phase(&mut self, phase: Phase) {
        for unit in self.units.iter_mut().filter(|unit| Phase::of(unit.name()) == phase) {
            if unit.process().is_some_and(|process| process.exit_status().is_none()) {
                tracing::warn!(process = unit.name(), "did not stop in time: killing it");
            }
            // Dropping a process kills and reaps it.
            unit.state = State::Stopped;
            let cleared = || Ok(unit.is_clear()?.then_some(()));
            if let Err(error) = wait_for("what a process left behind to end", CLEAR_LIMIT, cleared) {
                tracing::warn!(process = unit.name(), error = %format!("{error:#}"), "processes stay behind");
            }
            if let Err(error) = self.ledger.remove(unit.name()) {
                tracing::warn!(process = unit.name(), error = %format!("{error:#}"), "its pid file stays behind");
            }
        }
    }

    fn units_of(&self, phase: Phase) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(move |unit| Phase::of(unit.name()) == phase)
    }
}

/// Whether processes get time to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Full,
    None,
}
