//! The whole path from the import command to both export files.

mod filters;
mod input;
mod selections;
mod values;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use self::input::Import;
use crate::harness::{
    Api, Cases, Stack, Table, conversation, exits_with_summary, read_lines, text, until, write_lines,
};

/// The columns that both files begin with: the ticket, and who answered it.
const TICKET: &str = "ticket_id external_ticket_id source source_account_id subject conversation_started_at \
                      conversation_ended_at imported_at evaluated_at evaluation_status ai_involvement ai_tools \
                      agent_ids agent_names";

/// Further columns of the file `axis`.
const AXIS: &str = "axis_score axis_band axis_excluding_handoff resolution_accuracy resolution_accuracy_reason \
                    interaction_effort interaction_effort_reason handoff_smoothness handoff_smoothness_reason \
                    handoff_state confidence customer_messages ai_messages human_messages internal_comments \
                    system_events customer_sentiment_start customer_sentiment_end repeated_information_count \
                    duration_seconds first_response_seconds language flags evidence_message_ids";

/// Further columns of the file `resolution_audit`.
const AUDIT: &str = "resolution_status resolved_by resolution_basis resolution_confidence resolution_reason \
                     charge_assessment charge_reasons handoff_state handoff_at first_human_reply_at \
                     customer_requested_human customer_confirmed customer_replied_after_last_ai customer_messages \
                     ai_messages human_messages internal_comments system_events last_ai_message_at \
                     last_customer_message_at observed_silence_hours axis_score evidence_message_ids evidence_quote";

/// The columns that both files end with: where the evaluation comes from.
const ORIGIN: &str = "scorer scorer_version evaluation_id transcript_sha256 schema_version";

/// The bundled examples, real conversations where available, and texts that are hard to write as CSV.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut bodies = Vec::new();
    for sample in input::samples()? {
        bodies.extend(import_file(stack, &sample.conversations, Some(&sample.agents)).await?);
    }
    let awkward = write_lines(stack, "awkward.jsonl", &input::awkward())?;
    bodies.extend(import_file(stack, &awkward, None).await?);

    let mut imports = Vec::new();
    for body in bodies {
        imports.push(evaluated(&api, body).await?);
    }
    // Another organization's conversation must not be in any file.
    let stranger = stack.api_of("stranger").await?;
    let theirs = stranger.import(&conversation("not yours")).await?;
    stranger.evaluation(&theirs).await?;

    let axis = exported(&api, "axis", &[TICKET, AXIS, ORIGIN]).await?;
    let audit = exported(&api, "resolution_audit", &[TICKET, AUDIT, ORIGIN]).await?;
    let mut cases = Cases::default();
    for (name, table) in [("axis", &axis), ("resolution_audit", &audit)] {
        cases.check(format!("rows of {name}"), rows_are_complete(table, &imports));
    }
    for import in &imports {
        let id = &import.ticket_id;
        cases.check(format!("axis of {}", import.name()), values::axis(axis.row("ticket_id", id)?, import));
        cases
            .check(format!("audit of {}", import.name()), values::audit(audit.row("ticket_id", id)?, import));
    }
    cases.check("known values", input::known_values(&axis, &audit));
    cases.check("filters", filters::check(&api, &imports).await);
    cases.check("rows of the list", selections::check(&api, &imports).await);
    cases.finish()
}

/// Imports a file on the command line and returns its bodies.
async fn import_file(stack: &Stack, file: &Path, agents: Option<&Path>) -> Result<Vec<Value>> {
    // The checkpoint is stored next to the file.
    let copy = stack.folder().join(file.file_name().context("no file name")?);
    if copy != file {
        fs::copy(file, &copy)?;
    }
    let mut arguments = vec!["import", copy.to_str().context("no text")?, "--url", stack.base_url()];
    arguments.extend(["--key", stack.key()]);
    if let Some(agents) = agents {
        arguments.extend(["--agents", agents.to_str().context("no text")?]);
    }
    let output = stack.assay(&arguments).output().await?;
    let bodies = read_lines(&copy)?;
    let accepted = bodies.len();
    exits_with_summary(&output, 0, &format!("{accepted} accepted, 0 duplicate, 0 refused"))?;
    Ok(bodies)
}

/// The ticket of an imported body (a client that lost its receipt asks again) and its evaluation.
async fn evaluated(api: &Api, body: Value) -> Result<Import> {
    let problem = api.post("/v1/assess", &body).await?.problem(409, "duplicate-import")?;
    let ticket_id = text(&problem, "ticket_id")?;
    let ticket = api.get(&format!("/v1/tickets/{ticket_id}")).await?.expect(200)?;
    let evaluation = api.evaluation(&ticket_id).await?;
    Ok(Import { ticket_id, body, ticket, evaluation })
}

/// The table of an export that has all evaluations. Exports are repeated until then: an evaluation may be readable moments before
/// the read model has it.
async fn exported(api: &Api, kind: &str, columns: &[&str]) -> Result<Table> {
    let count = input::expected_rows()?;
    until("an export of all evaluations", async || {
        let table = api.table(&json!({"kind": kind})).await?;
        ensure!(table.columns.join(" ") == columns.join(" "), "columns: {:?}", table.columns);
        ensure!(table.rows.len() <= count, "{} rows for {count} tickets", table.rows.len());
        Ok((table.rows.len() == count).then_some(table))
    })
    .await
}

/// One row for each ticket, ordered by the conversation's date and then by ticket id.
fn rows_are_complete(table: &Table, imports: &[Import]) -> Result<()> {
    let mut expected: Vec<(i64, &str)> =
        imports.iter().map(|import| (import.started_at(), import.ticket_id.as_str())).collect();
    expected.sort_unstable();
    let expected: Vec<&str> = expected.into_iter().map(|(_, id)| id).collect();
    let found = table.column("ticket_id");
    ensure!(found == expected, "{found:?} instead of {expected:?}");
    Ok(())
}
