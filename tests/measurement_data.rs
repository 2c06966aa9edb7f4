//! The folder `shared` beside the workspace, with conversations for measuring that may not be in the repository. Tests that
//! need it end their names with `_on_measurement_data`. Without it they are skipped and say so, unless
//! `MEASUREMENT_DATA=required` demands it.

#![allow(clippy::print_stderr, reason = "says that the test is skipped")]

use std::path::{Path, PathBuf};

/// The path of `folder` in `shared`; `None` if it is missing.
pub fn measurement_data(folder: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    let is_required = std::env::var_os("MEASUREMENT_DATA").is_some_and(|value| value == "required");
    assert!(!is_required, "{} is missing", folder.display());
    eprintln!("SKIPPED: {} is missing", folder.display());
    None
}
