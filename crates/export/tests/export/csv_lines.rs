//! The cells of the files, read with the crate `csv`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use assay_contracts::evaluation::EvaluationStatus;
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome};
use assay_contracts::export::ExportKind;
use assay_export::domain::csv::{header, render};
use assay_platform::runtime::new_id;
use proptest::prelude::*;

use crate::samples::{STARTED, changed, evaluated};

fn cells(kind: ExportKind, event: &ConversationEvaluated) -> Result<BTreeMap<String, String>> {
    let file = format!("{}{}\r\n", header(kind), render(kind, event));
    let mut reader = csv::Reader::from_reader(file.as_bytes());
    let names = reader.headers()?.clone();
    // The reader refuses a line whose length differs from the header.
    let line = reader.records().next().context("no line")??;
    Ok(names.iter().zip(line.iter()).map(|(name, cell)| (name.to_owned(), cell.to_owned())).collect())
}

fn assert_cells(cells: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    for (name, cell) in expected {
        assert_eq!(cells.get(*name).map(String::as_str), Some(*cell), "{name}");
    }
}

#[test]
fn axis_line_contains_scores_and_observations() -> Result<()> {
    let event = evaluated(new_id(), STARTED);
    let cells = cells(ExportKind::Axis, &event)?;
    assert_eq!(cells["ticket_id"], event.ticket.id.to_string());
    assert_eq!(cells["evaluation_id"], event.evaluation_id.to_string());
    assert_eq!(cells["transcript_sha256"], "ab".repeat(32));
    assert_cells(
        &cells,
        &[
            ("external_ticket_id", "T-1001"),
            ("source", "zendesk"),
            ("source_account_id", "acct, \"one\""),
            ("subject", "'=cmd|' /C calc'!A0"),
            ("conversation_started_at", "2026-11-20T07:00:00.000Z"),
            ("conversation_ended_at", "2026-11-20T07:01:01.500Z"),
            ("imported_at", "2026-11-20T07:01:30.000Z"),
            ("evaluated_at", "2026-11-20T07:02:00.000Z"),
            ("evaluation_status", "scored"),
            ("ai_involvement", "ai_assisted"),
            ("ai_tools", "[\"intercom\"]"),
            ("agent_ids", "[\"0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11\"]"),
            ("agent_names", r#"["Bot, the \"first\""]"#),
            ("axis_score", "4.0"),
            ("axis_band", "good"),
            ("axis_excluding_handoff", "3.5"),
            ("resolution_accuracy", "3.1"),
            ("resolution_accuracy_reason", "It was solved."),
            ("interaction_effort", "3.9"),
            ("interaction_effort_reason", "'+1 step"),
            ("handoff_smoothness", "5.0"),
            ("handoff_smoothness_reason", "It went well."),
            ("handoff_state", "completed"),
            ("confidence", "0.41"),
            ("customer_messages", "2"),
            ("ai_messages", "3"),
            ("human_messages", "1"),
            ("internal_comments", "4"),
            ("system_events", "5"),
            ("customer_sentiment_start", "neutral"),
            ("customer_sentiment_end", "positive"),
            ("repeated_information_count", "1"),
            ("duration_seconds", "61"),
            ("first_response_seconds", "1"),
            ("language", "en"),
            ("flags", "[\"SHORT_CONVERSATION\",\"MIXED_AUTHORS\"]"),
            ("evidence_message_ids", "[\"msg_2\",\"msg_1\"]"),
            ("scorer", "builtin"),
            ("scorer_version", "1.2.3"),
            ("schema_version", "1"),
        ],
    );
    Ok(())
}

#[test]
fn audit_line_contains_verdict_and_evidence() -> Result<()> {
    let cells = cells(ExportKind::ResolutionAudit, &evaluated(new_id(), STARTED))?;
    assert_cells(
        &cells,
        &[
            ("evaluation_status", "scored"),
            ("resolution_status", "resolved"),
            ("resolved_by", "human"),
            ("resolution_basis", "human_resolved"),
            ("resolution_confidence", "0.88"),
            ("resolution_reason", "A teammate solved it,\nand the customer said so."),
            ("charge_assessment", "disputed"),
            ("charge_reasons", "[\"HUMAN_RESOLVED\",\"ESCALATED\"]"),
            ("handoff_state", "completed"),
            ("handoff_at", "2026-11-20T07:00:02.000Z"),
            ("first_human_reply_at", "2026-11-20T07:01:00.000Z"),
            ("customer_requested_human", "true"),
            ("customer_confirmed", "true"),
            ("customer_replied_after_last_ai", "true"),
            ("customer_messages", "2"),
            ("system_events", "5"),
            ("last_ai_message_at", "2026-11-20T07:00:03.000Z"),
            ("last_customer_message_at", "2026-11-20T07:01:01.500Z"),
            ("observed_silence_hours", ""),
            ("axis_score", "4.0"),
            ("evidence_message_ids", "[\"msg_1\",\"msg_2\"]"),
            ("evidence_quote", "'-- \"done\""),
            ("scorer", "builtin"),
        ],
    );
    Ok(())
}

#[test]
fn conversation_without_axis_has_empty_axis_cells_and_an_audit() -> Result<()> {
    let event = changed(evaluated(new_id(), STARTED), |evaluation| {
        evaluation.status = EvaluationStatus::NotApplicable;
        evaluation.axis = None;
        evaluation.timeline.observed_silence_hours = Some(1.5);
    });
    let axis = cells(ExportKind::Axis, &event)?;
    let empty = ["axis_score", "axis_band", "resolution_accuracy", "interaction_effort_reason", "confidence"];
    assert_cells(&axis, &empty.map(|name| (name, "")));
    assert_cells(&axis, &[("evaluation_status", "not_applicable"), ("evidence_message_ids", "[]")]);
    let audit = cells(ExportKind::ResolutionAudit, &event)?;
    let expected = [("resolution_status", "resolved"), ("axis_score", ""), ("observed_silence_hours", "1.5")];
    assert_cells(&audit, &expected);
    Ok(())
}

#[test]
fn failed_evaluation_has_a_row_with_the_ticket_columns() -> Result<()> {
    let mut event = evaluated(new_id(), STARTED);
    event.outcome = EvaluationOutcome::Failed { error_message: "no transcript".to_owned() };
    event.ticket.subject = None;
    let ticket = ["ticket_id", "external_ticket_id", "source", "source_account_id"];
    let known = [
        "conversation_started_at",
        "conversation_ended_at",
        "imported_at",
        "evaluated_at",
        "evaluation_status",
        "agent_ids",
        "agent_names",
        "evaluation_id",
    ];
    for &kind in ExportKind::ALL {
        let cells = cells(kind, &event)?;
        assert_eq!(cells["evaluation_status"], "failed");
        for (name, cell) in &cells {
            let is_known = ticket.contains(&name.as_str()) || known.contains(&name.as_str());
            assert_eq!(!cell.is_empty(), is_known, "{kind:?} {name}");
        }
    }
    Ok(())
}

/// Texts with characters that have a meaning in CSV files or spreadsheets.
fn special_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\"".to_owned()),
        Just(",".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("=".to_owned()),
        Just("＝".to_owned()),
        Just("'".to_owned()),
        ".{0,5}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// The cell of a text: a `'` guards what a spreadsheet would run as a formula.
fn guarded(text: &str) -> String {
    let starts = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    match text.chars().next() {
        Some(first) if starts.contains(&first) => format!("'{text}"),
        _ => text.to_owned(),
    }
}

proptest! {
    #[test]
    fn csv_lines_round_trip_through_a_reader(
        external_id in special_text(),
        subject in special_text(),
        reason in special_text(),
        quote in special_text(),
        agent in special_text(),
    ) {
        let mut event = changed(evaluated(new_id(), STARTED), |evaluation| {
            evaluation.resolution.reason = reason.clone();
            evaluation.evidence[1].quote = quote.clone();
        });
        event.ticket.external_id = external_id.clone();
        event.ticket.subject = Some(subject.clone());
        event.ticket.agents[0].name = agent.clone();
        let cells = cells(ExportKind::ResolutionAudit, &event).unwrap();
        prop_assert_eq!(&cells["external_ticket_id"], &guarded(&external_id));
        prop_assert_eq!(&cells["subject"], &guarded(&subject));
        prop_assert_eq!(&cells["resolution_reason"], &guarded(&reason));
        prop_assert_eq!(&cells["evidence_quote"], &guarded(&quote));
        let names: Vec<String> = serde_json::from_str(&cells["agent_names"]).unwrap();
        prop_assert_eq!(names, vec![agent]);
        prop_assert_eq!(&cells["schema_version"], "1");
    }
}
