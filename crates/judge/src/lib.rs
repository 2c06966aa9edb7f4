//! The LLM judge: the second scorer, behind any OpenAI-compatible `POST {url}/chat/completions`.
//!
//! A judge's answer is laid over a built-in evaluation: it replaces the scores, the resolution, the charge, and their
//! reasons, and adds its quotes. Everything that can be counted stays the built-in's, and a few rules about facts stay over
//! the answer (`assay_scoring::Scorer::rule_on`); where the two scorers differ otherwise, that is shown, and the setting
//! `policy` says whether a person shall look at the charge. Without a usable answer the built-in evaluation stands, marked as
//! a fall-back with its reason. Without `scoring.judge.url` nothing here is ever called.
//!
//! What always holds:
//! - the transcript is data: it travels apart from the instructions, encoded so that nothing in it can leave its place, and
//!   an answer must carry the case number, which the transcript cannot know;
//! - a quote is an exact substring of the message that it names; a score without one is not accepted;
//! - one judgement ends within its deadline, with all retries; a failing endpoint is left alone for a while;
//! - a day's spending stays within its cap, lost answers included.

mod answer;
mod circuit;
mod completion;
mod config;
mod endpoint;
mod evidence;
mod judge;
mod lenient_json;
mod overlay;
mod prompt;
mod retry;
mod spending;
mod trial;

pub use self::config::{JudgeConfig, JudgeConfigError, JudgePolicy};
pub use self::judge::Judge;
pub use self::trial::{TrialFault, TrialReport, try_out};
