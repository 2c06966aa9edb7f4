//! Parses the judge's answer: tolerant of form, strict about content.

use assay_contracts::evaluation::{
    ChargeAssessment, ResolutionBasis as Basis, ResolutionStatus as Status, ResolvedBy, Score,
};
use assay_scoring::Opinion;
use serde_json::Value;

use crate::completion::Completion;
use crate::lenient_json::{NoObject, find_object};

/// Maximum length of a reason, in characters; longer ones are truncated.
const MAX_REASON_CHARS: usize = 400;
/// Maximum number of quotes of a section; further ones are ignored.
const MAX_QUOTES: usize = 8;

/// A judge's answer; its quotes are not located yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub resolution_accuracy: Section<Score>,
    pub interaction_effort: Section<Score>,
    /// `None` when omitted.
    pub handoff_smoothness: Option<Section<Score>>,
    pub resolution: Section<ResolutionFinding>,
}

/// The finding of the section `resolution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResolutionFinding {
    pub status: Status,
    pub basis: Basis,
    /// `None` when omitted.
    pub resolved_by: Option<ResolvedBy>,
    /// `None` when omitted.
    pub charge: Option<ChargeAssessment>,
}

/// A section of the answer: a finding with its reason and quotes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section<T> {
    pub finding: T,
    pub reason: String,
    pub quotes: Vec<Quote>,
}

/// A quote as given by the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quote {
    /// Number of the message, from 1.
    pub message: usize,
    pub words: String,
}

/// An unusable answer. The text is sent to the judge for a repair, and logged: it contains nothing of the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("it ends before it is complete: be brief")]
    CutOff,
    #[error("{0}")]
    NoObject(NoObject),
    #[error("\"case\" is not the case number of the question")]
    WrongCaseNumber,
    #[error("\"{member}\" {rule}")]
    Member { member: String, rule: &'static str },
    #[error(
        "no quote of \"{section}\" is usable: each must be copied word for word from the message it names, and that message must be visible to the customer and written by an author who may be quoted"
    )]
    NoQuote { section: &'static str },
    #[error("\"resolution\" is based on the customer's confirmation and quotes no words of the customer")]
    NoConfirmation,
    #[error(
        "\"resolution\" says that a human solved it, and no human wrote, neither to the customer nor in a note"
    )]
    NoHuman,
}

impl AnswerError {
    /// Whether the quotes are the cause.
    pub(crate) const fn is_about_quotes(&self) -> bool {
        matches!(self, Self::NoQuote { .. } | Self::NoConfirmation)
    }
}

impl Answer {
    /// Parses the text of a completion as the answer for this case number.
    pub(crate) fn parse(completion: &Completion, case: &str) -> Result<Self, AnswerError> {
        let object = match find_object(&completion.text, "resolution_accuracy") {
            Ok(object) => object,
            Err(_) if completion.is_cut_off => return Err(AnswerError::CutOff),
            Err(error) => return Err(AnswerError::NoObject(error)),
        };
        if object["case"].as_str().map(str::trim) != Some(case) {
            return Err(AnswerError::WrongCaseNumber);
        }
        Ok(Self {
            resolution_accuracy: parse_section(&object, "resolution_accuracy", parse_score)?,
            interaction_effort: parse_section(&object, "interaction_effort", parse_score)?,
            handoff_smoothness: parse_handoff(&object)?,
            resolution: parse_section(&object, "resolution", parse_resolution)?,
        })
    }

    /// The findings without reasons and quotes.
    pub(crate) fn opinion(&self) -> Opinion {
        let ResolutionFinding { status, basis, resolved_by, charge } = self.resolution.finding;
        Opinion {
            resolution_accuracy: self.resolution_accuracy.finding,
            interaction_effort: self.interaction_effort.finding,
            handoff_smoothness: self.handoff_smoothness.as_ref().map(|section| section.finding),
            status,
            basis,
            resolved_by,
            charge,
        }
    }
}

/// A section without a score counts as omitted.
fn parse_handoff(object: &Value) -> Result<Option<Section<Score>>, AnswerError> {
    let name = "handoff_smoothness";
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) if members.get("score").is_none_or(Value::is_null) => Ok(None),
        Some(_) => parse_section(object, name, parse_score).map(Some),
    }
}

