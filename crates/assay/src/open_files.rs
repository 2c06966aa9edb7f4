//! How many files the process may have open: every connection is one, and most systems start programs with room for a
//! thousand although they would allow many more.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files beside connections of clients: databases, logs, connections to services, listeners.
const OTHERS: u64 = 512;

/// Allows as many open files as the system lets a process have.
pub fn allow_as_many_as_possible() {
    let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if now < most
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, most, most)
    {
        tracing::warn!(%error, now, most, "the limit of open files cannot be raised");
    }
}

/// Says so when `connections` do not fit.
pub fn warn_when_short(connections: usize) {
    let Ok((now, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let needed = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(OTHERS);
    if now < needed {
        tracing::warn!(
            open_files = now,
            needed,
            "fewer files may be open than gateway.max_connections needs: raise the limit (ulimit -Hn, LimitNOFILE), \
             or lower the setting"
        );
    }
}
