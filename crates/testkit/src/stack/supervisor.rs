//! Keeps the processes of the stack running, and stops them in order.
//!
//! A single thread waits for events (a process ended, a stop signal) and for due restarts. Every step of the start-up
//! waits through [`Supervisor::wait_until`], so restarts and stop signals are handled at any time.

use std::{
    error::Error,
    fmt::{self, Display},
    process::ExitStatus,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::{
    pid_files::PidFiles,
    unit::{Phase, State, Unit, stop_signal},
};
use crate::{
    process::{Exit, Process, ProcessSpec, Signal},
    signals::Interruption,
    wait::wait_for,
};

/// Time limit for leftover processes to end.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(10);

/// Poll interval for conditions.
const TICK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) enum Event {
    /// The process of the unit with this name ended.
    Ended { name: String, exit: Exit },
    /// A stop signal.
    Interrupted(Interruption),
}

/// Error of a step that a stop signal interrupted.
#[derive(Debug)]
pub(super) struct StopRequested;

impl Display for StopRequested {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the stack received a stop signal")
    }
}

impl Error for StopRequested {}

/// The processes of a stack.
pub(super) struct Supervisor {
    units: Vec<Unit>,
    pid_files: PidFiles,
    events: Receiver<Event>,
    event_sender: Sender<Event>,
    grace: Duration,
}

impl Supervisor {
    /// `grace` is how long a process may take to stop before it is killed.
    pub(super) fn new(
        pid_files: PidFiles,
        events: Receiver<Event>,
        event_sender: Sender<Event>,
        grace: Duration,
    ) -> Self {
        Self { units: Vec::new(), pid_files, events, event_sender, grace }
    }

    /// Starts a process and restarts it whenever it ends.
    ///
    /// # Errors
    /// When its program cannot be executed; later failures to start it are logged and tried again.
    pub(super) fn start(&mut self, unit: Unit) -> Result<()> {
        let position = self.units.len();
        self.units.push(unit);
        self.try_start(position)
    }

    /// Runs a process to its end; it is not restarted. A stop signal stops it.
    pub(super) fn run_to_end(&mut self, spec: &ProcessSpec) -> Result<ExitStatus> {
        let process = Process::spawn(spec)?;
        self.pid_files.record(spec.name(), process.pid())?;
        let outcome = loop {
            if let Some(status) = process.exit_status() {
                break Ok(status);
            }
            if let Err(error) = self.tick() {
                process.stop(Signal::SIGTERM, self.grace);
                break Err(error);
            }
        };
        self.pid_files.remove(spec.name())?;
        outcome
    }

    /// Supervises until the condition holds; `false` when `limit` has passed.
    ///
    /// # Errors
    /// [`StopRequested`] after a stop signal, or the error of the condition.
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

    /// Supervises until a stop signal.
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

    /// Stops everything in order. A second stop signal kills the remaining processes.
    pub(super) fn stop(&mut self) {
        let mut mode = StopMode::Graceful;
        for phase in Phase::ALL {
            self.signal_phase(phase, mode);
            let deadline = Instant::now() + self.grace;
            while mode == StopMode::Graceful && self.phase_runs(phase) && Instant::now() < deadline {
                if let Ok(Event::Interrupted(_)) = self.events.recv_timeout(TICK) {
                    tracing::warn!("asked to stop a second time: killing what still runs");
                    mode = StopMode::Kill;
                }
            }
            self.end_phase(phase);
        }
    }

    /// Waits up to [`TICK`] for an event and handles it, then restarts the units that are due.
    fn tick(&mut self) -> Result<()> {
        match self.events.recv_timeout(TICK) {
            Ok(Event::Interrupted(interruption)) => {
                tracing::info!(signal = %interruption.signal, "stopping; ask again to kill at once");
                return Err(StopRequested.into());
            }
            Ok(Event::Ended { name, exit }) => self.handle_exit(&name, exit),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("the sources of events have ended"),
        }
        for position in 0..self.units.len() {
            if self.units[position].is_due() {
                self.restart(position);
            }
        }
        Ok(())
    }

