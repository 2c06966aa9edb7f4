//! Checks each row against the imported body and the evaluation.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use assay_contracts::time::Timestamp;
use serde_json::{Value, json};

use super::input::Import;

type Row = BTreeMap<String, String>;

/// A row of `axis`.
pub fn axis(row: &Row, import: &Import) -> Result<()> {
    let evaluation = &import.evaluation;
    let mut expected = shared(import);
    for (column, pointer) in [
        ("axis_band", "/axis/band"),
        ("resolution_accuracy_reason", "/axis/dimensions/resolution_accuracy/reason"),
        ("interaction_effort_reason", "/axis/dimensions/interaction_effort/reason"),
        ("handoff_smoothness_reason", "/axis/dimensions/handoff_smoothness/reason"),
        ("customer_sentiment_start", "/sentiment/start"),
        ("customer_sentiment_end", "/sentiment/end"),
        ("repeated_information_count", "/effort/repeated_information"),
        ("duration_seconds", "/timeline/duration_seconds"),
        ("first_response_seconds", "/timeline/first_response_seconds"),
        ("language", "/language"),
    ] {
        expected.insert(column, plain(evaluation.pointer(pointer)));
    }
    for (column, pointer) in [
        ("axis_score", "/axis/score"),
        ("axis_excluding_handoff", "/axis/excluding_handoff"),
        ("resolution_accuracy", "/axis/dimensions/resolution_accuracy/score"),
        ("interaction_effort", "/axis/dimensions/interaction_effort/score"),
        ("handoff_smoothness", "/axis/dimensions/handoff_smoothness/score"),
    ] {
        expected.insert(column, decimals(evaluation.pointer(pointer), 1));
    }
    expected.insert("flags", plain(evaluation.get("flags")));
    expected.insert("confidence", decimals(lowest_confidence(evaluation).as_ref(), 2));
    agree(row, expected)?;
    let started = import.started_at();
    let span = (import.ended_at() - started) / 1_000;
    ensure!(
        row["duration_seconds"] == span.to_string(),
        "duration {} instead of {span}",
        row["duration_seconds"]
    );
    lists_are_consistent(row, import)
}

/// A row of `resolution_audit`.
pub fn audit(row: &Row, import: &Import) -> Result<()> {
    let evaluation = &import.evaluation;
    let mut expected = shared(import);
    for (column, pointer) in [
        ("resolution_status", "/resolution/status"),
        ("resolved_by", "/resolution/resolved_by"),
        ("resolution_basis", "/resolution/basis"),
        ("resolution_reason", "/resolution/reason"),
        ("charge_assessment", "/charge/assessment"),
        ("charge_reasons", "/charge/reasons"),
        ("customer_confirmed", "/resolution/customer_confirmed"),
        ("customer_replied_after_last_ai", "/timeline/customer_replied_after_last_ai"),
    ] {
        expected.insert(column, plain(evaluation.pointer(pointer)));
    }
    for (column, pointer) in [
        ("handoff_at", "/handoff/at"),
        ("first_human_reply_at", "/handoff/first_human_reply_at"),
        ("last_ai_message_at", "/timeline/last_ai_message_at"),
        ("last_customer_message_at", "/timeline/last_customer_message_at"),
    ] {
        expected.insert(
            column,
            evaluation.pointer(pointer).and_then(Value::as_i64).map(moment).unwrap_or_default(),
        );
    }
    expected.insert("axis_score", decimals(evaluation.pointer("/axis/score"), 1));
    expected.insert("resolution_confidence", decimals(evaluation.pointer("/resolution/confidence"), 2));
    let asked = evaluation["handoff"]["requested_by"] == "customer";
    expected.insert("customer_requested_human", asked.to_string());
    agree(row, expected)?;
    silence_agrees(row, evaluation)?;
    quote_is_evidence(row, evaluation)?;
    lists_are_consistent(row, import)
}

