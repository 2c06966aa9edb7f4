//! Parser of a file of one rater's ratings of one writer's conversations.
//!
//! `ID | RA | IE | HS | status | by | charge | why` rates a conversation: scores in half points, `-` for not applicable. A
//! line that begins with spaces lists the acts of its items: `1 ask; 2 fit,act`.

use std::collections::BTreeMap;
use std::path::Path;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{ChargeAssessment, ResolutionStatus, ResolvedBy};

use super::read_text;
use crate::data::DataError;

/// Codes of acts in corpus files (table in `corpus/PROTOCOL.md`), in the order of `scoring`'s `Act::ALL`: `fit` is
/// `Act::Answer`, `beside` is `MissPoint`, `act` is `CarryOut`.
const ACTS: [&str; 24] = [
    "ask", "tell", "confirm", "accept", "thank", "doubt", "reject", "repeat", "person", "quit", "back",
    "off", "irony", "fit", "beside", "askback", "act", "claim", "promise", "decline", "refuse", "handover",
    "sorry", "close",
];

/// A rating of one conversation; `None` for not applicable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rating {
    /// In the order of [`Dimension::ALL`](crate::Dimension::ALL).
    pub scores: [Option<f64>; 3],
    pub status: Option<ResolutionStatus>,
    pub solver: Option<ResolvedBy>,
    pub charge: Option<ChargeAssessment>,
}

/// The ratings of a file by conversation.
pub(super) fn read_ratings(
    path: &Path,
    conversations: &[Conversation],
) -> Result<BTreeMap<String, Rating>, DataError> {
    parse(path, &read_text(path)?, |id| conversations.iter().any(|known| known.ticket_id == id))
}

fn parse(
    path: &Path,
    text: &str,
    is_known: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Rating>, DataError> {
    let mut ratings = BTreeMap::new();
    for (index, line) in text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let refused = |reason: String| DataError::Line { path: path.to_owned(), line: index + 1, reason };
        if line.starts_with(char::is_whitespace) {
            if ratings.is_empty() {
                return Err(refused("a rating begins with the id of its conversation".to_owned()));
            }
            check_acts(line).map_err(refused)?;
            continue;
        }
        let (id, rating) = parse_rating(line).map_err(refused)?;
        if !is_known(id) {
            return Err(refused(format!("there is no conversation {id}")));
        }
        if ratings.insert(id.to_owned(), rating).is_some() {
            return Err(refused(format!("{id} was rated before")));
        }
    }
    Ok(ratings)
}

fn parse_rating(line: &str) -> Result<(&str, Rating), String> {
    let fields: Vec<&str> = line.splitn(8, '|').map(str::trim).collect();
    let [id, accuracy, effort, smoothness, status, by, charge, _why] = fields.as_slice() else {
        return Err(format!(
            "it has {} fields: it must be `ID | RA | IE | HS | status | by | charge | why`",
            fields.len()
        ));
    };
    let charge = if *charge == "na" { ChargeAssessment::NotApplicable.as_str() } else { charge };
    let rating = Rating {
        scores: [parse_points("RA", accuracy)?, parse_points("IE", effort)?, parse_points("HS", smoothness)?],
        status: parse_name("status", status, ResolutionStatus::ALL, ResolutionStatus::as_str)?,
        solver: parse_name("by", by, ResolvedBy::ALL, ResolvedBy::as_str)?,
        charge: parse_name("charge", charge, ChargeAssessment::ALL, ChargeAssessment::as_str)?,
    };
    Ok((id, rating))
}

fn parse_points(field: &str, value: &str) -> Result<Option<f64>, String> {
    if value == "-" {
        return Ok(None);
    }
    let points = value.parse::<f64>().ok();
    let found = points.filter(|points| (1.0..=5.0).contains(points) && (points * 2.0).fract() == 0.0);
    found.map(Some).ok_or_else(|| format!("{field} is `{value}`: it must be 1 to 5 in halves, or `-`"))
}

fn parse_name<T: Copy>(
    field: &str,
    value: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Option<T>, String> {
    if value == "-" {
        return Ok(None);
    }
    let found = all.iter().copied().find(|known| name(*known) == value);
    let names = || all.iter().map(|known| name(*known)).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| format!("{field} is `{value}`: it must be one of {}, or `-`", names()))
}

/// Acts are used for training only; the benchmark just validates them.
fn check_acts(line: &str) -> Result<(), String> {
    for entry in line.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (place, acts) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
        if !place.parse::<usize>().is_ok_and(|place| place > 0) {
            return Err(format!("`{entry}` does not begin with the place of an item"));
        }
        let mut acts = acts.split([',', ' ']).filter(|act| !act.is_empty());
        if let Some(unknown) = acts.find(|act| !ACTS.contains(act)) {
            return Err(format!("`{unknown}` is not the code of an act"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, Rating>, String> {
        parse(Path::new("w1.r1.txt"), text, |id| id.starts_with("w1-")).map_err(|error| error.to_string())
    }

    #[test]
    fn file_is_parsed() {
        let text = "w1-01 | 4.5 | 5 | - | resolved | ai | supported | done | and more\n  1 ask; 2 fit,act\n\n\
            w1-02 | - | - | - | - | none | na | spam\n";
        let found = read(text).unwrap();
        assert_eq!(
            found["w1-01"],
            Rating {
                scores: [Some(4.5), Some(5.0), None],
                status: Some(ResolutionStatus::Resolved),
                solver: Some(ResolvedBy::Ai),
                charge: Some(ChargeAssessment::Supported),
            }
        );
        let spam = found["w1-02"];
        assert_eq!((spam.status, spam.charge), (None, Some(ChargeAssessment::NotApplicable)));
    }

    #[test]
    fn invalid_file_is_refused_with_line() {
        let cases = [
            ("  1 ask\n", "line 1: a rating begins"),
            ("w1-01 | 4 | 4\n", "line 1: it has 3 fields"),
            ("\nw1-01 | 4.2 | 4 | 4 | resolved | ai | na | x\n", "line 2: RA is `4.2`"),
            ("w1-01 | 4 | 4 | 6 | resolved | ai | na | x\n", "line 1: HS is `6`"),
            ("w1-01 | 4 | 4 | 4 | solved | ai | na | x\n", "line 1: status is `solved`"),
            ("w1-01 | 4 | 4 | 4 | - | bot | na | x\n", "line 1: by is `bot`"),
            ("w1-01 | 4 | 4 | 4 | - | ai | paid | x\n", "line 1: charge is `paid`"),
            ("w2-01 | 4 | 4 | 4 | - | ai | na | x\n", "line 1: there is no conversation w2-01"),
            ("w1-01 | 4 | 4 | 4 | - | ai | na | x\n  1 asks\n", "line 2: `asks` is not the code"),
            ("w1-01 | 4 | 4 | 4 | - | ai | na | x\n  ask\n", "line 2: `ask` does not begin"),
        ];
        for (text, reason) in cases {
            let refused = read(text).unwrap_err();
            assert!(refused.starts_with("w1.r1.txt, ") && refused.contains(reason), "{text}: {refused}");
        }
        let refused = read(&"w1-01 | 4 | 4 | 4 | - | ai | na | x\n".repeat(2)).unwrap_err();
        assert!(refused.contains("line 2: w1-01 was rated before"), "{refused}");
    }
}