fn parse_section<T>(
    object: &Value,
    name: &'static str,
    parse_finding: impl Fn(&Value, &str) -> Result<T, AnswerError>,
) -> Result<Section<T>, AnswerError> {
    let Some(section) = object.get(name).filter(|section| section.is_object()) else {
        return Err(member_error(name, "must be an object"));
    };
    let finding = parse_finding(section, name)?;
    let reason = section["reason"].as_str().map(one_line).filter(|reason| !reason.is_empty());
    let Some(reason) = reason else {
        return Err(member_error(format!("{name}.reason"), "must be one or two sentences"));
    };
    let quotes = section["quotes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let quotes = quotes.iter().take(MAX_QUOTES).filter_map(parse_quote).collect();
    Ok(Section { finding, reason, quotes })
}

fn member_error(member: impl Into<String>, rule: &'static str) -> AnswerError {
    AnswerError::Member { member: member.into(), rule }
}

/// A number, or a string with one. A score out of range is an error: the model has not understood the scale.
fn parse_score(section: &Value, name: &str) -> Result<Score, AnswerError> {
    let value = match &section["score"] {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().replace(',', ".").parse().ok(),
        _ => None,
    };
    match value {
        Some(value) if (1.0..=5.0).contains(&value) => Ok(Score::nearest(value)),
        _ => Err(member_error(format!("{name}.score"), "must be a number from 1.0 to 5.0")),
    }
}

fn parse_resolution(section: &Value, name: &str) -> Result<ResolutionFinding, AnswerError> {
    let Some(status) = parse_name(Status::ALL, Status::as_str, &section["status"]) else {
        return Err(member_error(format!("{name}.status"), "must be resolved, partial or not_resolved"));
    };
    let rule = match status {
        Status::Resolved => "must be customer_confirmed, action_completed, answer_given or human_resolved",
        Status::Partial => "must be silence_only, answer_given, action_completed or escalated",
        Status::NotResolved => "must be customer_rejected, escalated or no_answer",
    };
    let basis = parse_name(Basis::ALL, Basis::as_str, &section["basis"])
        .filter(|basis| is_compatible(*basis, status))
        .ok_or_else(|| member_error(format!("{name}.basis"), rule))?;
    let parse_resolved_by = |value: &Value| parse_name(ResolvedBy::ALL, ResolvedBy::as_str, value);
    let resolved_by = parse_optional(&section["resolved_by"], parse_resolved_by).map_err(|()| {
        member_error(format!("{name}.resolved_by"), "must be ai, human, customer, none or unknown")
    })?;
    let charge = parse_optional(&section["charge"], parse_charge).map_err(|()| {
        member_error(format!("{name}.charge"), "must be supported, review, disputed or not_applicable")
    })?;
    Ok(ResolutionFinding { status, basis, resolved_by, charge })
}

/// The value with this name, ignoring case and with spaces or hyphens for underscores.
fn parse_name<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, value: &Value) -> Option<T> {
    let word = value.as_str()?.trim().to_lowercase().replace([' ', '-'], "_");
    all.iter().copied().find(|candidate| name(*candidate) == word)
}

fn parse_charge(value: &Value) -> Option<ChargeAssessment> {
    let is_abbreviation =
        value.as_str().is_some_and(|text| matches!(text.trim(), "na" | "n/a" | "NA" | "N/A"));
    if is_abbreviation {
        return Some(ChargeAssessment::NotApplicable);
    }
    parse_name(ChargeAssessment::ALL, ChargeAssessment::as_str, value)
}

/// `None` when the member is absent, null or empty.
fn parse_optional<T>(value: &Value, parse: impl Fn(&Value) -> Option<T>) -> Result<Option<T>, ()> {
    let is_omitted = value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
    if is_omitted { Ok(None) } else { parse(value).map(Some).ok_or(()) }
}

const fn is_compatible(basis: Basis, status: Status) -> bool {
    match basis {
        Basis::CustomerConfirmed | Basis::HumanResolved => matches!(status, Status::Resolved),
        Basis::ActionCompleted | Basis::AnswerGiven => matches!(status, Status::Resolved | Status::Partial),
        Basis::SilenceOnly => matches!(status, Status::Partial),
        Basis::Escalated => matches!(status, Status::Partial | Status::NotResolved),
        Basis::CustomerRejected | Basis::NoAnswer => matches!(status, Status::NotResolved),
    }
}

/// `None` when the quote is malformed: it is ignored.
fn parse_quote(value: &Value) -> Option<Quote> {
    let message = match &value["message"] {
        Value::Number(number) => usize::try_from(number.as_u64()?).ok()?,
        Value::String(text) => text.trim().trim_start_matches('#').parse().ok()?,
        _ => return None,
    };
    Some(Quote { message, words: value["quote"].as_str()?.trim().to_owned() })
}

