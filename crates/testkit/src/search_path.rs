//! Finds installed programs.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Where programs are looked for: the caller's PATH, then the system's usual folders.
pub(crate) fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual =
        ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
    let mut folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    for folder in usual {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The first file called `program` on the search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    folders().into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What to do when the programs of a Debian package are not found.
pub(crate) fn advice(package: &str) -> String {
    format!(
        "{package} is not installed: install it with `sudo apt-get install -y --no-install-recommends {package}`"
    )
}

/// The folders matching `prefix` + anything + `suffix`, for example `/usr/lib/postgresql/` and `/bin`.
pub(crate) fn folders_between(prefix: &str, suffix: &str) -> Vec<PathBuf> {
    let Ok(entries) = Path::new(prefix).read_dir() else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path().join(suffix)).filter(|folder| folder.is_dir()).collect();
    folders.sort();
    folders
}
