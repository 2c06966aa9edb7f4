//! Signals: the first SIGINT or SIGTERM begins an orderly shutdown, the second ends the process at once.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a process.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Takes over the signals from now on.
    pub fn listen() -> Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
