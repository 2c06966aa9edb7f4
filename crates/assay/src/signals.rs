//! Signals: the first SIGINT or SIGTERM begins an orderly shutdown, the second ends the process at once.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Replaces the default signal handlers. Every listener receives every signal.
    pub fn listen() -> Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
