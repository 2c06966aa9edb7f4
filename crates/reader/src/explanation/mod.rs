//! Why a score is what it is: exact quotes, signals with their effect, and sentences for people.

mod evidence;
mod reasons;
mod signals;

pub(crate) use self::evidence::EvidenceBook;
pub(crate) use self::reasons::Narrator;
pub(crate) use self::signals::{handoff_signals, signals};
