//! The gateway's use cases.

mod admit_request;
mod forward_call;
mod single_flight;

pub(crate) use self::admit_request::{KeyRing, RateLimit};
pub(crate) use self::forward_call::{Forward, forward, service_error};
