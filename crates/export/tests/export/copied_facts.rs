//! Many rows of the read model for tests, made by the database.

use anyhow::Result;
use assay_contracts::ids::TicketId;
use assay_platform::db::Database;
use assay_testkit::execute_on;

/// Adds copies of a row of facts with other ticket ids. Their day does not become stale.
pub async fn copy_facts(database: &Database, ticket: TicketId, copies: u32) -> Result<()> {
    const COLUMNS: &str =
        "organization_id, started_at, ended_at, imported_at, external_id, source, source_account_id,
        subject, subject_words, agents, evaluation_id, evaluated_at, codes, sets, axis, resolution_accuracy,
        interaction_effort, handoff_smoothness, confidence, language";
    for first in (1..=copies).step_by(10_000) {
        let last = copies.min(first + 9_999);
        let statement = match database {
            Database::Postgres(_) => format!(
                "INSERT INTO evaluation_facts (ticket_id, {COLUMNS}, terms)
                 SELECT (substr(ticket_id::text, 1, 24) || lpad(to_hex(number), 12, '0'))::uuid, {COLUMNS}, terms
                   FROM evaluation_facts, generate_series({first}, {last}) AS number WHERE ticket_id = '{ticket}'"
            ),
            Database::Sqlite(_) => format!(
                "WITH RECURSIVE numbers (number) AS
                    (SELECT {first} UNION ALL SELECT number + 1 FROM numbers WHERE number < {last})
                 INSERT INTO evaluation_facts (ticket_id, {COLUMNS})
                 SELECT substr(ticket_id, 1, 24) || printf('%012x', number), {COLUMNS}
                   FROM evaluation_facts, numbers WHERE ticket_id = '{ticket}'"
            ),
        };
        execute_on(database, statement).await?;
    }
    Ok(())
}
