//! Files of `NAME=VALUE` lines, as `docker --env-file` reads them: no quotes, no escapes.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::{
    files::{read_if_there, write_private},
    launcher::Settings,
};

/// Reads a file; `None` when there is none. Empty lines and lines that start with `#` are skipped.
pub(super) fn read(path: &Path) -> Result<Option<Settings>> {
    let Some(text) = read_if_there(path)? else { return Ok(None) };
    let mut variables = Settings::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .with_context(|| format!("line {} of {} is not NAME=VALUE", number + 1, path.display()))?;
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(Some(variables))
}

/// Writes a file that only its owner may read.
pub(super) fn write(path: &Path, variables: &Settings) -> Result<()> {
    let mut text = String::new();
    for (name, value) in variables {
        ensure!(!value.contains('\n'), "the value of {name} has more than one line");
        text.push_str(&format!("{name}={value}\n"));
    }
    write_private(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_survive_writing_and_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("env");
        let variables = Settings::from([
            ("A".to_owned(), "postgres://u:p@h:1/d?a=b".to_owned()),
            ("B".to_owned(), String::new()),
        ]);
        write(&path, &variables).unwrap();
        assert_eq!(read(&path).unwrap(), Some(variables));
    }

    #[test]
    fn missing_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&folder.path().join("env")).unwrap(), None);
    }

    #[test]
    fn invalid_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("env");
        std::fs::write(&path, "# words\nA=1\nnonsense\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().starts_with("line 3 of "));
    }
}
