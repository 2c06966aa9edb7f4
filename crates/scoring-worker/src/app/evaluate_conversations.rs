//! Evaluates a batch of accepted conversations: read the transcripts, score them in parallel, call the judge if one is
//! configured, store the results with their events in one transaction. No transaction is open before the last step.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use assay_clients::{ClientError, IngestClient};
use assay_contracts::event::{ConversationAccepted, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::{EventId, OrganizationId, TicketId};
use assay_contracts::internal::{TicketReference, TicketWithoutTranscript, Transcript, Transcripts};
use assay_messaging::all_or_each;
use assay_messaging::outbox::Outbox;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{BackgroundThreads, RequestContext, blocking};
use assay_scoring::Scorer;
use futures_util::future::join_all;

use super::judge_conversations::JudgeConversations;
use super::new_evaluation::{UnwritableEvaluation, new_evaluation};
use super::webhook_subscribers::WebhookSubscribers;
use crate::metrics;
use crate::store::{EvaluationStore, NewEvaluation};

/// Error message of an evaluation whose scorer panicked.
const SCORER_PANICKED: &str = "the conversation could not be evaluated: the scorer failed on it";

/// Error message of an evaluation whose stored transcript cannot be parsed.
const UNREADABLE: &str = "the conversation could not be evaluated: its stored transcript cannot be read";

#[derive(Clone)]
pub(crate) struct EvaluateConversations {
    pub(crate) ingest: IngestClient,
    pub(crate) store: EvaluationStore,
    pub(crate) outbox: Outbox,
    pub(crate) scorer: Arc<Scorer>,
    /// The threads on which the scorer runs; `None`: those of blocking calls, with the priority of requests.
    pub(crate) background: Option<BackgroundThreads>,
    pub(crate) judging: Option<Arc<JudgeConversations>>,
    pub(crate) subscribers: WebhookSubscribers,
}

/// Failure of one attempt at an evaluation.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum EvaluateError {
    #[error("transcripts could not be read: {0}")]
    Transcripts(Arc<ClientError>),
    /// ingest returned no transcript, and there is neither an evaluation nor a tombstone.
    #[error("ingest has no readable transcript of the ticket")]
    Missing,
    #[error("the process stopped while the judge was asked")]
    Stopped,
    #[error("evaluation could not be stored: {0}")]
    Store(Arc<DatabaseError>),
    #[error(transparent)]
    Encode(UnwritableEvaluation),
}

/// A `conversation.accepted.v1` event with its delivery metadata.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) event_id: EventId,
    pub(crate) event: ConversationAccepted,
    /// The import request, for tracing.
    pub(crate) context: Option<RequestContext>,
    /// Whether the delivery becomes a dead letter if this attempt fails.
    pub(crate) is_last_attempt: bool,
}

impl Accepted {
    pub(super) fn reference(&self) -> TicketReference {
        TicketReference { organization_id: self.event.organization_id, ticket_id: self.event.ticket_id }
    }
}

type EventsByTicket<'a> = HashMap<TicketId, Vec<&'a Accepted>>;

/// The result of each event.
pub(crate) type EventResults = HashMap<EventId, Result<(), EvaluateError>>;

