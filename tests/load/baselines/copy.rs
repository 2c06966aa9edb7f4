//! Baseline of exports: PostgreSQL's own client with `\copy (SELECT …) TO` a file, in the order of an export.

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::cluster::Servers;

/// Throughput of `copy`, a `\copy` of `rows` rows to a file that it calls `FILE`, in 10⁶ bytes per second.
pub fn to_file(servers: &Servers, database: &str, copy: &str, rows: u64, file: &Path) -> Result<f64> {
    let begin = Instant::now();
    let answer = psql(servers, database, &copy.replace("FILE", &format!("'{}'", file.display())))?;
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(answer.trim() == format!("COPY {rows}"), "{copy}: {answer}");
    let megabytes = fs::metadata(file)?.len() as f64 / 1e6;
    fs::remove_file(file)?;
    Ok(megabytes / seconds)
}

/// Runs a command of psql; returns its output.
pub fn psql(servers: &Servers, database: &str, command: &str) -> Result<String> {
    let output = Command::new(servers.program("psql")?)
        .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", command])
        .arg(servers.admin_url(database))
        .output()?;
    if !output.status.success() {
        bail!("{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A running `\copy … FROM` of psql.
pub struct CopyFrom {
    process: Child,
    input: Option<ChildStdin>,
}

impl CopyFrom {
    /// Starts loading CSV into `table`, a name with or without columns.
    pub fn begin(servers: &Servers, database: &str, table: &str) -> Result<Self> {
        let mut process = Command::new(servers.program("psql")?)
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c"])
            .arg(format!("\\copy {table} FROM PSTDIN CSV"))
            .arg(servers.admin_url(database))
            .stdin(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take();
        Ok(Self { process, input })
    }

    pub fn input(&mut self) -> Result<&mut ChildStdin> {
        self.input.as_mut().context("psql has no input")
    }

    /// Ends the input and waits for psql.
    pub fn finish(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.process.wait()?;
        ensure!(status.success(), "psql: {status}");
        Ok(())
    }
}
