//! The whole path from the import command to both export files.

mod columns;
mod filters;
mod input;
mod selections;
mod values;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use self::input::Import;
use crate::harness::{Api, Cases, Stack, Table};

/// The bundled examples, real conversations where available, and texts that are hard to write as CSV.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut bodies = Vec::new();
    for sample in input::samples()? {
        bodies.extend(import_file(stack, &sample.conversations, Some(&sample.agents)).await?);
    }
    let awkward = stack.folder().join("awkward.jsonl");
    fs::write(&awkward, input::as_lines(&input::awkward()))?;
    bodies.extend(import_file(stack, &awkward, None).await?);

    let mut imports = Vec::new();
    for body in bodies {
        imports.push(evaluated(&api, body).await?);
    }
    // Another organization's conversation must not be in any file.
    let stranger = stack.api_of("stranger").await?;
    let theirs = stranger.import(&crate::harness::conversation("not yours")).await?;
    stranger.evaluation(&theirs).await?;

    let axis = exported(&api, json!({"kind": "axis"}), &columns::axis()).await?;
    let audit = exported(&api, json!({"kind": "resolution_audit"}), &columns::audit()).await?;
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
    ensure!(output.status.success(), "assay import {}: {output:?}", file.display());
    let text = fs::read_to_string(&copy)?;
    let bodies: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let summary = format!("{} accepted, 0 duplicate, 0 refused", bodies.len());
    ensure!(String::from_utf8_lossy(&output.stdout).starts_with(&summary), "{summary} is not in {output:?}");
    Ok(bodies)
}

/// The ticket of an imported body (a client that lost its receipt asks again) and its evaluation.
async fn evaluated(api: &Api, body: Value) -> Result<Import> {
    let problem = api.post("/v1/assess", &body).await?.problem(409, "duplicate-import")?;
    let ticket_id = problem["ticket_id"].as_str().context("no ticket_id")?.to_owned();
    let ticket = api.get(&format!("/v1/tickets/{ticket_id}")).await?.expect(200)?;
    let evaluation = api.evaluation(&ticket_id).await?;
    Ok(Import { ticket_id, body, ticket, evaluation })
}

/// The table of an export that has all evaluations. Exports are repeated until then: an evaluation may be readable moments before
/// the read model has it.
async fn exported(api: &Api, request: Value, columns: &[&str]) -> Result<Table> {
    let count = input::expected_rows()?;
    crate::harness::until("an export of all evaluations", async || {
        let table = Table::read(&api.file(&api.export(&request).await?).await?)?;
        ensure!(table.columns == columns, "columns: {:?}", table.columns);
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
