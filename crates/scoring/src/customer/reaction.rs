//! What one message of the customer says about the answers before it.

use crate::answer::{fails, tells_of_a_finished_action};
use crate::lexicon::Group;
use crate::transcript::{Found, Item, Transcript, overlap, sentence_around};

/// A customer repeats themselves when two messages share more than this part of their words.
const SAME_MESSAGE: f64 = 0.7;
/// Shorter messages ("yes please") repeat by nature.
const REPEATABLE_WORDS: usize = 3;
/// A message with at most so many words can be nothing but an acknowledgement or the word "agent".
const FEW_WORDS: u32 = 6;

/// A word for a person stands at most so many words behind the word of asking.
const WISH_REACH: usize = 4;
/// Bytes between two phrases beyond which they do not belong together.
const LONGEST_GAP: usize = 48;
/// At most so many phrases of a kind are looked at: bounds the work on long texts.
const FEW_PHRASES: usize = 8;
/// At most so many words for "now" are looked at: bounds the work on long texts.
const FEW_NOWS: usize = 8;

/// Mockery is short; a longer message that thanks somewhere tells a story.
const MOCKING_WORDS: u32 = 24;

/// How the customer reacts to what they were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Says that it works or is solved, or praises and thanks for a finished action.
    Confirms,
    /// Thanks or praises.
    Thanks,
    /// Says goodbye, or wants nothing more.
    Closes,
    /// "Ok", "go ahead".
    Accepts,
    /// A stray letter or sign without a meaning.
    SaysNothing,
    /// Asks or tells something.
    Continues,
    /// Says again what was said before.
    Repeats,
    /// Says that it is wrong or not solved, or mocks it.
    Rejects,
    /// Wants a person.
    AsksForHuman,
    /// Leaves without what they came for.
    GivesUp,
}

/// The reaction, and the phrase that shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reacted {
    pub reaction: Reaction,
    pub phrase: Option<Found>,
}

impl Reacted {
    /// The reaction of the customer's item at `position` of `transcript.customer`.
    pub(super) fn of(transcript: &Transcript<'_>, position: usize) -> Option<Self> {
        let index = *transcript.customer.get(position)?;
        let item = transcript.item(index)?;
        let answer = transcript.answer_before(index);
        if let Some(phrase) = human_request(item) {
            return Some(Self { reaction: Reaction::AsksForHuman, phrase: Some(phrase) });
        }
        let Some(answer) = answer else {
            return Some(Self { reaction: Reaction::Continues, phrase: None });
        };
        if says_nothing(item) {
            return Some(Self { reaction: Reaction::SaysNothing, phrase: None });
        }
        Some(
            complaint(item, answer)
                .or_else(|| repetition(transcript, position, item))
                .or_else(|| content(item, answer))
                .unwrap_or(Self { reaction: Reaction::Continues, phrase: None }),
        )
    }
}

/// Whether the item holds at most a stray letter or signs: it changes nothing.
fn says_nothing(item: &Item<'_>) -> bool {
    let reading = &item.reading;
    let letters =
        item.message.content.chars().filter(|character| character.is_alphanumeric()).take(2).count();
    letters < 2 && reading.questions == 0 && reading.exclamations == 0 && reading.found.is_empty()
}

/// The words by which the item asks for a person.
pub(crate) fn human_request(item: &Item<'_>) -> Option<Found> {
    let bare_word =
        || item.first(Group::HumanWord).filter(|_| item.reading.words <= 2 && !item.has(Group::Negated));
    item.first(Group::HumanRequest).or_else(|| wished_person(item)).or_else(bare_word)
}

