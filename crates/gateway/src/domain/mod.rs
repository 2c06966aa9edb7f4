//! The gateway's rules, without any I/O.

mod accept;
mod bearer;

pub(crate) use self::accept::prefers_json;
pub(crate) use self::bearer::bearer_key;
