//! Specification of a process: program, user, environment and output.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SigSet, Signal},
    },
    unistd::getppid,
};

use super::as_pid;
use crate::account::Account;

/// Where the output of a process goes.
#[derive(Clone, Debug)]
pub enum Output {
    /// Standard output and standard error, appended to a file.
    File(PathBuf),
    /// The terminal (or whatever our own output is), standard input included; the process stays in our process
    /// group, so that the terminal's Ctrl-C reaches it.
    Inherit,
}

/// Specification of a process. It has no `Debug`, because the variables hold passwords.
#[derive(Clone)]
pub struct ProcessSpec {
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    inherits_environment: bool,
    /// `None` removes an inherited variable.
    environment: BTreeMap<OsString, Option<OsString>>,
    folder: Option<PathBuf>,
    account: Option<Account>,
    output: Output,
    on_parent_death: Option<Signal>,
}

impl ProcessSpec {
    /// A process called `name` in messages, with our environment, working folder and account.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, output: Output) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            arguments: Vec::new(),
            inherits_environment: true,
            environment: BTreeMap::new(),
            folder: None,
            account: None,
            output,
            on_parent_death: None,
        }
    }

    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_os_string()));
        self
    }

    /// Starts from an empty environment instead of ours: variables meant for another server must not reach this one.
    #[must_use]
    pub fn clean_environment(mut self) -> Self {
        self.inherits_environment = false;
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.insert(name.as_ref().to_os_string(), Some(value.as_ref().to_os_string()));
        self
    }

    /// Removes an inherited environment variable.
    #[must_use]
    pub fn without_variable(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.insert(name.as_ref().to_os_string(), None);
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Runs the process as another user, without supplementary groups.
    #[must_use]
    pub(crate) fn account(mut self, account: Option<Account>) -> Self {
        self.account = account;
        self
    }

    /// Makes the kernel send this signal to the process when the thread that started it ends (`PR_SET_PDEATHSIG`).
    #[must_use]
    pub fn on_parent_death(mut self, signal: Option<Signal>) -> Self {
        self.on_parent_death = signal;
        self
    }

    /// The name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The log file, if the output goes to one.
    pub fn log(&self) -> Option<&Path> {
        match &self.output {
            Output::File(path) => Some(path),
            Output::Inherit => None,
        }
    }

    pub(super) fn command(&self) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if !self.inherits_environment {
            command.env_clear();
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if let Some(account) = &self.account {
            // The standard library clears the supplementary groups when it changes the user.
            command.gid(account.group_id()).uid(account.user_id());
        }
        if let Output::File(path) = &self.output {
            let log = OpenOptions::new().create(true).append(true).open(path);
            let log = log.with_context(|| format!("cannot write the log {}", path.display()))?;
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        }
        prepare_in_child(&mut command, self.on_parent_death);
        Ok(command)
    }
}

/// Gives the child an empty signal mask (ours blocks the signals that a thread reads) and its death signal.
#[expect(
    unsafe_code,
    reason = "the standard library offers neither the signal mask nor the parent death signal"
)]
fn prepare_in_child(command: &mut Command, on_parent_death: Option<Signal>) {
    let parent = as_pid(std::process::id());
    let prepare = move || {
        SigSet::empty().thread_set_mask()?;
        if let Some(signal) = on_parent_death {
            prctl::set_pdeathsig(signal)?;
            if getppid() != parent {
                // The parent died before the kernel was asked to watch it.
                return Err(Errno::ESRCH.into());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls that are async-signal-safe
    // (pthread_sigmask, prctl, getppid); it allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}
