//! The gateway's rules, without I/O.

mod accept;
mod bearer;

pub(crate) use self::accept::prefers_json;
pub(crate) use self::bearer::bearer_key;
