//! How the customer reacts, message by message, and in which state they end.

mod complaint;
mod content;
mod end_state;
mod question;
mod reaction;
mod wish;

pub(crate) use self::complaint::{repeats_earlier, sarcasm};
pub(crate) use self::end_state::{CustomerCourse, EndState};
pub(crate) use self::question::{Question, leading_no, question_of};
pub(crate) use self::reaction::Reaction;
