//! Evaluations for lists: copies of real evaluations with other dates, ids, subjects, tools and scores, written by the code
//! of the read model.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_contracts::agent::AgentFacts;
use assay_contracts::conversation::AiTool;
use assay_contracts::evaluation::{AiToolUse, Evaluation, Flag, Named, Score, TicketEvaluation};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::store::{EvaluationStore, evaluation_store, export_store};
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::runtime::{new_id, now};
use reqwest::Method;
use uuid::Uuid;

use crate::cluster::{Cluster, Servers};

/// The conversations began in this period, in epoch milliseconds: the year 2026.
pub const PERIOD: (i64, i64) = (1_767_225_600_000, 1_798_761_600_000);
/// Evaluations per transaction.
const BATCH: u64 = 128;
/// Other organizations, which have a fifth of the rows.
const OTHERS: u64 = 20;
pub const EVALUATION_LIMIT: Duration = Duration::from_secs(300);

pub struct Stored {
    pub rows: u64,
    /// The writes alone.
    pub took: Duration,
    /// The evaluations that the stored ones are made of.
    pub samples: Vec<Evaluation>,
}

impl Stored {
    pub async fn fill(
        cluster: &Cluster,
        servers: &Servers,
        database: &str,
        samples: u64,
        rows: u64,
    ) -> Result<Self> {
        let samples = evaluations(cluster, servers, database, samples).await?;
        let organization = servers.texts(database, "SELECT organization_id FROM export.progress LIMIT 1")?;
        let organization: Uuid = organization.concat().trim().parse()?;
        let settings =
            DatabaseSettings { database_url: servers.admin_url(database).into(), database_pool_size: 4 };
        let database_of_export = Database::open(&settings, "export")?;
        let (exports, evaluations) =
            (export_store(&database_of_export), evaluation_store(&database_of_export));
        let mut took = Duration::ZERO;
        let others = rows / 5;
        let owner = |number: u64| match number.checked_sub(rows) {
            None => organization.into(),
            // One organization after the other, so that the sequences of each are without gaps.
            Some(place) => Uuid::from_u128(u128::from(1 + place * OTHERS / others)).into(),
        };
        for first in (0..rows + others).step_by(usize::try_from(BATCH)?) {
            let batch: Vec<EvaluationRow> = (first..(first + BATCH).min(rows + others))
                .map(|number| EvaluationRow::of(new_id(), &event(number, owner(number), &samples)))
                .collect();
            let began = Instant::now();
            exports.record_rows(std::sync::Arc::new(batch), now()).await?;
            took += began.elapsed();
        }
        columns_of_all_days(&evaluations).await?;
        for table in ["evaluation_rows", "evaluation_facts", "evaluation_days", "stale_days", "inbox"] {
            servers.sql(database, &format!("VACUUM (ANALYZE) export.{table}"))?;
        }
        Ok(Self { rows: rows + others, took, samples })
    }
}

async fn columns_of_all_days(store: &EvaluationStore) -> Result<()> {
    // In the future: a day that was refreshed a moment ago is not passed over.
    let refreshed_before = now().plus_millis(86_400_000);
    while let Some(marked) = store.next_stale_day(refreshed_before, Vec::new()).await? {
        store.refresh_day(marked, now()).await?;
    }
    Ok(())
}

