//! Shared by the tests: the samples, and changes of conversations.
#![allow(dead_code, reason = "every test binary uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says why it is skipped"
)]

pub mod banks;
pub mod expectations;
pub mod variants;

use std::path::{Path, PathBuf};

use assay_contracts::conversation::{Author, Conversation, Message, MessageKind};
use assay_contracts::evaluation::{Evaluation, HandoffState, ResolutionStatus};
use assay_scoring::Scorer;

/// One scorer for all cases of a test binary.
pub fn scorer() -> &'static Scorer {
    static SCORER: std::sync::LazyLock<Scorer> = std::sync::LazyLock::new(|| Scorer::builtin().unwrap());
    &SCORER
}

/// Author of an added message.
#[derive(Debug, Clone, Copy)]
pub enum Speaker {
    Customer,
    Ai,
    System,
    Note,
}

/// A conversation from `(author type, text)`, a minute apart; a `note` is an internal comment of a teammate.
pub fn conversation(texts: &[(&str, &str)]) -> Conversation {
    let messages: Vec<serde_json::Value> = texts
        .iter()
        .enumerate()
        .map(|(index, (author, content))| {
            let (author, kind) =
                if *author == "note" { ("teammate", "comment") } else { (*author, "message") };
            serde_json::json!({"author": {"type": author, "external_id": "x"}, "content": content,
                "external_id": index.to_string(), "timestamp": index * 60_000, "kind": kind})
        })
        .collect();
    serde_json::from_value(serde_json::json!({"ticket_id": "t", "source": "custom", "messages": messages}))
        .unwrap()
}

/// Every sample.
pub fn all_samples() -> Vec<Conversation> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let files = ["endings.jsonl", "handoff.jsonl", "traps.jsonl", "authors.jsonl"];
    files.into_iter().flat_map(|file| read(&folder.join(file))).collect()
}

/// A file of the golden folder.
pub fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

/// The sample with this ticket id.
pub fn sample(ticket_id: &str) -> Conversation {
    all_samples().into_iter().find(|sample| sample.ticket_id == ticket_id).unwrap()
}

/// The conversations of a file of assess bodies.
pub fn read(path: &Path) -> Vec<Conversation> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| Conversation::parse(line.as_bytes()).unwrap()).collect()
}

/// The conversation with one more message at its end.
pub fn with(conversation: &Conversation, speaker: Speaker, content: &str) -> Conversation {
    let mut longer = conversation.clone();
    let last = conversation.messages.last().unwrap();
    let author = match speaker {
        Speaker::Customer => Author::Contact { external_id: "customer-7".to_owned(), name: None },
        Speaker::Ai => Author::Ai { id: None, external_id: Some("helper".to_owned()), name: None },
        Speaker::System => Author::System { external_id: None, name: None },
        Speaker::Note => Author::Teammate { external_id: "mara".to_owned(), name: None },
    };
    let kind = if matches!(speaker, Speaker::Note) { MessageKind::Comment } else { MessageKind::Message };
    longer.messages.push(Message {
        author,
        content: content.to_owned(),
        external_id: format!("added-{}", conversation.messages.len()),
        timestamp: last.timestamp.plus_millis(60_000),
        kind,
        ai_tool: None,
    });
    longer
}

/// Resolution accuracy and interaction effort; `None` where AXIS does not apply.
pub fn scores(scorer: &Scorer, conversation: &Conversation) -> Option<(f64, f64)> {
    let axis = scorer.evaluate(conversation).axis?;
    let dimensions = axis.dimensions;
    Some((dimensions.resolution_accuracy.score.value(), dimensions.interaction_effort.score.value()))
}

/// Handoff smoothness; `None` where AXIS does not apply.
pub fn handoff_smoothness(evaluation: &Evaluation) -> Option<f64> {
    Some(evaluation.axis.as_ref()?.dimensions.handoff_smoothness.score.value())
}

/// Whether an evaluation fits the ending of a conversation: a state in which the customer may end by `last_words.tsv`, or an ending
/// of `last_words.rs`. There `unhappy` means `not_resolved`, and `content` any other status.
pub fn fits_ending(evaluation: &Evaluation, ending: &str) -> bool {
    let status = evaluation.resolution.status;
    match ending {
        "rejected" | "gave_up" | "repeated" | "unhappy" => status == ResolutionStatus::NotResolved,
        "confirmed" | "closed" | "accepted" | "thanked" | "content" => {
            status != ResolutionStatus::NotResolved
        }
        "asked_for_human" => evaluation.handoff.state == HandoffState::RequestedNotCompleted,
        "open" => !evaluation.resolution.customer_confirmed,
        other => panic!("unknown ending {other}"),
    }
}
