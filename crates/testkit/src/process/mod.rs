//! Supervised child processes. One thread per child spawns it, waits for it and reaps it.
//!
//! The thread stays, because the kernel sends the parent death signal when the *thread* that spawned the child ends,
//! and because a server must be reaped before it can be restarted after `kill -9`.

mod spec;

use std::{
    process::{Child, ExitStatus},
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use assay_platform::runtime::LockExt as _;
use nix::{
    errno::Errno,
    sys::{
        signal,
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};

pub use self::spec::{Output, ProcessSpec};
pub use nix::sys::signal::Signal;

/// A running child process. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    shared: Arc<Shared>,
}

/// The end of a process.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// The process id it had. Another process may have it by now.
    pub pid: u32,
    pub status: ExitStatus,
}

#[derive(Debug, Default)]
struct Shared {
    exit: Mutex<Option<ExitStatus>>,
    exited: Condvar,
}

impl Process {
    /// Starts the process.
    ///
    /// # Errors
    /// When its log cannot be opened or its program cannot be executed.
    pub fn spawn(spec: &ProcessSpec) -> Result<Self> {
        Self::spawn_observed(spec, |_exit| {})
    }

    /// Starts the process and calls `on_exit`, from another thread, once it has ended and is reaped.
    ///
    /// # Errors
    /// When its log cannot be opened or its program cannot be executed.
    pub fn spawn_observed(spec: &ProcessSpec, on_exit: impl FnOnce(Exit) + Send + 'static) -> Result<Self> {
        let mut command = spec.command()?;
        let shared = Arc::new(Shared::default());
        let watched = Arc::clone(&shared);
        let (report, started) = mpsc::sync_channel(1);
        let watcher = move || match command.spawn() {
            Ok(child) => {
                // The receiver waits below until it has this message.
                let _ = report.send(Ok(child.id()));
                let pid = child.id();
                if let Some(status) = watch(child, &watched) {
                    on_exit(Exit { pid, status });
                }
            }
            Err(error) => {
                let _ = report.send(Err(error));
            }
        };
        thread::Builder::new().name(format!("watch {}", spec.name())).spawn(watcher)?;
        let pid = started
            .recv()
            .map_err(|_gone| anyhow!("the thread that starts {} ended early", spec.name()))?
            .with_context(|| format!("cannot run {}", spec.program().display()))?;
        Ok(Self { name: spec.name().to_owned(), pid, shared })
    }

    /// The process id. It stays reserved for this process until the process has been reaped.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How the process ended; `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.shared.exit.locked()
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&self, signal: Signal) {
        let exit = self.shared.exit.locked();
        if exit.is_some() {
            return;
        }
        // While the lock is held the child is not reaped, so its pid cannot have been reused.
        if let Err(error) = signal::kill(as_pid(self.pid), signal) {
            tracing::warn!(process = self.name, pid = self.pid, %signal, %error, "cannot send a signal");
        }
    }

    /// Waits until the process has ended, at most for `limit`; `None` when it still runs.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        let mut exit = self.shared.exit.locked();
        while exit.is_none() {
            let left = deadline.checked_duration_since(Instant::now())?;
            exit = self.shared.exited.wait_timeout(exit, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *exit
    }

    /// Sends `signal`, waits for at most `grace`, then kills. Returns once the process is reaped, or ten
    /// seconds after the kill.
    pub fn stop(&self, signal: Signal, grace: Duration) {
        self.signal(signal);
        if self.wait(grace).is_none() {
            self.signal(Signal::SIGKILL);
            // Nothing survives SIGKILL; only the kernel can delay it (a process stuck in a system call).
            let _ = self.wait(Duration::from_secs(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop(Signal::SIGKILL, Duration::from_secs(10));
    }
}

pub(crate) fn as_pid(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}

/// Waits for the child and reaps it. The exit is detected first and reaped under the lock, see [`Process::signal`].
fn watch(mut child: Child, shared: &Shared) -> Option<ExitStatus> {
    let pid = as_pid(child.id());
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    let mut exit = shared.exit.locked();
    match child.wait() {
        Ok(status) => *exit = Some(status),
        Err(error) => tracing::error!(pid = child.id(), %error, "cannot wait for a child process"),
    }
    shared.exited.notify_all();
    *exit
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt as _, path::Path};

    use super::*;

    fn shell(script: &str) -> ProcessSpec {
        ProcessSpec::new("script", "/bin/sh", Output::File("/dev/null".into())).arguments(["-c", script])
    }

    #[test]
    fn ended_process_is_reaped_and_reported() {
        let (sender, receiver) = mpsc::channel();
        let process =
            Process::spawn_observed(&shell("exit 7"), move |exit| sender.send(exit).unwrap()).unwrap();
        let exit = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!((exit.pid, exit.status.code()), (process.pid(), Some(7)));
        assert!(!Path::new(&format!("/proc/{}", process.pid())).exists());
    }

    #[test]
    fn process_that_ignores_sigterm_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script = format!("trap '' TERM; touch {}; while :; do sleep 1; done", ready.display());
        let process = Process::spawn(&shell(&script)).unwrap();
        crate::wait::wait_for("the trap", Duration::from_secs(10), || Ok(ready.exists().then_some(())))
            .unwrap();
        process.stop(Signal::SIGTERM, Duration::from_millis(50));
        assert_eq!(process.exit_status().unwrap().signal(), Some(Signal::SIGKILL as i32));
    }

    #[test]
    fn missing_program_is_named_in_the_error() {
        let spec = ProcessSpec::new("nothing", "/no/such/program", Output::File("/dev/null".into()));
        let error = Process::spawn(&spec).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/program"), "{error:#}");
    }

    #[test]
    fn dropped_process_is_reaped() {
        let process = Process::spawn(&shell("sleep 600")).unwrap();
        let pid = process.pid();
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
