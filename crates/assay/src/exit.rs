//! Exit codes of the command line.

/// Invalid arguments; clap's code, too.
pub const WRONG_USAGE: u8 = 2;

/// Some lines were refused.
pub const PARTIAL: u8 = 3;

/// The wait timed out; the result may still come.
pub const TIMED_OUT: u8 = 4;

/// Ended by a signal.
pub const INTERRUPTED: u8 = 130;

/// SIGPIPE: the reader of the output closed the pipe.
pub const CLOSED_PIPE: u8 = 141;

/// Invalid arguments that the command-line parser does not detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(String);

impl WrongUsage {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
