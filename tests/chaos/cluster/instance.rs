//! One process of a role.

use std::path::Path;

use anyhow::{Result, bail};
use assay_platform::runtime::blocking;
use assay_testkit::process::{Output, Process, ProcessSpec, Signal};

use super::clock;
use super::settings::{Settings, inherited};

/// A process of a role, running or not.
pub struct Instance {
    pub role: &'static str,
    pub number: usize,
    pub address: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    process: Option<Process>,
}

impl Instance {
    pub fn new(
        role: &'static str,
        number: usize,
        address: String,
        arguments: Vec<String>,
        variables: Vec<(String, String)>,
    ) -> Self {
        Self { role, number, address, arguments, variables, process: None }
    }

    pub fn name(&self) -> String {
        format!("{}-{}", self.role, self.number)
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub fn start(&mut self, program: &str, settings: &Settings, home: &Path, logs: &Path) -> Result<()> {
        let log = Output::File(logs.join(format!("{}.log", self.name())));
        let mut spec = ProcessSpec::new(self.name(), program, log)
            .arguments(&self.arguments)
            .folder(home)
            .on_parent_death(Some(Signal::SIGKILL));
        for name in inherited() {
            spec = spec.without_variable(name);
        }
        for (name, value) in settings.variables().into_iter().chain(clock::variables(home, self.role)) {
            spec = spec.variable(name, value);
        }
        for (name, value) in &self.variables {
            spec = spec.variable(name, value);
        }
        self.process = Some(Process::spawn(&spec)?);
        Ok(())
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// SIGKILL; returns when the process is reaped.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.process = None;
    }

    /// SIGTERM; fails unless the process exits with success in time.
    pub async fn stop(&mut self) -> Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        let name = self.name();
        let status = blocking(move || {
            process.signal(Signal::SIGTERM);
            process.wait(super::LIMIT)
        });
        match status.await? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("{name} ended after SIGTERM with {status}"),
            None => bail!("{name} did not stop within {} s", super::LIMIT.as_secs()),
        }
    }

    /// Fails when the process exited by itself: no fault of a dependency may end a service.
    pub fn ensure_not_exited(&self) -> Result<()> {
        match self.process.as_ref().and_then(Process::exit_status) {
            Some(status) => bail!("{} ended by itself with {status}", self.name()),
            None => Ok(()),
        }
    }
}
