//! The customer's mood at the beginning and at the end.

use assay_contracts::evaluation::{Sentiment, SentimentLevel};

use crate::course::CustomerCourse;
use crate::reader::{Act, MessageActs, Reading};
use crate::transcript::Transcript;

/// Acts of a customer who is frustrated.
const FRUSTRATED: [Act; 4] = [Act::Reject, Act::Irony, Act::GiveUp, Act::Repeat];

/// Start: the first third of the customer's messages. End: their final state.
pub(crate) fn sentiment(
    transcript: &Transcript<'_>,
    reading: &Reading,
    course: &CustomerCourse,
) -> Sentiment {
    let acts: Vec<MessageActs> = transcript.customer.iter().map(|index| reading.acts(*index)).collect();
    let opening = acts.get(..acts.len().div_ceil(3)).unwrap_or_default();
    let is_frustrated = |acts: &MessageActs| acts.has_any(&FRUSTRATED);
    let start = if opening.iter().any(is_frustrated) {
        SentimentLevel::Negative
    } else if opening.iter().any(|acts| acts.has(Act::Confirm)) {
        SentimentLevel::Positive
    } else {
        SentimentLevel::Neutral
    };
    let end = if course.end.is_satisfied() {
        SentimentLevel::Positive
    } else if course.end.is_unhappy() || acts.last().is_some_and(is_frustrated) {
        SentimentLevel::Negative
    } else {
        SentimentLevel::Neutral
    };
    let frustration_signals = acts.iter().filter(|acts| is_frustrated(acts)).count() as u32;
    Sentiment { start, end, frustration_signals }
}
