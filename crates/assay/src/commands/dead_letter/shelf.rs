//! Where dead letters lie: beside their queue on RabbitMQ, in their producer's outbox on the local bus.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{DeadEvent, Outbox};
use assay_messaging::{Bus, DeadLetter, DeadLetterDecision, DeadLetterError, DeadLetterReview};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use crate::cli::DeadLetterPlace;
use crate::commands::outbox::{self, ServiceOutbox};
use crate::roles;

const QUEUES: [&str; 7] = [
    assay_scoring_worker::QUEUE,
    assay_scoring_worker::DELETED_QUEUE,
    assay_scoring_worker::EXPIRED_QUEUE,
    assay_export::QUEUE,
    assay_export::DELETIONS_QUEUE,
    assay_export_worker::QUEUE,
    assay_webhooks::QUEUE,
];

/// Dead events that are read from an outbox at a time.
const PAGE: u32 = 500;

/// Bytes of a digest that stand for a message without an id.
const DIGEST_BYTES: usize = 8;

/// One place of dead letters.
pub enum Shelf {
    /// Those of a queue on RabbitMQ.
    Queue {
        bus: Bus,
        queue: String,
        /// Whether the operator named it: then it must exist.
        is_named: bool,
    },
    /// The dead events of a service.
    Outbox(ServiceOutbox),
}

/// What may be told of a dead letter without showing what is in it.
pub struct Summary {
    pub id: String,
    pub topic: Option<String>,
    pub reason: String,
    pub attempts: u32,
    /// Unknown when the broker gave it up.
    pub given_up_at: Option<Timestamp>,
}

/// The dead letters that an operator means.
pub enum Chosen {
    All,
    Ids(BTreeSet<String>),
}

/// What is to become of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Retry,
    Drop,
}

impl Shelf {
    /// All shelves, or the one that is named.
    pub async fn open(place: &DeadLetterPlace) -> Result<Vec<Self>> {
        let settings = outbox::settings_at(&place.services)?;
        if settings.bus.url.expose_secret() == "local:" {
            let outboxes = outbox::open_all(&settings).await?;
            return of_services(outboxes, place.queue.as_deref());
        }
        let bus = roles::open_bus(&settings)?;
        let shelf =
            |queue: &str, is_named| Self::Queue { bus: bus.clone(), queue: queue.to_owned(), is_named };
        Ok(match &place.queue {
            Some(queue) => vec![shelf(queue, true)],
            None => QUEUES.iter().map(|queue| shelf(queue, false)).collect(),
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Queue { queue, .. } => queue,
            Self::Outbox(outbox) => outbox.service,
        }
    }

    /// How many there are, and the oldest of them.
    pub async fn list(&self, limit: u32) -> Result<(u64, Vec<Summary>)> {
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
    pub async fn find(&self, id: &str) -> Result<Option<(Summary, Vec<u8>)>> {
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

    /// Retries or drops the chosen ones; the ids of those that were here.
    pub async fn settle(&self, chosen: &Chosen, fate: Fate) -> Result<Vec<String>> {
        match (self, chosen) {
            (Self::Queue { .. }, _) => {
                let mut settled = Vec::new();
                self.review(u64::MAX, |letter| {
                    let id = id_of(letter);
                    if matches!(chosen, Chosen::Ids(ids) if !ids.contains(&id)) {
                        return DeadLetterDecision::Keep;
                    }
                    settled.push(id);
                    match fate {
                        Fate::Retry => DeadLetterDecision::Retry,
                        Fate::Drop => DeadLetterDecision::Drop,
                    }
                })
                .await?;
                Ok(settled)
            }
            (Self::Outbox(ServiceOutbox { outbox, .. }), Chosen::All) => settle_all(outbox, fate).await,
            (Self::Outbox(ServiceOutbox { outbox, .. }), Chosen::Ids(ids)) => {
                // What is no id of an event is nothing that an outbox could hold.
                let ids = ids.iter().filter_map(|id| id.parse().ok()).collect();
                settle_events(outbox, ids, fate).await
            }
        }
    }

    /// Shows dead letters of a queue to `decide`. A queue that has never been consumed holds none.
    async fn review(
        &self,
        limit: u64,
        decide: impl FnMut(&DeadLetter) -> DeadLetterDecision + Send,
    ) -> Result<DeadLetterReview> {
        let Self::Queue { bus, queue, is_named } = self else { bail!("an outbox has no queue to review") };
        match bus.review_dead_letters(queue, limit, decide).await {
            Err(DeadLetterError::UnknownQueue(_)) if !is_named => Ok(DeadLetterReview::default()),
            review => review.with_context(|| format!("queue {queue}")),
        }
    }
}

fn of_services(outboxes: Vec<ServiceOutbox>, named: Option<&str>) -> Result<Vec<Shelf>> {
    let names: Vec<&str> = outboxes.iter().map(|outbox| outbox.service).collect();
    if let Some(name) = named
        && !names.contains(&name)
    {
        bail!("--queue: there is no service `{name}`: on the local bus name one of {}", names.join(", "));
    }
    let is_meant = |outbox: &ServiceOutbox| named.is_none_or(|name| name == outbox.service);
    Ok(outboxes.into_iter().filter(is_meant).map(Shelf::Outbox).collect())
}

/// All that are dead now: what dies again meanwhile is left.
async fn settle_all(outbox: &Outbox, fate: Fate) -> Result<Vec<String>> {
    let mut left = outbox.status().await?.dead;
    let mut settled = Vec::new();
    while left > 0 {
        let page = u32::try_from(left).unwrap_or(PAGE).min(PAGE);
        let ids: Vec<EventId> = outbox.dead_events(page).await?.iter().map(|event| event.id).collect();
        if ids.is_empty() {
            break;
        }
        left -= ids.len() as u64;
        settled.extend(settle_events(outbox, ids, fate).await?);
    }
    Ok(settled)
}

async fn settle_events(outbox: &Outbox, ids: Vec<EventId>, fate: Fate) -> Result<Vec<String>> {
    let mut settled = Vec::new();
    for id in ids {
        let was_here = match fate {
            Fate::Retry => outbox.retry_dead(id).await?,
            Fate::Drop => outbox.drop_dead(id).await?,
        };
        settled.extend(was_here.then(|| id.to_string()));
    }
    Ok(settled)
}

fn summary_of_letter(letter: &DeadLetter) -> Summary {
    Summary {
        id: id_of(letter),
        topic: letter.topic.clone(),
        reason: letter.reason.clone(),
        attempts: letter.attempt,
        given_up_at: letter.failed_at,
    }
}

fn summary_of_event(event: &DeadEvent) -> Summary {
    Summary {
        id: event.id.to_string(),
        topic: Some(event.topic.clone()),
        reason: event.last_error.clone(),
        attempts: event.attempts,
        given_up_at: Some(event.dead_at),
    }
}

/// A message that is not one of ours has no id; its content makes one.
fn id_of(letter: &DeadLetter) -> String {
    letter.event_id.clone().unwrap_or_else(|| {
        let digest = Sha256::digest(&letter.payload);
        let digits: String = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
        format!("sha256-{digits}")
    })
}
