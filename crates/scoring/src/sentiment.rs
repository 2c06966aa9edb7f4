//! The customer's mood at the beginning and at the end.

use assay_contracts::evaluation::{Sentiment, SentimentLevel};

use crate::customer::{CustomerCourse, sarcasm};
use crate::lexicon::Group;
use crate::transcript::{Item, Transcript};

/// Reads the first third of the customer's messages and the way they end.
pub(crate) fn sentiment(transcript: &Transcript<'_>, course: &CustomerCourse) -> Sentiment {
    let items: Vec<&Item<'_>> = transcript.customer_items().collect();
    let opening = items.get(..items.len().div_ceil(3)).unwrap_or_default();
    let frustrated = items.iter().filter(|item| is_frustrated(item)).count();
    Sentiment {
        start: level(opening),
        end: end_level(&items, course),
        frustration_signals: frustrated as u32,
    }
}

fn is_frustrated(item: &Item<'_>) -> bool {
    item.has(Group::Frustration) || sarcasm(item).is_some() || item.reading.exclamations > 2
}

fn level(items: &[&Item<'_>]) -> SentimentLevel {
    let negative = items.iter().filter(|item| is_frustrated(item)).count();
    let positive = items.iter().filter(|item| is_pleased(item)).count();
    if negative > 0 && negative >= positive {
        SentimentLevel::Negative
    } else if positive > 0 {
        SentimentLevel::Positive
    } else {
        SentimentLevel::Neutral
    }
}

/// Praise; a "thanks" in a first request is mere courtesy.
fn is_pleased(item: &Item<'_>) -> bool {
    item.has(Group::Praise) && !item.is_injected() && !is_frustrated(item)
}

fn end_level(items: &[&Item<'_>], course: &CustomerCourse) -> SentimentLevel {
    let last_is_frustrated = items.last().is_some_and(|item| is_frustrated(item));
    if course.end.is_content() && !last_is_frustrated {
        SentimentLevel::Positive
    } else if course.end.is_unhappy() || last_is_frustrated && !course.end.is_content() {
        SentimentLevel::Negative
    } else {
        SentimentLevel::Neutral
    }
}