/// The columns of both files.
fn shared(import: &Import) -> BTreeMap<&'static str, String> {
    let (body, evaluation) = (&import.body, &import.evaluation);
    let counts = &evaluation["counts"];
    BTreeMap::from([
        ("ticket_id", import.ticket_id.clone()),
        ("external_ticket_id", guarded(body["ticket_id"].as_str())),
        ("source", guarded(Some(body["source"].as_str().unwrap_or("custom")))),
        ("source_account_id", guarded(body["source_account_id"].as_str())),
        ("subject", guarded(body["subject"].as_str())),
        ("conversation_started_at", moment(import.started_at())),
        ("conversation_ended_at", moment(import.ended_at())),
        ("imported_at", import.ticket["created_at"].as_i64().map(moment).unwrap_or_default()),
        ("evaluated_at", evaluation["created_at"].as_i64().map(moment).unwrap_or_default()),
        ("evaluation_status", plain(evaluation.get("status"))),
        ("ai_involvement", plain(evaluation.get("ai_involvement"))),
        ("customer_messages", sent_by(body, "contact").to_string()),
        ("ai_messages", sent_by(body, "ai").to_string()),
        ("human_messages", sent_by(body, "teammate").to_string()),
        ("system_events", sent_by(body, "system").to_string()),
        ("internal_comments", plain(counts.get("comment"))),
        ("handoff_state", plain(evaluation.pointer("/handoff/state"))),
        ("scorer", plain(evaluation.pointer("/scorer/type"))),
        ("scorer_version", plain(evaluation.pointer("/scorer/version"))),
        ("evaluation_id", plain(evaluation.get("id"))),
        ("transcript_sha256", plain(evaluation.get("transcript_sha256"))),
        ("schema_version", plain(evaluation.get("schema_version"))),
    ])
}

/// Messages (not comments) of authors of a type.
fn sent_by(body: &Value, author_type: &str) -> usize {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .filter(|message| message["author"]["type"] == author_type && message["kind"] != "comment")
        .count()
}

fn agree(row: &Row, expected: BTreeMap<&str, String>) -> Result<()> {
    for (column, cell) in expected {
        let found = row.get(column).with_context(|| format!("no column {column}"))?;
        ensure!(*found == cell, "{column}: {found:?} instead of {cell:?}");
    }
    Ok(())
}

fn lowest_confidence(evaluation: &Value) -> Option<Value> {
    let dimensions = evaluation["axis"]["dimensions"].as_object()?;
    let confidences = dimensions.values().filter_map(|dimension| dimension["confidence"].as_f64());
    confidences.min_by(f64::total_cmp).map(|lowest| json!(lowest))
}

fn silence_agrees(row: &Row, evaluation: &Value) -> Result<()> {
    let cell = &row["observed_silence_hours"];
    let hours = evaluation["timeline"]["observed_silence_hours"].as_f64();
    ensure!(cell.parse().ok() == hours, "observed_silence_hours: {cell:?} instead of {hours:?}");
    Ok(())
}

fn quote_is_evidence(row: &Row, evaluation: &Value) -> Result<()> {
    let first = evaluation["resolution"]["evidence"][0].as_u64();
    let quote =
        first.and_then(|index| evaluation["evidence"][usize::try_from(index).ok()?]["quote"].as_str());
    ensure!(
        row["evidence_quote"] == guarded(quote),
        "evidence_quote: {:?} instead of {quote:?}",
        row["evidence_quote"]
    );
    Ok(())
}

/// The cells with lists are JSON arrays: of messages that were sent, and of the agents that the evaluation names.
fn lists_are_consistent(row: &Row, import: &Import) -> Result<()> {
    let ids: Vec<String> =
        serde_json::from_str(&row["evidence_message_ids"]).context("evidence_message_ids")?;
    let messages = import.body["messages"].as_array().context("messages")?;
    for id in ids {
        ensure!(messages.iter().any(|message| message["external_id"] == id.as_str()), "no message {id}");
    }
    let agents: Vec<String> = serde_json::from_str(&row["agent_ids"]).context("agent_ids")?;
    let names: Vec<String> = serde_json::from_str(&row["agent_names"]).context("agent_names")?;
    ensure!(agents.len() == names.len(), "{agents:?} and {names:?}");
    for used in import.evaluation["ai_tools"].as_array().into_iter().flatten() {
        let id = used["agent_id"].as_str().unwrap_or_default();
        ensure!(agents.iter().any(|agent| agent == id), "agent {id} is not in {agents:?}");
    }
    Ok(())
}

fn moment(millis: i64) -> String {
    Timestamp::saturating_from_millis(millis).to_string()
}

/// The cell of a value that the product makes: a text as it is, a list as a JSON array, `null` as an empty cell.
fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn decimals(value: Option<&Value>, digits: usize) -> String {
    value.and_then(Value::as_f64).map(|number| format!("{number:.digits$}")).unwrap_or_default()
}

/// The cell of a text from outside: with `'` in front if a spreadsheet would read it as a formula.
fn guarded(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    let starts = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    if text.starts_with(starts) { format!("'{text}") } else { text.to_owned() }
}
