//! How the customer reacts, message by message, and in which state they end.

mod end_state;
mod reaction;

pub(crate) use self::end_state::{CustomerCourse, EndState};
pub(crate) use self::reaction::{Question, Reaction, leading_no, question_of, repeats_earlier, sarcasm};