impl EvaluateConversations {
    /// Evaluates the new conversations among `accepted`, each with its own result: a failure does not affect the others.
    /// Conversations that are evaluated already or deleted are skipped.
    pub(crate) async fn run(&self, accepted: &[Accepted]) -> EventResults {
        // Stays the result of events whose transcript ingest does not return, unless `resolve_missing` finds that they are done.
        let mut results: EventResults =
            accepted.iter().map(|accepted| (accepted.event_id, Err(EvaluateError::Missing))).collect();
        let mut events: EventsByTicket<'_> = HashMap::new();
        let mut unread: Vec<TicketReference> = Vec::with_capacity(accepted.len());
        for event in accepted {
            let events_of_ticket = events.entry(event.event.ticket_id).or_default();
            // A batch may contain a ticket or an event twice: read and evaluate it once.
            if events_of_ticket.is_empty() {
                unread.push(event.reference());
            }
            events_of_ticket.push(event);
        }
        // Page by page, to bound the memory of large transcripts.
        while !unread.is_empty() {
            let page = match self.ingest.read_transcripts(&unread).await {
                Ok(page) => page,
                Err(error) => {
                    let error = EvaluateError::Transcripts(Arc::new(error));
                    let failed = unread.iter().filter_map(|reference| events.get(&reference.ticket_id));
                    results.extend(failed.flatten().map(|event| (event.event_id, Err(error.clone()))));
                    return results;
                }
            };
            unread.clone_from(&page.unread);
            results.extend(self.evaluate_page(page, &events).await);
        }
        self.resolve_missing(&mut results, &events).await;
        results
    }

    async fn evaluate_page(&self, page: Transcripts, events: &EventsByTicket<'_>) -> EventResults {
        let mut results = EventResults::new();
        let deleted = page.deleted.iter().filter_map(|ticket| events.get(&ticket.ticket_id));
        results.extend(deleted.flatten().map(|event| (event.event_id, Ok(()))));
        let scored = self.score_all(page.transcripts).await;
        let judged = match &self.judging {
            Some(judging) => judging.run(scored).await,
            None => scored.into_iter().map(|(transcript, outcome)| (transcript, Some(outcome))).collect(),
        };
        let evaluated = judged
            .into_iter()
            .map(|(transcript, outcome)| (transcript.organization_id, transcript.ticket, outcome));
        let failed =
            page.unreadable.into_iter().filter_map(|unreadable| fail_on_last_attempt(unreadable, events));
        let mut evaluations = Vec::new();
        for (organization_id, ticket, outcome) in evaluated.chain(failed) {
            let Some([first, others @ ..]) = events.get(&ticket.id).map(Vec::as_slice) else {
                continue;
            };
            // No outcome: the process stopped while the judge was asked.
            let Some(outcome) = outcome else {
                let all = others.iter().chain([first]);
                results.extend(all.map(|event| (event.event_id, Err(EvaluateError::Stopped))));
                continue;
            };
            metrics::count_evaluation(&outcome);
            match new_evaluation(
                first.event_id,
                first.context.clone(),
                organization_id,
                ticket,
                outcome,
                &self.subscribers,
            ) {
                // Further events of the same ticket share the result of the first.
                Ok(evaluation) => evaluations.push((evaluation, others)),
                Err(error) => results.extend([(first.event_id, Err(EvaluateError::Encode(error)))]),
            }
        }
        results.extend(self.store_all(evaluations).await);
        results
    }

    async fn store_all(&self, evaluations: Vec<(NewEvaluation, &[&Accepted])>) -> EventResults {
        let mut results = EventResults::new();
        if evaluations.is_empty() {
            return results;
        }
        let (batch, others): (Vec<_>, Vec<_>) = evaluations.into_iter().unzip();
        let firsts: Vec<EventId> = batch.iter().map(|evaluation| evaluation.source_event_id).collect();
        let stored = all_or_each(batch, DatabaseError::is_transient, |batch| self.record(batch)).await;
        for ((first, others), result) in firsts.into_iter().zip(others).zip(stored) {
            let result = result.map_err(EvaluateError::Store);
            let all = others.iter().map(|event| event.event_id).chain([first]);
            results.extend(all.map(|id| (id, result.clone())));
        }
        results
    }

    async fn record(&self, batch: Arc<Vec<NewEvaluation>>) -> Result<(), DatabaseError> {
        let claim = self.outbox.claim_fast_path();
        let events = self.store.record(batch, claim).await?;
        self.outbox.dispatch(claim, events);
        Ok(())
    }

