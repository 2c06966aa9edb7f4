//! Conversations for import.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::harness::{Table, conversation, edited, set, unset};

/// Conversations and the agents they need, one per line.
pub struct Sample {
    pub conversations: PathBuf,
    pub agents: PathBuf,
}

/// An imported conversation with its ticket and evaluation.
pub struct Import {
    pub ticket_id: String,
    pub body: Value,
    pub ticket: Value,
    pub evaluation: Value,
}

impl Import {
    /// For messages.
    pub fn name(&self) -> String {
        format!("{} ({})", self.body["ticket_id"], self.ticket_id)
    }

    /// Timestamp of the first message: the conversation's date.
    pub fn started_at(&self) -> i64 {
        self.body["messages"][0]["timestamp"].as_i64().unwrap_or_default()
    }

    /// Timestamp of the last message.
    pub fn ended_at(&self) -> i64 {
        let messages = self.body["messages"].as_array();
        messages.and_then(|messages| messages.last()?["timestamp"].as_i64()).unwrap_or_default()
    }
}

/// The bundled sample and, where available, the one with real conversations.
pub fn samples() -> Result<Vec<Sample>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let mut samples = vec![sample(&workspace.join("examples"))];
    let real = sample(&workspace.join("../shared/data/samples"));
    if real.conversations.is_file() {
        samples.push(real);
    } else {
        writeln!(std::io::stderr(), "only the bundled sample is used: no {}", real.conversations.display())?;
    }
    Ok(samples)
}

fn sample(folder: &Path) -> Sample {
    Sample { conversations: folder.join("conversations.jsonl"), agents: folder.join("agents.jsonl") }
}

/// Expected number of tickets.
pub fn expected_rows() -> Result<usize> {
    let mut count = awkward().len();
    for sample in samples()? {
        count += std::fs::read_to_string(&sample.conversations)?.lines().count();
    }
    Ok(count)
}

/// Texts that are hard to write as CSV, and dates at the limits.
pub fn awkward() -> Vec<Value> {
    let subjects = [
        "=1+1",
        "+49 30 1234",
        "-2",
        "@all",
        "\tindented",
        "\r\nbroken",
        "＝1+1",
        "quotes \"inside\", commas, and\r\ntwo\nlines",
        "\"",
        "'=1",
        "null",
        "NaN",
        "Ünïcödé 😀 漢字",
        " spaces around ",
        "",
    ];
    let mut bodies: Vec<Value> = subjects
        .iter()
        .enumerate()
        .map(|(number, subject)| {
            edited(conversation(&format!("subject-{number}")), &[set("/subject", *subject)])
        })
        .collect();
    bodies.push(edited(conversation("no subject"), &[unset("/subject")]));
    bodies.push(edited(
        conversation("=cmd|' /C calc'!A0"),
        &[set("/source", "-x"), set("/source_account_id", "@y")],
    ));
    bodies.push(edited(conversation("first moment"), &[set("/messages/0/timestamp", 0)]));
    bodies
        .push(edited(conversation("last moment"), &[set("/messages/2/timestamp", 253_402_300_799_999_i64)]));
    let note = json!({"external_id": "note", "kind": "comment", "timestamp": 1_763_600_030_000_i64,
        "author": {"type": "teammate", "external_id": "bob"}, "content": "VIP, be quick"});
    let event = json!({"external_id": "event", "timestamp": 1_763_600_040_000_i64,
        "author": {"type": "system"}, "content": "Assigned to Bob"});
    let mut with_note = conversation("with a note and an event");
    if let Some(messages) = with_note["messages"].as_array_mut() {
        messages.splice(1..1, [note, event]);
    }
    bodies.push(with_note);
    bodies
}

/// Checks cells against hand-written values.
pub fn known_values(axis: &Table, audit: &Table) -> Result<()> {
    for table in [axis, audit] {
        for (ticket, column, cell) in [
            ("T-1001", "conversation_started_at", "2025-11-03T09:00:45.000Z"),
            ("T-1001", "conversation_ended_at", "2025-11-03T09:03:45.000Z"),
            ("T-1001", "source", "helpdesk"),
            ("T-1001", "source_account_id", ""),
            ("T-1001", "agent_names", "[\"Support Bot\"]"),
            ("T-1001", "ai_tools", "[\"custom\"]"),
            ("T-1001", "ai_involvement", "ai_only"),
            ("T-1001", "customer_messages", "3"),
            ("T-1001", "ai_messages", "2"),
            ("T-1001", "evaluation_status", "scored"),
            ("T-1003", "subject", "Réinitialiser le mot de passe"),
            ("T-1004", "source_account_id", "acme-eu"),
            ("T-1004", "human_messages", "1"),
            ("T-1004", "internal_comments", "1"),
            ("T-1004", "system_events", "1"),
            ("T-1009", "evaluation_status", "not_applicable"),
            ("T-1009", "axis_score", ""),
            ("T-1009", "ai_involvement", "no_ai"),
            ("T-1009", "agent_ids", "[]"),
            ("subject-0", "subject", "'=1+1"),
            ("subject-1", "subject", "'+49 30 1234"),
            ("subject-2", "subject", "'-2"),
            ("subject-3", "subject", "'@all"),
            ("subject-4", "subject", "'\tindented"),
            ("subject-5", "subject", "'\r\nbroken"),
            ("subject-6", "subject", "'＝1+1"),
            ("subject-7", "subject", "quotes \"inside\", commas, and\r\ntwo\nlines"),
            ("subject-8", "subject", "\""),
            ("subject-9", "subject", "'=1"),
            ("subject-10", "subject", "null"),
            ("subject-12", "subject", "Ünïcödé 😀 漢字"),
            ("subject-13", "subject", " spaces around "),
            ("subject-14", "subject", ""),
            ("no subject", "subject", ""),
            ("'=cmd|' /C calc'!A0", "source", "'-x"),
            ("'=cmd|' /C calc'!A0", "source_account_id", "'@y"),
            ("first moment", "conversation_started_at", "1970-01-01T00:00:00.000Z"),
            ("last moment", "conversation_ended_at", "9999-12-31T23:59:59.999Z"),
            ("with a note and an event", "internal_comments", "1"),
            ("with a note and an event", "system_events", "1"),
            ("with a note and an event", "human_messages", "1"),
        ] {
            let found = table.row("external_ticket_id", ticket)?.get(column).context(column)?;
            ensure!(found == cell, "{column} of {ticket}: {found:?} instead of {cell:?}");
        }
    }
    Ok(())
}
