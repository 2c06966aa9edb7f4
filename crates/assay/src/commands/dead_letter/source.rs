//! Sources of dead letters: a queue's dead-letter queue on RabbitMQ, the producer's outbox on the local bus.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{DeadEvent, Outbox};
use assay_messaging::{Bus, DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use crate::cli::DeadLetterLocation;
use crate::installation::{self, ServiceOutbox};
use crate::roles;

/// Every queue of the services.
const QUEUES: [&str; 7] = [
    assay_scoring_worker::QUEUE,
    assay_scoring_worker::DELETED_QUEUE,
    assay_scoring_worker::EXPIRED_QUEUE,
    assay_export::EVALUATIONS_QUEUE,
    assay_export::DELETIONS_QUEUE,
    assay_export_worker::QUEUE,
    assay_webhooks::QUEUE,
];

/// Dead events read from an outbox at a time.
const PAGE_SIZE: u32 = 500;

/// Digest bytes used as the id of a message without one.
const DIGEST_BYTES: usize = 8;

pub enum DeadLetterSource {
    /// The dead letters of a queue on RabbitMQ.
    Queue {
        bus: Bus,
        queue: String,
        /// Whether it is an error that the queue was never consumed: the operator named it.
        must_exist: bool,
    },
    /// The dead events of a service.
    Outbox(ServiceOutbox),
}

/// Metadata of a dead letter; never its content.
pub struct DeadLetterSummary {
    pub id: String,
    pub topic: Option<String>,
    pub reason: String,
    pub attempts: u32,
    /// `None` when the broker itself dead-lettered the message.
    pub given_up_at: Option<Timestamp>,
}

pub enum Selection {
    All,
    Ids(BTreeSet<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterAction {
    Retry,
    Drop,
}

impl DeadLetterSource {
    /// The queue or the outbox that the operator named; else all queues, or all outboxes on the local bus, which has no queues.
    pub async fn open_selected(location: &DeadLetterLocation) -> Result<Vec<Self>> {
        let settings = installation::load_settings(&location.services)?;
        let queue_or_service = location.queue_or_service.as_deref();
        let is_local_bus = settings.bus.url.expose_secret() == "local:";
        // Names of queues have a dot, names of services none. With a broker, an outbox has the events that the broker refused
        // because of the event itself.
        let is_service = queue_or_service.is_some_and(|name| !name.contains('.'));
        if is_local_bus || is_service {
            let outboxes = installation::open_outboxes(&settings).await?;
            return outbox_sources(outboxes, queue_or_service);
        }
        let bus = roles::open_bus(&settings)?;
        let source =
            |queue: &str, must_exist| Self::Queue { bus: bus.clone(), queue: queue.to_owned(), must_exist };
        Ok(match queue_or_service {
            Some(queue) => vec![source(queue, true)],
            None => QUEUES.iter().map(|queue| source(queue, false)).collect(),
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Queue { queue, .. } => queue,
            Self::Outbox(outbox) => outbox.service,
        }
    }

    /// Total number, and the oldest `limit` of them.
    pub async fn list(&self, limit: u32) -> Result<(u64, Vec<DeadLetterSummary>)> {
        match self {
            Self::Queue { .. } => {
                let mut summaries = Vec::new();
                let review = self.review(limit.into(), |letter| {
                    summaries.push(summary_of_letter(letter));
                    DeadLetterDecision::Keep
                });
                Ok((review.await?.total, summaries))
            }
            Self::Outbox(ServiceOutbox { outbox, .. }) => {
                let events = outbox.dead_events(limit).await?;
                Ok((outbox.status().await?.dead, events.iter().map(summary_of_event).collect()))
            }
        }
    }

    /// The oldest dead letter with this id and its content.
    pub async fn find(&self, id: &str) -> Result<Option<(DeadLetterSummary, Vec<u8>)>> {
        match self {
            Self::Queue { .. } => {
                let mut found = None;
                self.review(u64::MAX, |letter| {
                    if found.is_none() && id_of(letter) == id {
                        found = Some((summary_of_letter(letter), letter.payload.clone()));
                    }
                    DeadLetterDecision::Keep
                })
                .await?;
                Ok(found)
            }
            Self::Outbox(ServiceOutbox { outbox, .. }) => {
                let events = outbox.dead_events(u32::MAX).await?;
                let event = events.into_iter().find(|event| event.id.to_string() == id);
                Ok(event.map(|event| (summary_of_event(&event), event.payload.into_bytes())))
            }
        }
    }

    /// Retries or drops the selected dead letters. Returns the ids found here.
    pub async fn apply(&self, selection: &Selection, action: DeadLetterAction) -> Result<Vec<String>> {
        match (self, selection) {
            (Self::Queue { .. }, _) => {
                let mut affected = Vec::new();
                self.review(u64::MAX, |letter| {
                    let id = id_of(letter);
                    if matches!(selection, Selection::Ids(ids) if !ids.contains(&id)) {
                        return DeadLetterDecision::Keep;
                    }
                    affected.push(id);
                    match action {
                        DeadLetterAction::Retry => DeadLetterDecision::Retry,
                        DeadLetterAction::Drop => DeadLetterDecision::Drop,
                    }
                })
                .await?;
                Ok(affected)
            }
            (Self::Outbox(ServiceOutbox { outbox, .. }), Selection::All) => {
                apply_to_all(outbox, action).await
            }
            (Self::Outbox(ServiceOutbox { outbox, .. }), Selection::Ids(ids)) => {
                // Dead events are found by their event ids: any other id is not in an outbox.
                let ids = ids.iter().filter_map(|id| id.parse().ok()).collect();
                apply_to_events(outbox, ids, action).await
            }
        }
    }

    /// Passes dead letters of a queue to `decide`. A queue that was never consumed has none.
    async fn review(
        &self,
        limit: u64,
        decide: impl FnMut(&DeadLetter) -> DeadLetterDecision + Send,
    ) -> Result<DeadLetterReview> {
        let Self::Queue { bus, queue, must_exist } = self else { bail!("an outbox has no queue to review") };
        match bus.review_dead_letters(queue, limit, decide).await {
            Err(DeadLetterError::UnknownQueue(_)) if !must_exist => Ok(DeadLetterReview::default()),
            review => review.with_context(|| format!("queue {queue}")),
        }
    }
}

/// The outboxes of all services, or of the named one.
fn outbox_sources(outboxes: Vec<ServiceOutbox>, service: Option<&str>) -> Result<Vec<DeadLetterSource>> {
    let names: Vec<&str> = outboxes.iter().map(|outbox| outbox.service).collect();
    if let Some(service) = service
        && !names.contains(&service)
    {
        bail!("--queue: there is no service `{service}`; the services are {}", names.join(", "));
    }
    let is_selected = |outbox: &ServiceOutbox| service.is_none_or(|service| service == outbox.service);
    Ok(outboxes.into_iter().filter(is_selected).map(DeadLetterSource::Outbox).collect())
}

/// Handles as many events as are dead now; one that dies again meanwhile is left for the next call.
async fn apply_to_all(outbox: &Outbox, action: DeadLetterAction) -> Result<Vec<String>> {
    let mut remaining = outbox.status().await?.dead;
    let mut affected = Vec::new();
    while remaining > 0 {
        let page = u32::try_from(remaining).unwrap_or(PAGE_SIZE).min(PAGE_SIZE);
        let ids: Vec<EventId> = outbox.dead_events(page).await?.iter().map(|event| event.id).collect();
        if ids.is_empty() {
            break;
        }
        remaining -= ids.len() as u64;
        affected.extend(apply_to_events(outbox, ids, action).await?);
    }
    Ok(affected)
}

async fn apply_to_events(
    outbox: &Outbox,
    ids: Vec<EventId>,
    action: DeadLetterAction,
) -> Result<Vec<String>> {
    let mut affected = Vec::new();
    for id in ids {
        let is_found = match action {
            DeadLetterAction::Retry => outbox.retry_dead(id).await?,
            DeadLetterAction::Drop => outbox.drop_dead(id).await?,
        };
        affected.extend(is_found.then(|| id.to_string()));
    }
    Ok(affected)
}

fn summary_of_letter(letter: &DeadLetter) -> DeadLetterSummary {
    DeadLetterSummary {
        id: id_of(letter),
        topic: letter.topic.clone(),
        reason: letter.reason.clone(),
        attempts: letter.attempt,
        given_up_at: letter.failed_at,
    }
}

fn summary_of_event(event: &DeadEvent) -> DeadLetterSummary {
    DeadLetterSummary {
        id: event.id.to_string(),
        topic: Some(event.topic.clone()),
        reason: event.last_error.clone(),
        attempts: event.attempts,
        given_up_at: Some(event.dead_at),
    }
}

/// The event id, or a digest of the content for a foreign message, which has none.
fn id_of(letter: &DeadLetter) -> String {
    letter.event_id.clone().unwrap_or_else(|| {
        let digest = Sha256::digest(&letter.payload);
        let digits = hex::encode(&digest[..DIGEST_BYTES]);
        format!("sha256-{digits}")
    })
}
