//! Explanations of scores: exact quotes, signals with their effects, and reasons in plain sentences.

mod evidence;
mod reasons;
mod signals;

pub(crate) use self::evidence::EvidenceCollector;
pub(crate) use self::reasons::ReasonWriter;
pub(crate) use self::signals::{handoff_signals, signals};