/// The text on one line without control characters, truncated.
fn one_line(text: &str) -> String {
    let text: String =
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_REASON_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("").trim_end()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        let quotes = json!([{"message": 1, "quote": "thank you"}]);
        json!({
            "case": "abc",
            "resolution_accuracy": {"score": 4.5, "reason": "Solved.", "quotes": quotes},
            "interaction_effort": {"score": 4, "reason": "Easy.", "quotes": quotes},
            "handoff_smoothness": {"score": 3.5, "reason": "Slow.", "quotes": quotes},
            "resolution": {"status": "resolved", "basis": "answer_given", "resolved_by": "ai", "charge": "supported", "reason": "Answered.", "quotes": quotes},
        })
    }

    fn with(pointer: &str, value: Value) -> Value {
        let mut answer = good();
        *answer.pointer_mut(pointer).unwrap() = value;
        answer
    }

    fn whole(text: impl ToString) -> Completion {
        Completion { text: text.to_string(), is_cut_off: false }
    }

    fn parse(answer: &Value) -> Result<Answer, AnswerError> {
        Answer::parse(&whole(answer), "abc")
    }

    #[test]
    fn answer_is_parsed_in_common_variants() {
        let expected = parse(&good()).unwrap();
        assert_eq!(expected.resolution_accuracy.finding, Score::nearest(4.5));
        let forms = [
            with("/resolution_accuracy/score", json!("4.5")),
            with("/resolution_accuracy/score", json!(" 4,5 ")),
            with("/resolution/status", json!("Resolved")),
            with("/resolution/basis", json!("answer given")),
            with("/resolution/resolved_by", json!(" AI")),
            with("/resolution/charge", json!("Supported")),
            with("/handoff_smoothness/score", json!("3.5")),
            with("/resolution/reason", json!(" Answered.\n")),
            with("/resolution/quotes/0/message", json!("#1")),
            with("/case", json!(" abc")),
        ];
        for form in forms {
            assert_eq!(parse(&form), Ok(expected.clone()), "{form}");
        }
        let fenced = format!("Sure!\n```json\n{}\n```", good());
        assert_eq!(Answer::parse(&whole(fenced), "abc"), Ok(expected));
    }

    #[test]
    fn invalid_member_is_named_in_the_error() {
        let cases = [
            (with("/case", json!("other")), "\"case\""),
            (with("/case", Value::Null), "\"case\""),
            (with("/resolution_accuracy/score", json!(5.5)), "\"resolution_accuracy.score\""),
            (with("/resolution_accuracy/score", json!(0)), "\"resolution_accuracy.score\""),
            (with("/interaction_effort/score", json!("good")), "\"interaction_effort.score\""),
            (with("/interaction_effort/score", json!("NaN")), "\"interaction_effort.score\""),
            (with("/interaction_effort", json!(4)), "\"interaction_effort\""),
            (with("/interaction_effort/reason", json!(" ")), "\"interaction_effort.reason\""),
            (with("/handoff_smoothness", json!("smooth")), "\"handoff_smoothness\""),
            (with("/handoff_smoothness/score", json!(0)), "\"handoff_smoothness.score\""),
            (with("/resolution/resolved_by", json!("the bot")), "\"resolution.resolved_by\""),
            (with("/resolution/resolved_by", json!(1)), "\"resolution.resolved_by\""),
            (with("/resolution/charge", json!("yes")), "\"resolution.charge\""),
            (with("/resolution/status", json!("solved")), "\"resolution.status\""),
            (with("/resolution/basis", json!("customer_rejected")), "\"resolution.basis\""),
        ];
        for (answer, place) in cases {
            let error = parse(&answer).unwrap_err().to_string();
            assert!(error.contains(place), "{place}: {error}");
        }
    }

    #[test]
    fn handoff_resolved_by_and_charge_are_optional() {
        for omitted in [Value::Null, json!({}), json!({"score": null, "reason": "No handoff."})] {
            let answer = parse(&with("/handoff_smoothness", omitted)).unwrap();
            assert_eq!(answer.handoff_smoothness, None);
        }
        for omitted in [Value::Null, json!(""), json!(" ")] {
            assert_eq!(parse(&with("/resolution/charge", omitted.clone())).unwrap().opinion().charge, None);
            let answer = parse(&with("/resolution/resolved_by", omitted)).unwrap();
            assert_eq!(answer.opinion().resolved_by, None);
        }
        let mut minimal = good();
        minimal.as_object_mut().unwrap().remove("handoff_smoothness");
        minimal["resolution"]
            .as_object_mut()
            .unwrap()
            .retain(|name, _| name != "charge" && name != "resolved_by");
        let opinion = parse(&minimal).unwrap().opinion();
        assert_eq!((opinion.handoff_smoothness, opinion.resolved_by, opinion.charge), (None, None, None));
        let charge = parse(&with("/resolution/charge", json!("n/a"))).unwrap().opinion().charge;
        assert_eq!(charge, Some(ChargeAssessment::NotApplicable));
    }

    #[test]
    fn truncated_answer_is_reported_as_cut_off() {
        let text = good().to_string();
        let half = whole(&text[..text.len() / 2]);
        assert_eq!(Answer::parse(&half, "abc"), Err(AnswerError::NoObject(NoObject::CutOff)));
        let cut_off = Completion { is_cut_off: true, ..half };
        assert_eq!(Answer::parse(&cut_off, "abc"), Err(AnswerError::CutOff));
    }

    #[test]
    fn reason_is_one_line_of_bounded_length() {
        let long = with("/resolution/reason", json!("a\u{0}b\n".repeat(1_000)));
        let reason = parse(&long).unwrap().resolution.reason;
        assert!(reason.starts_with("a b a b") && reason.ends_with('…'), "{reason}");
        assert!(reason.chars().count() <= MAX_REASON_CHARS + 1);
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "\\PC{0,300}") {
            let _ = Answer::parse(&whole(text), "abc");
        }

        #[test]
        fn score_is_accepted_iff_in_range(score in -10.0..20.0_f64) {
            let parsed = parse(&with("/resolution_accuracy/score", json!(score)));
            prop_assert_eq!(parsed.is_ok(), (1.0..=5.0).contains(&score));
        }
    }
}
