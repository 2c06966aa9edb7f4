//! The LLM judge: the second scorer, behind any OpenAI-compatible `POST {url}/chat/completions`.
//!
//! A judge's answer overlays a built-in evaluation: it replaces the scores, the resolution, the charge and their reasons, and
//! adds its quotes. Countable facts stay those of the built-in scorer, and rules about facts override the answer
//! (`assay_scoring::Scorer::rule_on`). Other disagreement is flagged, and the setting `policy` decides whether the charge goes
//! to review. Without a usable answer the built-in evaluation is used, marked as a fallback with its reason. Without
//! `scoring.judge.url` the judge is off.
//!
//! Invariants:
//! - The transcript is data: it is sent apart from the instructions, encoded so that no text can escape its JSON string, and an
//!   answer must carry the case number, which the transcript cannot contain.
//! - A quote is an exact substring of the message that it names; a score needs a quote, but for the best handoff smoothness.
//! - A judgement ends by its deadline, retries included; a failing endpoint gets a cooldown.
//! - The spending of a day stays within its cap, lost answers included.

mod answer;
mod client;
mod completion;
mod config;
mod cooldown;
mod endpoint;
mod evidence;
mod judge;
mod lenient_json;
mod overlay;
mod probe;
mod prompt;
mod spending;

pub use self::config::{JudgeConfig, JudgeConfigError, JudgePolicy};
pub use self::judge::Judge;
pub use self::probe::{ProbeError, ProbeReport, probe};
