//! Locates the RabbitMQ and Erlang programs of this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::search_path::{self, advice};

/// Debian's wrapper in this folder switches to the user `rabbitmq` and the system's configuration.
const FOLDER_OF_WRAPPERS: &str = "/usr/sbin";

/// The broker's own start script and the Erlang port mapper.
#[derive(Clone, Debug)]
pub(super) struct RabbitBinaries {
    pub(super) server: PathBuf,
    pub(super) epmd: PathBuf,
}

impl RabbitBinaries {
    /// Finds the programs.
    pub(super) fn installed() -> Result<Self> {
        // The start script runs `erl` from the search path.
        let found = search_path::find("erl").and_then(|_erl| find_server().zip(find_epmd()));
        let (server, epmd) = found.with_context(|| advice("rabbitmq-server"))?;
        Ok(Self { server, epmd })
    }
}

fn find_server() -> Option<PathBuf> {
    let mut folders = vec![PathBuf::from("/usr/lib/rabbitmq/bin"), PathBuf::from("/opt/rabbitmq/sbin")];
    folders
        .extend(search_path::folders().into_iter().filter(|folder| folder != Path::new(FOLDER_OF_WRAPPERS)));
    folders.into_iter().map(|folder| folder.join("rabbitmq-server")).find(|path| path.is_file())
}

fn find_epmd() -> Option<PathBuf> {
    search_path::find("epmd").or_else(|| {
        let folder = search_path::folders_between("/usr/lib/erlang/", "bin").pop()?;
        Some(folder.join("epmd")).filter(|path| path.is_file())
    })
}
