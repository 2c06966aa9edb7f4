//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a file, by its path from the root.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The paths from the root of all files below a folder, without those in folders with a name of `skipped`.
pub fn files_below(folder: &str, skipped: &[&str]) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if !entry.file_type().unwrap().is_dir() {
                found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            } else if !skipped.iter().any(|name| path.ends_with(name)) {
                folders.push(path);
            }
        }
    }
    found
}
