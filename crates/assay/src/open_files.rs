//! The limit of open file descriptors. Every connection needs one, and most systems start programs with a soft limit of
//! about a thousand although the hard limit is much higher.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors besides client connections: databases, logs, connections to services, listeners.
const RESERVED: u64 = 512;

/// Raises the soft limit to the hard limit.
pub fn raise_fd_limit() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if soft < hard
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::warn!(%error, soft, hard, "the limit of open files cannot be raised");
    }
}

/// Warns when the limit is too low for this number of client connections.
pub fn warn_if_below(connections: usize) {
    let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let needed = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(RESERVED);
    if limit < needed {
        tracing::warn!(
            open_files = limit,
            needed,
            "fewer files may be open than gateway.max_connections needs: raise the limit (ulimit -Hn, LimitNOFILE), \
             or lower the setting"
        );
    }
}
