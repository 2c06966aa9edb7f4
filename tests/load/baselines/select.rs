//! Baseline of reads: pgbench with the same statements on the same rows.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::pgbench;
use crate::cluster::Servers;

/// Maximum number of scripts: pgbench accepts at most 128.
pub const MAX_STATEMENTS: usize = 100;

/// Statements on a cluster's database, used in turn.
pub struct Selects<'s> {
    servers: &'s Servers,
    database: String,
    scripts: Vec<PathBuf>,
}

impl<'s> Selects<'s> {
    pub fn prepare(servers: &'s Servers, database: &str, name: &str, statements: &[String]) -> Result<Self> {
        ensure!(
            (1..=MAX_STATEMENTS).contains(&statements.len()),
            "1 to {MAX_STATEMENTS} statements, not {}",
            statements.len()
        );
        let folder = servers.folder(&format!("select-{name}"))?;
        let mut scripts = Vec::new();
        for (index, statement) in statements.iter().enumerate() {
            let path = folder.join(format!("{index}.sql"));
            fs::write(&path, format!("{statement};\n"))?;
            scripts.push(path);
        }
        Ok(Self { servers, database: database.to_owned(), scripts })
    }

    /// Reads per second.
    pub fn per_second(&self, clients: usize, time: Duration) -> Result<f64> {
        Ok(pgbench::run(self.command(clients, time)?)?.per_second)
    }

    /// Mean latency in milliseconds.
    pub fn mean_ms(&self, clients: usize, time: Duration) -> Result<f64> {
        Ok(pgbench::run(self.command(clients, time)?)?.mean_ms)
    }

    fn command(&self, clients: usize, time: Duration) -> Result<Command> {
        let mut command = Command::new(self.servers.program("pgbench")?);
        command.args(["-n", "-M", "prepared", "-T", &time.as_secs().max(1).to_string()]);
        command.args(["-c", &clients.to_string(), "-j", &clients.min(2).to_string()]);
        for script in &self.scripts {
            command.arg("-f").arg(script);
        }
        command.arg(self.servers.admin_url(&self.database));
        Ok(command)
    }
}
