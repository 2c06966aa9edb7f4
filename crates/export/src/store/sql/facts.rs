//! Writes rows of facts and marks their days as stale.

use std::collections::{BTreeMap, BTreeSet};

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::BigInt;

use super::{Connection, DIALECT, Id, insert_facts};
use crate::domain::day::day_of;
use crate::domain::evaluation_facts::EvaluationFacts;
use crate::domain::evaluation_row::EvaluationRow;
use crate::domain::terms::terms_of;
use crate::store::conditions::Dialect;

/// Maximum number of ids or rows in one statement.
const VALUES_PER_STATEMENT: usize = 500;

/// The columns of one row, as they are stored.
#[derive(Debug, Clone)]
pub(in crate::store) struct FactsValues {
    pub(in crate::store) ticket_id: StoredId,
    pub(in crate::store) organization_id: StoredId,
    pub(in crate::store) started_at: i64,
    pub(in crate::store) ended_at: i64,
    pub(in crate::store) imported_at: i64,
    pub(in crate::store) external_id: String,
    pub(in crate::store) source: String,
    pub(in crate::store) source_account_id: Option<String>,
    pub(in crate::store) subject: String,
    pub(in crate::store) subject_words: String,
    pub(in crate::store) agents: String,
    pub(in crate::store) evaluation_id: StoredId,
    pub(in crate::store) evaluated_at: i64,
    pub(in crate::store) codes: i32,
    pub(in crate::store) sets: i64,
    /// AXIS and its three parts in tenths, and the confidence in hundredths.
    pub(in crate::store) scores: Option<[i16; 5]>,
    pub(in crate::store) language: Option<String>,
    /// The text of a PostgreSQL array; empty for SQLite.
    #[allow(dead_code, reason = "SQLite has no such column")]
    pub(in crate::store) terms: String,
}

/// A ticket id that a statement returned.
#[derive(QueryableByName)]
pub(in crate::store) struct TicketRecord {
    #[diesel(sql_type = Id)]
    pub(in crate::store) ticket_id: StoredId,
}

#[derive(QueryableByName)]
struct RemovedRow {
    #[diesel(sql_type = Id)]
    organization_id: StoredId,
    #[diesel(sql_type = BigInt)]
    started_at: i64,
}

/// Replaces the facts of the rows' tickets. The caller has locked these tickets by writing to `evaluation_rows`.
pub(super) fn replace<'r>(
    connection: &mut Connection,
    rows: impl Iterator<Item = &'r EvaluationRow>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let facts: Vec<&EvaluationFacts> = rows.map(|row| &row.facts).collect();
    if facts.is_empty() {
        return Ok(());
    }
    let ids: Vec<TicketId> = facts.iter().map(|facts| facts.ticket.id).collect();
    let mut changed_days = delete(connection, None, &ids)?;
    let new_day = |facts: &&EvaluationFacts| (facts.organization_id, day_of(facts.ticket.started_at));
    changed_days.extend(facts.iter().map(new_day));
    let values = facts.into_iter().map(FactsValues::of).collect::<Result<Vec<_>, _>>()?;
    insert_facts(connection, &values)?;
    mark_stale(connection, &changed_days, now)
}

/// Removes the facts of deleted tickets.
pub(super) fn remove(
    connection: &mut Connection,
    tickets: impl Iterator<Item = (OrganizationId, TicketId)>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let mut by_organization: BTreeMap<OrganizationId, Vec<TicketId>> = BTreeMap::new();
    for (organization, ticket) in tickets {
        by_organization.entry(organization).or_default().push(ticket);
    }
    let mut changed_days = BTreeSet::new();
    for (organization, tickets) in by_organization {
        changed_days.extend(delete(connection, Some(organization), &tickets)?);
    }
    mark_stale(connection, &changed_days, now)
}

/// Deletes the facts of tickets, of any organization if it is `None`; returns the days of the deleted rows.
fn delete(
    connection: &mut Connection,
    organization: Option<OrganizationId>,
    tickets: &[TicketId],
) -> Result<BTreeSet<(OrganizationId, i64)>, DatabaseError> {
    let and_organization =
        organization.map(|id| format!(" AND organization_id = '{id}'")).unwrap_or_default();
    let mut changed_days = BTreeSet::new();
    for tickets in tickets.chunks(VALUES_PER_STATEMENT) {
        let ids = tickets.iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(",");
        let statement = format!(
            "DELETE FROM evaluation_facts WHERE ticket_id IN ({ids}){and_organization} \
             RETURNING organization_id, started_at"
        );
        let removed: Vec<RemovedRow> = sql_query(statement).load(connection)?;
        changed_days.extend(removed.into_iter().map(|row| {
            (row.organization_id.0.into(), day_of(Timestamp::saturating_from_millis(row.started_at)))
        }));
    }
    Ok(changed_days)
}

/// Marks days as stale: this transaction changes their rows, but not their columns.
fn mark_stale(
    connection: &mut Connection,
    days: &BTreeSet<(OrganizationId, i64)>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let now = now.as_millis();
    let marks: Vec<String> =
        days.iter().map(|(organization, day)| format!("('{organization}', {day}, {now})")).collect();
    for marks in marks.chunks(VALUES_PER_STATEMENT) {
        let values = marks.join(", ");
        sql_query(format!("INSERT INTO stale_days (organization_id, day, marked_at) VALUES {values}"))
            .execute(connection)?;
    }
    Ok(())
}

impl FactsValues {
    fn of(facts: &EvaluationFacts) -> Result<Self, DatabaseError> {
        let (ticket, evaluation) = (&facts.ticket, &facts.evaluation);
        let agents = serde_json::to_string(&ticket.agents)
            .map_err(|error| DatabaseError::Corrupt(format!("agents of {}: {error}", ticket.id)))?;
        let score = |score: assay_contracts::evaluation::Score| i16::from(score.tenths());
        Ok(Self {
            ticket_id: StoredId::of(ticket.id),
            organization_id: StoredId::of(facts.organization_id),
            started_at: ticket.started_at.as_millis(),
            ended_at: ticket.ended_at.as_millis(),
            imported_at: ticket.imported_at.as_millis(),
            external_id: ticket.external_id.clone(),
            source: ticket.source.clone(),
            source_account_id: ticket.source_account_id.clone(),
            subject: ticket.subject.clone(),
            subject_words: facts.subject_words(),
            agents,
            evaluation_id: StoredId::of(evaluation.evaluation_id),
            evaluated_at: evaluation.evaluated_at.as_millis(),
            codes: evaluation.facets.codes.cast_signed(),
            sets: evaluation.facets.sets.cast_signed(),
            scores: evaluation.scores.map(|scores| {
                [
                    score(scores.axis),
                    score(scores.resolution_accuracy),
                    score(scores.interaction_effort),
                    score(scores.handoff_smoothness),
                    i16::from(scores.confidence.hundredths()),
                ]
            }),
            language: evaluation.language.clone(),
            terms: match DIALECT {
                Dialect::Postgres => {
                    let terms: Vec<String> = terms_of(facts).iter().map(i32::to_string).collect();
                    format!("{{{}}}", terms.join(","))
                }
                Dialect::Sqlite => String::new(),
            },
        })
    }
}
