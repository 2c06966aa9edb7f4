//! The console's rules, without I/O.

mod dates;
mod failed_sign_ins;
mod numbers;
mod request_rules;
mod words;

pub(crate) use self::dates::{When, day_of, day_text, parse_day};
pub(crate) use self::failed_sign_ins::FailedSignIns;
pub(crate) use self::numbers::{change, count, share, signed};
pub(crate) use self::request_rules::{cookie_value, is_local_path, is_own_form, is_same};
pub(crate) use self::words::{sentence, words};