/// "I want … a person": a word of asking with a word for a person close behind it in the same sentence.
fn wished_person(item: &Item<'_>) -> Option<Found> {
    let text = item.message.content.as_str();
    let found = &item.reading.found;
    found.iter().enumerate().filter(|(_, verb)| verb.group == Group::HumanVerb).take(FEW_PHRASES).find_map(
        |(at, verb)| {
            let refused =
                found.get(..at).unwrap_or_default().iter().rev().take(FEW_PHRASES).any(|before| {
                    before.group == Group::Negation && is_close(text, before.end, verb.start, 1)
                });
            let behind = found.get(at..).unwrap_or_default().iter();
            let noun = behind
                .filter(|noun| noun.group == Group::HumanNoun && noun.start >= verb.end)
                .take(FEW_PHRASES);
            noun.copied()
                .find(|noun| is_close(text, verb.end, noun.start, WISH_REACH))
                .filter(|_| !refused)
                .map(|noun| Found { group: Group::HumanRequest, start: verb.start, end: noun.end })
        },
    )
}

/// Whether at most `words` words of one sentence stand between two places.
fn is_close(text: &str, from: usize, to: usize, words: usize) -> bool {
    text.get(from..to).is_some_and(|gap| {
        gap.len() <= LONGEST_GAP
            && !gap.contains(['.', '!', '?', '\n'])
            && gap.split_whitespace().count() <= words
    })
}

fn complaint(item: &Item<'_>, answer: &Item<'_>) -> Option<Reacted> {
    let rejects = |phrase| Some(Reacted { reaction: Reaction::Rejects, phrase: Some(phrase) });
    if let Some(phrase) = sarcasm(item) {
        return rejects(phrase);
    }
    if let Some(phrase) = item.first(Group::GiveUp) {
        return Some(Reacted { reaction: Reaction::GivesUp, phrase: Some(phrase) });
    }
    let last_of =
        |groups: &[Group]| item.reading.found.iter().copied().rfind(|found| groups.contains(&found.group));
    if let Some(phrase) = last_of(&[Group::Rejection, Group::Negated, Group::Still]) {
        // "The first one failed, but now it works": the later word holds.
        let confirmed_later = last_of(&[Group::Confirmation])
            .into_iter()
            .chain(success_now(item))
            .any(|confirmed| confirmed.start > phrase.start);
        if !confirmed_later {
            return rejects(phrase);
        }
    }
    if let Some(phrase) = annoyance(item).or_else(|| trouble(item, answer)).or_else(|| denial(item, answer)) {
        return rejects(phrase);
    }
    let leading_no = leading_no(item)?;
    match question_of(answer) {
        Question::AboutTheOutcome => rejects(leading_no),
        Question::AnythingElse | Question::Offer | Question::Other => None,
        Question::None => rejects(leading_no),
    }
}

