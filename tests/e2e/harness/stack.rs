//! What a scenario sees of a running stack: clients of its own organization, the command line, a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, Result, ensure};
use assay_testkit::launcher::Launcher;
use tokio::process::Command;

use super::api::Api;

/// The two kinds of stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Everything in one process, on SQLite.
    Standalone,
    /// A process for every role, on PostgreSQL and RabbitMQ.
    Distributed,
}

/// A running stack, as one scenario sees it. Other scenarios may use the stack at the same time with other organizations.
#[derive(Clone)]
pub struct Stack {
    pub(super) kind: Kind,
    /// Its working folder is the scenario's.
    pub(super) launcher: Launcher,
    pub(super) process_names: Vec<&'static str>,
    pub(super) base_url: String,
    pub(super) data: PathBuf,
    pub(super) organization: String,
    pub(super) key: String,
}

impl Stack {
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// `http://HOST:PORT` of the public API.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    pub fn process_names(&self) -> &[&'static str] {
        &self.process_names
    }

    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// The name of another organization that only this scenario uses.
    pub fn other_organization(&self, name: &str) -> String {
        format!("{}-{name}", self.organization)
    }

    /// A key of the scenario's organization.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A folder for the scenario's own files; commands run in it.
    pub fn folder(&self) -> &Path {
        &self.launcher.folder
    }

    /// Where the stack keeps its data: the files of exports, and the databases of the standalone.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The value of a setting that all processes have; empty if unset.
    pub fn setting(&self, name: &str) -> &str {
        self.launcher.setting(name)
    }

    /// The address of a service's database, by the name of its schema.
    pub fn database_url(&self, schema: &str) -> String {
        match self.kind {
            Kind::Standalone => format!("sqlite:{}", self.data.join(format!("{schema}.sqlite")).display()),
            Kind::Distributed => {
                self.setting(&format!("ASSAY_{}__DATABASE_URL", schema.to_uppercase())).to_owned()
            }
        }
    }

    /// A client with the scenario's key.
    pub fn api(&self) -> Result<Api> {
        self.api_with(Some(&self.key))
    }

    /// A client with this key, or without.
    pub fn api_with(&self, key: Option<&str>) -> Result<Api> {
        Api::new(&self.base_url, key)
    }

    /// A client of [another organization](Self::other_organization), with a new key.
    pub async fn api_of(&self, name: &str) -> Result<Api> {
        self.api_with(Some(&self.create_key(&self.other_organization(name), &[]).await?))
    }

    /// A new key of an organization, made on the command line.
    pub async fn create_key(&self, organization: &str, arguments: &[&str]) -> Result<String> {
        let output = self.keys(&[&["create", "--organization", organization], arguments].concat()).await?;
        Ok(output.trim_end().to_owned())
    }

    /// `assay keys …`: its standard output.
    pub async fn keys(&self, arguments: &[&str]) -> Result<String> {
        let output = self.operate("keys", arguments).await?;
        ensure!(output.status.success(), "assay keys {arguments:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a command of an operator, which works on the databases or the broker: `assay COMMAND …`.
    pub async fn operate(&self, command: &str, arguments: &[&str]) -> Result<Output> {
        let data = self.data.to_str().context("the folder is no text")?;
        let place: &[&str] = match self.kind {
            Kind::Standalone => &["--data-dir", data],
            Kind::Distributed => &[],
        };
        Ok(self.assay(&[&[command], arguments, place].concat()).output().await?)
    }

    /// The executable with the settings of this stack.
    pub fn assay(&self, arguments: &[&str]) -> Command {
        self.launcher.command(arguments)
    }

    /// The executable as a client of this stack: its address and the scenario's key are in the environment.
    pub fn client(&self, arguments: &[&str]) -> Command {
        let mut command = self.assay(arguments);
        command.env("ASSAY_URL", &self.base_url).env("ASSAY_API_KEY", &self.key);
        command
    }

    /// The name and the whole log of every process.
    pub fn read_logs(&self) -> Result<Vec<(&'static str, String)>> {
        self.process_names
            .iter()
            .map(|name| Ok((*name, fs::read_to_string(self.launcher.log(name))?)))
            .collect()
    }

    /// What all processes have logged.
    pub fn logs(&self) -> Result<String> {
        Ok(self.read_logs()?.into_iter().map(|(_, log)| log).collect())
    }
}
