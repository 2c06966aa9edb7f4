//! Reads rows of `evaluation_facts`.

use assay_contracts::agent::AgentFacts;
use assay_contracts::evaluations::ItemTicket;
use assay_contracts::json::JsonFault;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Integer, Nullable, SmallInt, Text};

use super::Id;
use crate::domain::evaluation_facts::{EvaluationFacts, LatestEvaluation, Scores};
use crate::domain::facets::Facets;

/// The columns from which the columns of a day are made; lists read them, too.
pub(super) const DAY_COLUMNS: &str = "facts.started_at, facts.codes, facts.sets, facts.axis, facts.resolution_accuracy,
    facts.interaction_effort, facts.handoff_smoothness, facts.confidence, facts.language, facts.source, facts.agents";

/// The columns that only lists read.
pub(super) const LIST_COLUMNS: &str =
    "facts.ticket_id, facts.organization_id, facts.ended_at, facts.imported_at,
    facts.external_id, facts.source_account_id, facts.subject, facts.evaluation_id, facts.evaluated_at";

/// A row of [`DAY_COLUMNS`].
#[derive(QueryableByName)]
pub(super) struct DayRecord {
    #[diesel(sql_type = BigInt)]
    pub(super) started_at: i64,
    /// [`Facets::codes`].
    #[diesel(sql_type = Integer)]
    codes: i32,
    /// [`Facets::sets`].
    #[diesel(sql_type = BigInt)]
    sets: i64,
    #[diesel(sql_type = Nullable<SmallInt>)]
    axis: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    resolution_accuracy: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    interaction_effort: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    handoff_smoothness: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    confidence: Option<i16>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) language: Option<String>,
    #[diesel(sql_type = Text)]
    pub(super) source: String,
    /// JSON.
    #[diesel(sql_type = Text)]
    pub(super) agents: String,
}

/// A row of [`LIST_COLUMNS`] and [`DAY_COLUMNS`].
#[derive(QueryableByName)]
pub(super) struct FactsRecord {
    #[diesel(sql_type = Id)]
    ticket_id: StoredId,
    #[diesel(sql_type = Id)]
    organization_id: StoredId,
    #[diesel(sql_type = BigInt)]
    ended_at: i64,
    #[diesel(sql_type = BigInt)]
    imported_at: i64,
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Nullable<Text>)]
    source_account_id: Option<String>,
    #[diesel(sql_type = Text)]
    subject: String,
    #[diesel(sql_type = Id)]
    evaluation_id: StoredId,
    #[diesel(sql_type = BigInt)]
    evaluated_at: i64,
    #[diesel(embed)]
    shared: DayRecord,
}

impl DayRecord {
    pub(super) fn facets(&self) -> Facets {
        Facets::from_stored(self.codes, self.sets)
    }

    pub(super) fn scores(&self) -> Option<Scores> {
        Scores::from_stored([
            self.axis,
            self.resolution_accuracy,
            self.interaction_effort,
            self.handoff_smoothness,
            self.confidence,
        ])
    }
}

pub(super) fn parse_agents(json: &str) -> Result<Vec<AgentFacts>, DatabaseError> {
    serde_json::from_str(json).map_err(|error| {
        DatabaseError::Corrupt(format!("agents of an evaluation: {}", JsonFault::of(&error)))
    })
}

impl TryFrom<FactsRecord> for EvaluationFacts {
    type Error = DatabaseError;

    fn try_from(record: FactsRecord) -> Result<Self, DatabaseError> {
        let moment = Timestamp::saturating_from_millis;
        let shared = record.shared;
        let agents = parse_agents(&shared.agents)?;
        let (facets, scores) = (shared.facets(), shared.scores());
        Ok(Self {
            organization_id: record.organization_id.0.into(),
            ticket: ItemTicket {
                id: record.ticket_id.0.into(),
                started_at: moment(shared.started_at),
                ended_at: moment(record.ended_at),
                imported_at: moment(record.imported_at),
                external_id: record.external_id,
                source: shared.source,
                source_account_id: record.source_account_id,
                subject: record.subject,
                agents,
            },
            evaluation: LatestEvaluation {
                evaluation_id: record.evaluation_id.0.into(),
                evaluated_at: moment(record.evaluated_at),
                facets,
                scores,
                language: shared.language,
            },
        })
    }
}
