//! Words by which the customer confirms, thanks, accepts or says goodbye.

use super::question::{Question, leading_no, leading_yes, question_of};
use super::reaction::{Reacted, Reaction};
use crate::answer::{fails, tells_of_a_finished_action};
use crate::lexicon::Group;
use crate::transcript::{Found, Item, sentence_around};

/// A message with at most so many words can be nothing but an acknowledgement or the word "agent".
const FEW_WORDS: u32 = 6;

/// At most so many words for "now" are looked at: bounds the work on long texts.
const FEW_NOWS: usize = 8;

pub(super) fn content(item: &Item<'_>, answer: &Item<'_>) -> Option<Reacted> {
    if item.is_injected() {
        return None;
    }
    let reacted = |reaction, phrase| Some(Reacted { reaction, phrase });
    let asks = item.reading.questions > 0;
    if let Some(phrase) =
        confirmation(item).filter(|phrase| !item.reading.ends_with_question && !is_taken_back(item, *phrase))
    {
        return reacted(Reaction::Confirms, Some(phrase));
    }
    let good_news = match question_of(answer) {
        Question::AboutTheOutcome => leading_yes(item),
        Question::AboutTheTrouble => leading_no(item),
        _ => None,
    };
    if let Some(phrase) = good_news.filter(|_| !asks) {
        return reacted(Reaction::Confirms, Some(phrase));
    }
    let (thanks, praise) = (item.first(Group::Thanks), item.first(Group::Praise));
    let approval = item.first(Group::Approval).filter(|_| !asks && !opens_a_contrast(item));
    if let Some(phrase) = approval {
        return match question_of(answer) {
            // "That works" answers "is 8 pm fine?": it is what the customer wants done, not what was done.
            Question::Offer | Question::Other => reacted(Reaction::Accepts, Some(phrase)),
            Question::AboutTheOutcome => reacted(Reaction::Confirms, Some(phrase)),
            _ if tells_of_a_finished_action(answer) && !fails(answer) => {
                reacted(Reaction::Confirms, Some(phrase))
            }
            Question::AnythingElse | Question::AboutTheTrouble | Question::None => {
                reacted(Reaction::Thanks, thanks.or(Some(phrase)))
            }
        };
    }
    if !asks && !opens_a_contrast(item) {
        // Thanks and praise for a finished action confirm it; for an answer they may be mere politeness.
        let is_full = thanks.is_some() && praise.is_some() && !item.has(Group::Request);
        if is_full && tells_of_a_finished_action(answer) && !fails(answer) {
            return reacted(Reaction::Confirms, praise);
        }
        let courtesy = thanks.or(praise.filter(|_| !item.has(Group::Request)));
        if let Some(phrase) = courtesy.filter(|phrase| !is_doubtful(item, *phrase)) {
            return reacted(Reaction::Thanks, Some(phrase));
        }
        if let Some(phrase) = item.first(Group::Close) {
            return reacted(Reaction::Closes, Some(phrase));
        }
    }
    let declines = match question_of(answer) {
        Question::AnythingElse => !asks,
        // "No, the other one" declines an offer and asks for another.
        Question::Offer => {
            !asks && item.reading.words <= FEW_WORDS && !item.has_any(&[Group::Request, Group::Alternative])
        }
        _ => false,
    };
    if declines && leading_no(item).is_some() {
        return reacted(Reaction::Closes, leading_no(item));
    }
    // "Yes" to a question answers it and accepts nothing.
    let answers_a_question = matches!(
        question_of(answer),
        Question::Offer | Question::Other | Question::AboutTheOutcome | Question::AboutTheTrouble
    );
    let accepted = item.first(Group::Acknowledge).or_else(|| item.first(Group::Consent));
    if !asks && !answers_a_question && item.reading.words <= FEW_WORDS && accepted.is_some() {
        return reacted(Reaction::Accepts, accepted);
    }
    None
}

/// The words by which the customer says that it works or is solved.
pub(super) fn confirmation(item: &Item<'_>) -> Option<Found> {
    item.first(Group::Confirmation).or_else(|| success_now(item))
}

/// Whether trouble follows the confirmation in the same message ("it worked for a minute and then failed").
fn is_taken_back(item: &Item<'_>, confirmation: Found) -> bool {
    item.reading.found.iter().any(|later| {
        matches!(later.group, Group::Trouble | Group::Rejection | Group::Negated | Group::Still)
            && later.start >= confirmation.end
    })
}

/// "It is OK now", "I could finally log in": a word of success or ability beside a word for "now", in a sentence
/// that negates, asks and supposes nothing. The latest such sentence counts.
pub(super) fn success_now(item: &Item<'_>) -> Option<Found> {
    if !item.has(Group::Now) {
        return None;
    }
    let found = &item.reading.found;
    let text = item.message.content.as_str();
    let nows = found.iter().filter(|now| now.group == Group::Now).take(FEW_NOWS);
    nows.filter_map(|now| {
        let (start, end) = sentence_around(text, now.start, now.end);
        let begin = found.partition_point(|other| other.start < start);
        let inside = found.get(begin..).unwrap_or_default().iter().take_while(|other| other.end <= end);
        let mut success = None;
        for other in inside {
            match other.group {
                Group::Outcome | Group::Fine | Group::Able | Group::Praise => {
                    success = success.or(Some(*other))
                }
                Group::Negation
                | Group::Negated
                | Group::Conditional
                | Group::Request
                | Group::Demand
                | Group::Rejection
                | Group::Trouble
                | Group::Still
                | Group::Frustration => return None,
                _ => {}
            }
        }
        success.filter(|_| !text.get(..end).is_some_and(|sentence| sentence.ends_with(['?', '？'])))
    })
    .last()
}

/// Thanks or praise in one sentence with something that does not fit it: no sign of contentment.
fn is_doubtful(item: &Item<'_>, courtesy: Found) -> bool {
    let text = item.message.content.as_str();
    let (start, end) = sentence_around(text, courtesy.start, courtesy.end);
    item.reading.found.iter().any(|other| {
        other.start >= start
            && other.end <= end
            && matches!(
                other.group,
                Group::Frustration
                    | Group::Trouble
                    | Group::Rejection
                    | Group::Negated
                    | Group::Accusation
                    | Group::Demand
            )
    })
}

/// "Thanks, but …": the courtesy is not the message.
fn opens_a_contrast(item: &Item<'_>) -> bool {
    let courtesy = item
        .reading
        .found
        .iter()
        .find(|found| matches!(found.group, Group::Thanks | Group::Praise | Group::Close));
    courtesy.is_some_and(|courtesy| {
        item.reading.found.iter().any(|found| found.group == Group::Contrast && found.start >= courtesy.end)
    })
}
