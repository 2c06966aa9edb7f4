//! Clock steps by Debian's `libfaketime`, where it is installed. Monotonic clocks are not affected, as with a real clock
//! step by an administrator or NTP.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// The path of `libfaketime`, if it is installed.
pub fn library() -> Option<PathBuf> {
    let machine = std::env::consts::ARCH;
    let path = PathBuf::from(format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1"));
    path.exists().then_some(path)
}

/// Environment variables that make a process's clock steppable.
pub fn variables(home: &Path, role: &str) -> Vec<(String, String)> {
    let Some(library) = library() else { return Vec::new() };
    let variables = [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", file(home, role).display().to_string()),
        // Seconds until a change takes effect.
        ("FAKETIME_CACHE_DURATION", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_DONT_RESET", "1".to_owned()),
    ];
    variables.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Sets the clock offset of a role, in seconds.
pub fn set(home: &Path, role: &str, seconds: i64) -> Result<()> {
    // Replaced atomically: the content of a half-written file would be another offset.
    let file = file(home, role);
    let new = file.with_extension("new");
    fs::write(&new, format!("{seconds:+}\n"))?;
    Ok(fs::rename(new, file)?)
}

fn file(home: &Path, role: &str) -> PathBuf {
    home.join(format!("clock-{role}"))
}