    /// A ticket that ingest no longer has may be evaluated already or deleted: such events are done.
    async fn resolve_missing(&self, results: &mut EventResults, events: &EventsByTicket<'_>) {
        let is_missing =
            |event: &&Accepted| matches!(results.get(&event.event_id), Some(Err(EvaluateError::Missing)));
        let missing: Vec<&Accepted> = events.values().flatten().copied().filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        let tickets = missing.iter().map(|event| event.event.ticket_id).collect();
        match self.store.finished(tickets).await {
            Ok(finished) => {
                let done = missing.iter().filter(|event| finished.contains(&event.event.ticket_id));
                results.extend(done.map(|event| (event.event_id, Ok(()))));
            }
            Err(error) => {
                let error = EvaluateError::Store(Arc::new(error));
                results.extend(missing.iter().map(|event| (event.event_id, Err(error.clone()))));
            }
        }
    }

    /// Scores in parallel, one chunk for each processor.
    async fn score_all(&self, transcripts: Vec<Transcript>) -> Vec<(Transcript, EvaluationOutcome)> {
        let count = transcripts.len();
        let transcripts = Arc::new(transcripts);
        let size = count.div_ceil(available_parallelism().map_or(1, usize::from)).max(1);
        let chunks = (0..count).step_by(size).map(|start| start..count.min(start + size));
        let outcomes = join_all(chunks.map(|chunk| self.score_chunk(&transcripts, chunk))).await;
        // No chunk is running: this is the last reference.
        Arc::unwrap_or_clone(transcripts).into_iter().zip(outcomes.into_iter().flatten()).collect()
    }

    /// One outcome for each transcript of the chunk. If the scorer panics, the transcripts are retried one by one.
    async fn score_chunk(
        &self,
        transcripts: &Arc<Vec<Transcript>>,
        chunk: Range<usize>,
    ) -> Vec<EvaluationOutcome> {
        if let Some(outcomes) = self.try_score(transcripts.clone(), chunk.clone()).await {
            return outcomes;
        }
        let mut outcomes = Vec::with_capacity(chunk.len());
        for index in chunk {
            match self.try_score(transcripts.clone(), index..index + 1).await {
                Some(outcome) => outcomes.extend(outcome),
                None => {
                    if let Some(Transcript { ticket, .. }) = transcripts.get(index) {
                        tracing::error!(ticket_id = %ticket.id, "the scorer failed on a conversation");
                    }
                    outcomes.push(EvaluationOutcome::Failed { error_message: SCORER_PANICKED.to_owned() });
                }
            }
        }
        outcomes
    }

    /// `None` when the scorer panicked.
    async fn try_score(
        &self,
        transcripts: Arc<Vec<Transcript>>,
        chunk: Range<usize>,
    ) -> Option<Vec<EvaluationOutcome>> {
        let scorer = self.scorer.clone();
        let score = move |transcript: &Transcript| {
            let began = Instant::now();
            let evaluation = Box::new(scorer.evaluate(&transcript.conversation));
            metrics::record_scoring_duration(began.elapsed());
            EvaluationOutcome::Evaluated { evaluation }
        };
        let work = move || transcripts.get(chunk).unwrap_or_default().iter().map(score).collect();
        match &self.background {
            Some(threads) => threads.run(work).await.ok(),
            None => blocking(work).await.ok(),
        }
    }
}

/// The failed evaluation of an unreadable transcript, on the last attempt of one of its events. `None` before that: the transcript
/// may be repaired, or read by a later release.
fn fail_on_last_attempt(
    unreadable: TicketWithoutTranscript,
    events: &EventsByTicket<'_>,
) -> Option<(OrganizationId, TicketFacts, Option<EvaluationOutcome>)> {
    let mut sources = events.get(&unreadable.ticket.id)?.iter();
    sources.any(|event| event.is_last_attempt).then(|| {
        let outcome = EvaluationOutcome::Failed { error_message: UNREADABLE.to_owned() };
        (unreadable.organization_id, unreadable.ticket, Some(outcome))
    })
}