/// Waits for the evaluations of the imported conversations, and reads them.
async fn evaluations(
    cluster: &Cluster,
    servers: &Servers,
    database: &str,
    count: u64,
) -> Result<Vec<Evaluation>> {
    let end = Instant::now() + EVALUATION_LIMIT;
    let expected = i64::try_from(count)?;
    while servers.number(database, "SELECT count(*) FROM export.evaluation_facts")? < expected {
        ensure!(Instant::now() < end, "{count} conversations are not evaluated in {EVALUATION_LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let ids = servers.texts(database, "SELECT ticket_id FROM export.evaluation_facts ORDER BY ticket_id")?;
    let mut found = Vec::new();
    for id in ids.iter().map(|id| id.trim()).filter(|id| !id.is_empty()) {
        let path = format!("/v1/tickets/{id}/evaluation");
        let (status, body) = cluster.call(Method::GET, &path, None).await?;
        ensure!(status == 200, "{path}: {status}");
        if let TicketEvaluation::Done { evaluation, .. } = serde_json::from_value(body)? {
            found.push(*evaluation);
        }
    }
    ensure!(!found.is_empty(), "nothing was evaluated");
    Ok(found)
}

/// The event with this number; the same number gives the same event.
pub fn event(number: u64, organization_id: OrganizationId, samples: &[Evaluation]) -> ConversationEvaluated {
    // Each value has its own salt, so that values do not depend on each other.
    let random = |salt: u64| {
        let mixed = (number + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(salt.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 29)
    };
    let span = (PERIOD.1 - PERIOD.0).unsigned_abs();
    let started_at = PERIOD.0 + i64::try_from(random(1) % span).unwrap_or_default();
    let started_at = Timestamp::saturating_from_millis(started_at);
    let agent = u128::from(random(2) % 12 + 1);
    let has_agent = random(3) % 10 > 0;
    let ticket = TicketFacts {
        id: ticket_id(number, random(4)),
        external_id: format!("stored-{number}"),
        source: if random(5) % 1_000 == 0 { "rare" } else { "zendesk" }.to_owned(),
        source_account_id: None,
        subject: Some(subject(random(6))),
        started_at,
        ended_at: started_at.plus_millis(3_600_000),
        imported_at: started_at.plus_millis(7_200_000),
        agents: has_agent
            .then(|| AgentFacts {
                id: Uuid::from_u128(agent).into(),
                external_id: format!("bot-{agent}"),
                name: format!("Bot {agent}"),
            })
            .into_iter()
            .collect(),
    };
    let sample = &samples[usize::try_from(random(7)).unwrap_or_default() % samples.len()];
    let outcome = if random(8) % 400 == 0 {
        EvaluationOutcome::Failed { error_message: "could not be read".to_owned() }
    } else {
        EvaluationOutcome::Evaluated { evaluation: Box::new(varied(sample.clone(), &random)) }
    };
    ConversationEvaluated {
        organization_id,
        ticket,
        evaluation_id: new_id(),
        evaluated_at: started_at.plus_millis(7_201_000),
        outcome,
        // Above the sequences of the evaluations that were really made.
        sequence: 1_000_000 + i64::try_from(number).unwrap_or_default(),
    }
}

fn varied(mut evaluation: Evaluation, random: &impl Fn(u64) -> u64) -> Evaluation {
    let tool = match random(9) % 10 {
        0 => None,
        chosen => <AiTool as Named>::ALL.get(usize::try_from(chosen % 4).unwrap_or_default()).copied(),
    };
    evaluation.ai_tools =
        vec![AiToolUse { ai_tool: tool, agent_id: None, agent_external_id: None, messages: 1 }];
    let languages = ["en", "en", "en", "de", "fr", "es"];
    evaluation.language = languages[usize::try_from(random(10) % 6).unwrap_or_default()].to_owned();
    evaluation.flags.retain(|flag| *flag != Flag::PossiblePromptInjection);
    if random(11).is_multiple_of(2_000) {
        evaluation.flags.push(Flag::PossiblePromptInjection);
    }
    if let Some(axis) = &mut evaluation.axis {
        let moved =
            |score: Score, salt: u64| Score::nearest(score.value() + (random(salt) % 11) as f64 / 10.0 - 0.5);
        axis.score = moved(axis.score, 12);
        axis.dimensions.resolution_accuracy.score = moved(axis.dimensions.resolution_accuracy.score, 13);
        axis.dimensions.interaction_effort.score = moved(axis.dimensions.interaction_effort.score, 14);
    }
    evaluation
}

/// A frequent word, a word out of five thousand, and a number out of a million.
fn subject(random: u64) -> String {
    let frequent = ["Refund", "Order", "Login", "Invoice", "Delivery", "Account", "Return", "Question"];
    let first = frequent[usize::try_from(random % 8).unwrap_or_default()];
    format!("{first} word{} case {}", random / 8 % 5_000, random / 40_000 % 1_000_000)
}

/// Ids of tickets imported within hours, like the first import of a helpdesk.
fn ticket_id(number: u64, random: u64) -> TicketId {
    let millis = PERIOD.0.unsigned_abs() + number * 31;
    let bytes = random.to_be_bytes();
    let rest = [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], 0, 1];
    uuid::Builder::from_unix_timestamp_millis(millis, &rest).into_uuid().into()
}
