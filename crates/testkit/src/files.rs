//! Private files, and log tails for error messages.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use anyhow::{Context as _, Result};

/// Lines of a log shown in an error message.
const LINES_IN_ERRORS: usize = 20;

/// Writes a file that only its owner may read. A reader finds the old text or the new one, never a part.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let unfinished = path.with_added_extension("new");
    write_in_place(&unfinished, text).with_context(|| format!("cannot write {}", unfinished.display()))?;
    fs::rename(&unfinished, path).with_context(|| format!("cannot write {}", path.display()))
}

/// Creates or overwrites a file that only its owner may read. A reader may find a part of the text.
fn write_in_place(path: &Path, text: &str) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // An existing file, left by an interrupted run, may have another mode.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// The text of a file, if there is one.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => text.map(Some).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Removes a file, if there is one.
pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The last lines of a log under a heading that names it.
pub(crate) fn end_of_log(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let end = &lines[lines.len().saturating_sub(LINES_IN_ERRORS)..];
    format!("the log {} ends with:\n{}", log.display(), end.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_file_has_mode_0600() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        write_private(&path, "first").unwrap();
        write_private(&path, "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn log_tail_has_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let lines: Vec<String> = (1..=50).map(|line| format!("line {line}")).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        let end = end_of_log(&log);
        assert!(end.ends_with("line 49\nline 50") && !end.contains("line 30\n"), "{end}");
    }
}