    /// Schedules the restart of a unit whose process ended. Ignores a late report about an earlier process: its successor may be
    /// running already.
    fn handle_exit(&mut self, name: &str, exit: Exit) {
        let is_current = |unit: &Unit| unit.process().is_some_and(|process| process.pid() == exit.pid);
        let mut units = self.units.iter_mut();
        let Some(unit) = units.find(|unit| unit.name() == name && is_current(unit)) else { return };
        let wait = unit.schedule_restart();
        let log = unit.spec.log().map(|path| path.display().to_string());
        tracing::warn!(process = name, status = %exit.status, restart_in = ?wait, log, "a process ended and will be restarted");
    }

    fn restart(&mut self, position: usize) {
        if let Err(error) = self.try_start(position) {
            let unit = &mut self.units[position];
            let wait = unit.schedule_restart();
            tracing::error!(process = unit.name(), error = %format!("{error:#}"), retry_in = ?wait, "cannot restart a process");
        }
    }

    fn try_start(&mut self, position: usize) -> Result<()> {
        let unit = &mut self.units[position];
        // Processes of an earlier run are still ending: a later tick tries again.
        if !unit.clear_leftovers()? {
            unit.recheck_soon();
            return Ok(());
        }
        let name = unit.name().to_owned();
        let event_sender = self.event_sender.clone();
        let report = move |exit| {
            // The receiver is gone when the supervisor is.
            let _ = event_sender.send(Event::Ended { name, exit });
        };
        let process = Process::spawn_observed(&unit.spec, report)?;
        let pid = process.pid();
        unit.set_running(process);
        tracing::info!(process = unit.name(), pid, "started");
        self.pid_files.record(unit.name(), pid)
    }

    fn signal_phase(&self, phase: Phase, mode: StopMode) {
        for unit in self.units_of(phase) {
            if let Some(process) = unit.process() {
                process.signal(match mode {
                    StopMode::Graceful => stop_signal(unit.name()),
                    StopMode::Kill => Signal::SIGKILL,
                });
            }
        }
    }

    fn phase_runs(&self, phase: Phase) -> bool {
        self.units_of(phase).filter_map(Unit::process).any(|process| process.exit_status().is_none())
    }

    /// Kills the remaining processes of a phase and removes their records.
    fn end_phase(&mut self, phase: Phase) {
        for unit in self.units.iter_mut().filter(|unit| Phase::of(unit.name()) == phase) {
            if unit.process().is_some_and(|process| process.exit_status().is_none()) {
                tracing::warn!(process = unit.name(), "did not stop in time: killing it");
            }
            // Dropping a process kills and reaps it.
            unit.state = State::Stopped;
            let cleared = || Ok(unit.clear_leftovers()?.then_some(()));
            if let Err(error) = wait_for("leftover processes to end", LEFTOVERS_LIMIT, cleared) {
                tracing::warn!(process = unit.name(), error = %format!("{error:#}"), "processes stay behind");
            }
            if let Err(error) = self.pid_files.remove(unit.name()) {
                tracing::warn!(process = unit.name(), error = %format!("{error:#}"), "its pid file stays behind");
            }
        }
    }

    fn units_of(&self, phase: Phase) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(move |unit| Phase::of(unit.name()) == phase)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopMode {
    Graceful,
    Kill,
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt as _, sync::mpsc};

    use super::*;
    use crate::{process::Output, stack::folder::StackFolder};

    #[test]
    fn late_exit_of_a_predecessor_does_not_affect_the_successor() {
        let folder = tempfile::tempdir().unwrap();
        let pid_files = PidFiles::new(StackFolder::create(folder.path()).unwrap());
        let (event_sender, events) = mpsc::channel();
        let mut supervisor = Supervisor::new(pid_files, events, event_sender.clone(), Duration::ZERO);
        let sleeper = ProcessSpec::new("ingest", "/bin/sleep", Output::File("/dev/null".into()));
        supervisor.start(Unit::new(sleeper.arguments(["600"]))).unwrap();
        let pid = supervisor.pid_of("ingest").unwrap();

        let earlier = Exit { pid: pid - 1, status: ExitStatus::from_raw(9) };
        event_sender.send(Event::Ended { name: "ingest".to_owned(), exit: earlier }).unwrap();
        let interruption = Interruption { signal: Signal::SIGTERM, from_terminal: false };
        event_sender.send(Event::Interrupted(interruption)).unwrap();
        supervisor.supervise().unwrap();
        assert_eq!(supervisor.pid_of("ingest"), Some(pid));

        supervisor.stop();
    }
}
