//! Folders that can run out of space: small tmpfs mounts where permitted, plain folders elsewhere.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::files::remove_if_there;

/// A folder, on its own file system if mounting is permitted. Dropping it unmounts the file system.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
    is_mounted: bool,
}

impl SmallDisk {
    /// Creates the folder, on a file system of this size if mounting is permitted.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn at(folder: &Path, megabytes: u32) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let kind = Some("tmpfs");
        let options = format!("size={megabytes}m,mode=755");
        let mounted = mount(kind, folder, kind, MsFlags::empty(), Some(options.as_str()));
        Ok(Self { folder: folder.to_owned(), is_mounted: mounted.is_ok() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it can be filled without harm to others.
    pub fn can_be_filled(&self) -> bool {
        self.is_mounted
    }

    /// Fills the file system completely.
    ///
    /// # Errors
    /// When it is not a file system of its own.
    pub fn fill(&self) -> Result<()> {
        ensure!(self.is_mounted, "only a file system of its own may be filled");
        let mut ballast = File::create(self.ballast()).context("cannot create the ballast")?;
        for size in [1 << 20, 4096, 1] {
            let block = vec![0_u8; size];
            while ballast.write_all(&block).is_ok() {}
        }
        Ok(())
    }

    /// Frees the space again.
    ///
    /// # Errors
    /// When the ballast cannot be removed.
    pub fn free(&self) -> Result<()> {
        remove_if_there(&self.ballast())
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            // Lazy: unmounted when its last user is gone.
            let _ = umount2(&self.folder, MntFlags::MNT_DETACH);
        }
    }
}
