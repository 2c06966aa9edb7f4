//! The use cases.

mod delete_evaluations;
mod evaluate_conversations;
mod fail_expired;
mod give_up;
mod handle_error;
mod judge_conversations;
mod new_evaluation;
mod read_evaluation;
mod run_maintenance;
mod webhook_subscribers;

pub(crate) use self::delete_evaluations::delete_evaluations;
pub(crate) use self::evaluate_conversations::{Accepted, EvaluateConversations, EvaluateError};
pub(crate) use self::fail_expired::fail_expired;
pub(crate) use self::handle_error::HandleError;
pub(crate) use self::judge_conversations::JudgeConversations;
pub(crate) use self::read_evaluation::read_evaluation;
pub(crate) use self::run_maintenance::run_maintenance;
pub(crate) use self::webhook_subscribers::WebhookSubscribers;
