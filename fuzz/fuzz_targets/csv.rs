//! Any texts of customers in an exported file: a CSV reader reads them back, and a spreadsheet runs none of them.
//!
//! An input is a list of texts, separated by U+001E.

#![no_main]

use std::cell::RefCell;
use std::sync::LazyLock;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;
use assay_contracts::agent::AgentFacts;
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};
use assay_contracts::export::ExportKind;
use assay_contracts::time::Timestamp;
use assay_export::domain::csv::{header, render};
use assay_scoring::Scorer;
use csv_core::ReadRecordResult;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use uuid::Uuid;

const SEPARATOR: char = '\u{1E}';
const TIME: Timestamp = Timestamp::saturating_from_millis(1_795_158_000_000);

/// What a spreadsheet takes for the beginning of a formula.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A record of one cell, after the one that is checked.
const NEXT_RECORD: &str = "next";

static AXIS_COLUMNS: LazyLock<Vec<String>> = LazyLock::new(|| columns(ExportKind::Axis));
static AUDIT_COLUMNS: LazyLock<Vec<String>> = LazyLock::new(|| columns(ExportKind::ResolutionAudit));

/// An evaluation by the scorer; its texts are replaced.
static EVALUATION: LazyLock<Evaluation> = LazyLock::new(|| {
    let message = |number: i64, author: &Value, content: &str| {
        let (id, timestamp) = (format!("m-{number}"), number * 60_000);
        json!({"external_id": id, "timestamp": timestamp, "author": author, "content": content})
    };
    let (customer, agent) =
        (json!({"type": "contact", "external_id": "c"}), json!({"type": "ai", "external_id": "a"}));
    let body = json!({"ticket_id": "t", "messages": [
        message(0, &customer, "My card is blocked, can you help?"),
        message(1, &agent, "I have unblocked it. Does it work now?"),
        message(2, &customer, "Yes, it works again, thank you!"),
    ]});
    let conversation = Conversation::parse(body.to_string().as_bytes()).expect("a good conversation");
    let evaluation = Scorer::builtin().expect("the model ships with the crate").evaluate(&conversation);
    assert!(!evaluation.resolution.evidence.is_empty(), "the verdict quotes nothing: {evaluation:?}");
    evaluation
});

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut texts = text.split(SEPARATOR).map(str::to_owned);
    let mut event = event(|| texts.next().unwrap_or_default());
    check(&event);
    event.outcome = EvaluationOutcome::Failed { error_message: text.into_owned() };
    check(&event);
});

fn event(mut next: impl FnMut() -> String) -> ConversationEvaluated {
    let ticket = TicketFacts {
        id: Uuid::from_u128(1).into(),
        external_id: next(),
        source: next(),
        source_account_id: Some(next()),
        subject: Some(next()),
        started_at: TIME,
        ended_at: TIME,
        imported_at: TIME,
        agents: vec![AgentFacts { id: Uuid::from_u128(2).into(), external_id: next(), name: next() }],
    };
    let mut evaluation = EVALUATION.clone();
    evaluation.resolution.reason = next();
    for evidence in &mut evaluation.evidence {
        evidence.quote = next();
        evidence.message_external_id = next();
    }
    ConversationEvaluated {
        organization_id: Uuid::from_u128(3).into(),
        ticket,
        evaluation_id: Uuid::from_u128(4).into(),
        evaluated_at: TIME,
        outcome: EvaluationOutcome::Evaluated { evaluation: Box::new(evaluation) },
        sequence: 1,
    }
}

fn check(event: &ConversationEvaluated) {
    for kind in [ExportKind::Axis, ExportKind::ResolutionAudit] {
        let line = render(kind, event);
        // A cell that is not closed would swallow the next line.
        let records = read_records(&format!("{line}\r\n{NEXT_RECORD}\r\n"));
        let [row, next] = records.as_slice() else { panic!("{} records, not two: {line:?}", records.len()) };
        let names = if kind == ExportKind::Axis { &*AXIS_COLUMNS } else { &*AUDIT_COLUMNS };
        assert!(*next == [NEXT_RECORD] && row.len() == names.len(), "{row:?} and {next:?} below {names:?}");
        for cell in row {
            let is_formula = || cell.starts_with(FORMULA_STARTS) && !cell.parse().is_ok_and(f64::is_finite);
            assert!(!is_formula(), "a formula: {cell:?}");
        }
        check_texts(kind, event, |name| {
            let column = names.iter().position(|known| known == name).expect("a column");
            row.get(column).expect("a cell")
        });
    }
}

fn columns(kind: ExportKind) -> Vec<String> {
    read_records(&header(kind)).concat()
}

/// The records of a CSV file. One reader for all inputs: building its tables takes longer than reading.
fn read_records(file: &str) -> Vec<Vec<String>> {
    thread_local! {
        static READER: RefCell<csv_core::Reader> = RefCell::new(csv_core::Reader::new());
    }
    READER.with_borrow_mut(|reader| {
        reader.reset();
        let (mut input, mut records) = (file.as_bytes(), Vec::new());
        // A file has at least as many bytes as its cells have together, and as there are separators between them.
        let (mut text, mut ends) = (vec![0; input.len()], vec![0; input.len() + 1]);
        loop {
            let (result, read, written, cells) = reader.read_record(input, &mut text, &mut ends);
            input = &input[read..];
            match result {
                ReadRecordResult::Record => {}
                // The line break of the last record.
                ReadRecordResult::InputEmpty if (written, cells) == (0, 0) => continue,
                ReadRecordResult::End => return records,
                _ => panic!("the last record does not end: {file:?}"),
            }
            let starts = std::iter::once(&0).chain(&ends);
            let cell = |(start, end): (&usize, &usize)| {
                String::from_utf8(text[*start..*end].to_vec()).expect("a cell is UTF-8")
            };
            records.push(starts.zip(&ends[..cells]).map(cell).collect());
        }
    })
}

fn check_texts<'r>(kind: ExportKind, event: &ConversationEvaluated, cell: impl Fn(&str) -> &'r str) {
    let ticket = &event.ticket;
    check_cell(cell("external_ticket_id"), &ticket.external_id);
    check_cell(cell("source"), &ticket.source);
    check_cell(cell("source_account_id"), ticket.source_account_id.as_deref().unwrap_or_default());
    check_cell(cell("subject"), ticket.subject.as_deref().unwrap_or_default());
    let agents: Vec<String> = serde_json::from_str(cell("agent_names")).expect("a list");
    assert_eq!(agents, [ticket.agents[0].name.clone()]);
    if let (EvaluationOutcome::Evaluated { evaluation }, ExportKind::ResolutionAudit) = (&event.outcome, kind) {
        check_cell(cell("resolution_reason"), &evaluation.resolution.reason);
        check_cell(cell("evidence_quote"), &evaluation.evidence[evaluation.resolution.evidence[0]].quote);
    }
}

/// The cell holds the text unchanged, or after a `'` when a spreadsheet would take it for a formula.
fn check_cell(cell: &str, text: &str) {
    let guard = if text.starts_with(FORMULA_STARTS) { "'" } else { "" };
    assert_eq!(cell, format!("{guard}{text}"));
}
