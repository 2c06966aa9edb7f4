//! The use cases.

mod evaluate_conversations;
mod judge_conversations;
mod read_evaluation;

pub(crate) use self::evaluate_conversations::EvaluateConversations;
pub(crate) use self::judge_conversations::JudgeConversations;
pub(crate) use self::read_evaluation::read_evaluation;