/// The words by which the customer says that it works or is solved.
pub(crate) fn confirmation(item: &Item<'_>) -> Option<Found> {
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
fn success_now(item: &Item<'_>) -> Option<Found> {
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

/// Annoyance without a friendly word.
fn annoyance(item: &Item<'_>) -> Option<Found> {
    let friendly = item.has_any(&[Group::Thanks, Group::Praise, Group::Confirmation]);
    item.first(Group::Frustration).filter(|_| !friendly)
}

/// Trouble after an answer that asked nothing: told to a question it would be information.
fn trouble(item: &Item<'_>, answer: &Item<'_>) -> Option<Found> {
    let helped = item.has_any(&[Group::Thanks, Group::Confirmation]) || item.reading.questions > 0;
    item.first(Group::Trouble).filter(|_| !helped && question_of(answer) != Question::Other)
}

/// "It did not", when asked whether it helped.
fn denial(item: &Item<'_>, answer: &Item<'_>) -> Option<Found> {
    let asked = question_of(answer) == Question::AboutTheOutcome;
    item.first(Group::Negation).filter(|_| asked && !item.has(Group::Confirmation))
}

fn content(item: &Item<'_>, answer: &Item<'_>) -> Option<Reacted> {
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
    if let Some(phrase) =
        leading_yes(item).filter(|_| question_of(answer) == Question::AboutTheOutcome && !asks)
    {
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
            Question::AnythingElse | Question::None => reacted(Reaction::Thanks, thanks.or(Some(phrase))),
        };
    }
    if !asks && !opens_a_contrast(item) {
        // Thanks and praise for a finished action confirm it; for an answer they may be mere politeness.
        let is_full = thanks.is_some() && praise.is_some() && !item.has(Group::Request);
        if is_full && tells_of_a_finished_action(answer) && !fails(answer) {
            return reacted(Reaction::Confirms, praise);
        }
        if let Some(phrase) = thanks.or(praise.filter(|_| !item.has(Group::Request))) {
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
    let answers_a_question =
        matches!(question_of(answer), Question::Offer | Question::Other | Question::AboutTheOutcome);
    let accepted = item.first(Group::Acknowledge).or_else(|| item.first(Group::Consent));
    if !asks && !answers_a_question && item.reading.words <= FEW_WORDS && accepted.is_some() {
        return reacted(Reaction::Accepts, accepted);
    }
    None
}

/// Thanking twice repeats nothing that matters.
fn repetition(transcript: &Transcript<'_>, position: usize, item: &Item<'_>) -> Option<Reacted> {
    let courteous =
        item.has_any(&[Group::Thanks, Group::Close, Group::Praise]) && item.reading.questions == 0;
    (!courteous && repeats_earlier(transcript, position, SAME_MESSAGE))
        .then_some(Reacted { reaction: Reaction::Repeats, phrase: None })
}

/// Whether the customer's item at `position` says what an earlier one said.
pub(crate) fn repeats_earlier(transcript: &Transcript<'_>, position: usize, share: f64) -> bool {
    let words_at = |position: usize| {
        transcript
            .customer
            .get(position)
            .and_then(|index| transcript.item(*index))
            .map(|item| item.reading.content_words.as_slice())
            .unwrap_or_default()
    };
    let words = words_at(position);
    words.len() >= REPEATABLE_WORDS && (0..position).any(|earlier| overlap(words, words_at(earlier)) > share)
}

/// Sarcasm, sure or beside a complaint.
pub(crate) fn sarcasm(item: &Item<'_>) -> Option<Found> {
    let beside_complaint = || {
        let complains = item.has_any(&[
            Group::Negated,
            Group::Rejection,
            Group::Still,
            Group::Frustration,
            Group::Repetition,
        ]);
        item.first(Group::SarcasmWeak).filter(|_| complains)
    };
    item.first(Group::Sarcasm).or_else(beside_complaint).or_else(|| mockery(item))
}

/// Thanks or praise beside words that nobody uses who means it.
fn mockery(item: &Item<'_>) -> Option<Found> {
    let cue = item.first(Group::SarcasmCue)?;
    let honest = item.has_any(&[Group::Confirmation, Group::Close]) || confirmation(item).is_some();
    let flatters = item
        .first(Group::Praise)
        .or_else(|| item.first(Group::Thanks))
        .or_else(|| item.first(Group::Approval));
    flatters
        .filter(|_| !honest && item.reading.questions == 0 && item.reading.words <= MOCKING_WORDS)
        .map(|_| cue)
}

/// What the answering side asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    None,
    AboutTheOutcome,
    AnythingElse,
    /// "Shall I …?"
    Offer,
    Other,
}

/// The last question in `answer`.
pub(crate) fn question_of(answer: &Item<'_>) -> Question {
    let last = answer
        .reading
        .found
        .iter()
        .rev()
        .find(|found| matches!(found.group, Group::AsksOutcome | Group::AnythingElse));
    match last.map(|found| found.group) {
        Some(Group::AsksOutcome) if answer.reading.questions > 0 => Question::AboutTheOutcome,
        Some(Group::AnythingElse) => Question::AnythingElse,
        _ if answer.reading.questions > 0 && answer.has(Group::Offer) => Question::Offer,
        _ if answer.reading.questions > 0 => Question::Other,
        _ => Question::None,
    }
}

/// A "no" with which the message begins.
pub(crate) fn leading_no(item: &Item<'_>) -> Option<Found> {
    leading(item, Group::PlainNo)
}

fn leading_yes(item: &Item<'_>) -> Option<Found> {
    leading(item, Group::PlainYes)
}

fn leading(item: &Item<'_>, group: Group) -> Option<Found> {
    let text = item.message.content.as_str();
    let begin =
        text.len() - text.trim_start_matches(|first: char| first.is_whitespace() || first == '¡').len();
    item.first(group).filter(|found| found.start == begin)
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
