//! Reports SIGINT, SIGTERM and SIGHUP to a callback.

use std::thread;

use anyhow::{Context as _, Result};
use nix::{
    libc,
    sys::{
        signal::{SigSet, Signal},
        signalfd::SignalFd,
    },
};

/// A stop signal to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// SIGINT, SIGTERM or SIGHUP.
    pub signal: Signal,
    /// Whether the terminal sent it, in which case every process of our process group has received it too.
    pub from_terminal: bool,
}

/// Calls `deliver`, from a separate thread, for every stop signal. The signals no longer end the process.
///
/// Call it in `main` before any other thread exists: threads inherit the signal mask of the thread that starts them, and a
/// signal that is delivered to a thread without this mask would end the process.
///
/// # Errors
/// When the system refuses a signal file descriptor or a thread.
pub fn listen(deliver: impl Fn(Interruption) + Send + 'static) -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGHUP);
    signals.thread_block().context("cannot block signals")?;
    let descriptor = SignalFd::new(&signals).context("cannot open a signal file descriptor")?;
    let read = move || {
        loop {
            match next(&descriptor) {
                Ok(Some(interruption)) => deliver(interruption),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot read signals any longer: end this process with `kill -9`");
                    return;
                }
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(read)?;
    Ok(())
}

fn next(descriptor: &SignalFd) -> nix::Result<Option<Interruption>> {
    let Some(information) = descriptor.read_signal()? else { return Ok(None) };
    let Ok(number) = i32::try_from(information.ssi_signo) else { return Ok(None) };
    let from_terminal = information.ssi_code == libc::SI_KERNEL;
    Ok(Some(Interruption { signal: Signal::try_from(number)?, from_terminal }))
}
