//! Evaluating a batch of accepted conversations: read the transcripts, score them in parallel, ask the judge where there is
//! one, store the results with their events in one transaction. No transaction is open before the last step.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use assay_clients::{ClientError, IngestClient};
use assay_contracts::event::{ConversationAccepted, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::{EventId, OrganizationId, TicketId};
use assay_contracts::internal::{TicketReference, Transcript, Transcripts, UnreadableTranscript};
use assay_messaging::outbox::Outbox;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{RequestContext, blocking};
use assay_scoring::Scorer;
use futures_util::future::join_all;

use super::interest::Interest;
use super::judge_conversations::JudgeConversations;
use super::new_evaluation::{UnwritableEvaluation, new_evaluation};
use crate::metrics;
use crate::store::{EvaluationStore, NewEvaluation};

/// What a person reads when the scorer broke on a conversation.
const FAILURE: &str = "the conversation could not be evaluated: the scorer failed on it";

/// What a person reads when a stored transcript is broken.
const UNREADABLE: &str = "the conversation could not be evaluated: its stored transcript cannot be read";

/// The use case and what it needs.
pub(crate) struct EvaluateConversations {
    pub(crate) ingest: IngestClient,
    pub(crate) store: Arc<dyn EvaluationStore>,
    pub(crate) outbox: Outbox,
    pub(crate) scorer: Arc<Scorer>,
    pub(crate) judging: Option<JudgeConversations>,
    pub(crate) interest: Interest,
}

/// Why an accepted conversation is not evaluated this time.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum EvaluateError {
    /// The transcripts could not be read.
    #[error("transcripts could not be read: {0}")]
    Transcripts(Arc<ClientError>),
    /// Its owner does not have it, or cannot read it, and nobody knows that it is gone for good.
    #[error("ingest has no readable transcript of the ticket")]
    Missing,
    /// The process stops before the judge has answered.
    #[error("the process stopped while the judge was asked")]
    Stopped,
    /// The result could not be stored.
    #[error("evaluation could not be stored: {0}")]
    Store(Arc<DatabaseError>),
    /// The result could not be written down.
    #[error(transparent)]
    Encode(UnwritableEvaluation),
}

/// An event that asks for an evaluation.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    /// Its id.
    pub(crate) event_id: EventId,
    /// What it says.
    pub(crate) event: ConversationAccepted,
    /// The request that led to it.
    pub(crate) context: Option<RequestContext>,
    /// Whether nobody will try again when this attempt fails.
    pub(crate) is_last_attempt: bool,
}

impl Accepted {
    fn reference(&self) -> TicketReference {
        TicketReference { organization_id: self.event.organization_id, ticket_id: self.event.ticket_id }
    }
}

type Events<'a> = HashMap<TicketId, Vec<&'a Accepted>>;

/// What became of each event.
pub(crate) type Verdicts = HashMap<EventId, Result<(), EvaluateError>>;

impl EvaluateConversations {
    /// Evaluates what is new among `accepted`. Each event has a verdict of its own: one that cannot be evaluated does not
    /// keep the others from it. Conversations that were evaluated before, and deleted ones, are passed over.
    pub(crate) async fn run(&self, accepted: &[Accepted]) -> Verdicts {
        let mut verdicts: Verdicts =
            accepted.iter().map(|accepted| (accepted.event_id, Err(EvaluateError::Missing))).collect();
        let mut events: Events = HashMap::new();
        let mut unread: Vec<TicketReference> = Vec::with_capacity(accepted.len());
        for accepted in accepted {
            let events = events.entry(accepted.event.ticket_id).or_default();
            // A batch may hold a ticket twice, even in the same event: it is read and evaluated once.
            if events.is_empty() {
                unread.push(accepted.reference());
            }
            events.push(accepted);
        }
        // Page by page, so that large transcripts do not pile up.
        while !unread.is_empty() {
            let page = match self.ingest.read_transcripts(&unread).await {
                Ok(page) => page,
                Err(error) => {
                    let error = EvaluateError::Transcripts(Arc::new(error));
                    let unread = unread.iter().filter_map(|reference| events.get(&reference.ticket_id));
                    verdicts.extend(unread.flatten().map(|event| (event.event_id, Err(error.clone()))));
                    return verdicts;
                }
            };
            unread.clone_from(&page.unread);
            verdicts.extend(self.evaluate_page(page, &events).await);
        }
        self.settle_missing(&mut verdicts, &events).await;
        verdicts
    }

    async fn evaluate_page(&self, page: Transcripts, events: &Events<'_>) -> Verdicts {
        let mut verdicts = Verdicts::new();
        let deleted = page.deleted.iter().filter_map(|ticket| events.get(&ticket.ticket_id));
        verdicts.extend(deleted.flatten().map(|event| (event.event_id, Ok(()))));
        let scored = self.score_all(page.transcripts).await;
        let scored = match &self.judging {
            Some(judging) => judging.run(scored).await,
            None => scored.into_iter().map(|(transcript, outcome)| (transcript, Some(outcome))).collect(),
        };
        let scored = scored
            .into_iter()
            .map(|(transcript, outcome)| (transcript.organization_id, transcript.ticket, outcome));
        let given_up = page.unreadable.into_iter().filter_map(|unreadable| give_up(unreadable, events));
        let mut evaluations = Vec::new();
        for (organization_id, ticket, outcome) in scored.chain(given_up) {
            let Some([first, others @ ..]) = events.get(&ticket.id).map(Vec::as_slice) else {
                continue;
            };
            let Some(outcome) = outcome else {
                let all = others.iter().chain([first]);
                verdicts.extend(all.map(|event| (event.event_id, Err(EvaluateError::Stopped))));
                continue;
            };
            metrics::evaluated(&outcome);
            match new_evaluation(
                first.event_id,
                first.context.clone(),
                organization_id,
                ticket,
                outcome,
                &self.interest,
            ) {
                // A second event for the same ticket is done when the first one is.
                Ok(evaluation) => evaluations.push((evaluation, others)),
                Err(error) => verdicts.extend([(first.event_id, Err(EvaluateError::Encode(error)))]),
            }
        }
        verdicts.extend(self.store_all(evaluations).await);
        verdicts
    }

    async fn store_all(&self, evaluations: Vec<(NewEvaluation, &[&Accepted])>) -> Verdicts {
        let mut verdicts = Verdicts::new();
        let batch: Vec<NewEvaluation> =
            evaluations.iter().map(|(evaluation, _)| evaluation.clone()).collect();
        let together = self.record(batch).await;
        for (evaluation, others) in evaluations {
            let first = evaluation.asking_event_id;
            let verdict = match &together {
                Ok(()) => Ok(()),
                Err(error) if error.is_transient() => Err(EvaluateError::Store(Arc::new(outage(error)))),
                // One of them is at fault: each is tried on its own.
                Err(_) => {
                    let alone = self.record(vec![evaluation]).await;
                    alone.map_err(|error| EvaluateError::Store(Arc::new(error)))
                }
            };
            let all = others.iter().map(|event| event.event_id).chain([first]);
            verdicts.extend(all.map(|id| (id, verdict.clone())));
        }
        verdicts
    }

    async fn record(&self, batch: Vec<NewEvaluation>) -> Result<(), DatabaseError> {
        let handover = self.outbox.handover();
        let events = self.store.record(batch, handover).await?;
        self.outbox.hand_over(handover, events);
        Ok(())
    }

    /// A ticket that ingest does not have any more may have its evaluation, or have been deleted.
    async fn settle_missing(&self, verdicts: &mut Verdicts, events: &Events<'_>) {
        let is_missing =
            |event: &&Accepted| matches!(verdicts.get(&event.event_id), Some(Err(EvaluateError::Missing)));
        let missing: Vec<&Accepted> = events.values().flatten().copied().filter(is_missing).collect();
        if missing.is_empty() {
            return;
        }
        let tickets = missing.iter().map(|event| event.event.ticket_id).collect();
        match self.store.settled(tickets).await {
            Ok(settled) => {
                let done = missing.iter().filter(|event| settled.contains(&event.event.ticket_id));
                verdicts.extend(done.map(|event| (event.event_id, Ok(()))));
            }
            Err(error) => {
                let error = EvaluateError::Store(Arc::new(error));
                verdicts.extend(missing.iter().map(|event| (event.event_id, Err(error.clone()))));
            }
        }
    }

    /// Scores in as many parts as there are processors.
    async fn score_all(&self, transcripts: Vec<Transcript>) -> Vec<(Transcript, EvaluationOutcome)> {
        let count = transcripts.len();
        let transcripts = Arc::new(transcripts);
        let size = count.div_ceil(available_parallelism().map_or(1, usize::from)).max(1);
        let parts = (0..count).step_by(size).map(|start| start..count.min(start + size));
        let outcomes = join_all(parts.map(|part| self.score_part(&transcripts, part))).await;
        // Every part is done, so that nobody else has them.
        Arc::unwrap_or_clone(transcripts).into_iter().zip(outcomes.into_iter().flatten()).collect()
    }

    /// One outcome for each transcript of the part. One that the scorer breaks on must not take its neighbours with it:
    /// then each is tried on its own.
    async fn score_part(
        &self,
        transcripts: &Arc<Vec<Transcript>>,
        part: Range<usize>,
    ) -> Vec<EvaluationOutcome> {
        if let Some(outcomes) = self.try_score(transcripts.clone(), part.clone()).await {
            return outcomes;
        }
        let mut outcomes = Vec::with_capacity(part.len());
        for index in part {
            match self.try_score(transcripts.clone(), index..index + 1).await {
                Some(one) => outcomes.extend(one),
                None => {
                    if let Some(Transcript { ticket, .. }) = transcripts.get(index) {
                        tracing::error!(ticket_id = %ticket.id, "the scorer failed on a conversation");
                    }
                    outcomes.push(EvaluationOutcome::Failed { error_message: FAILURE.to_owned() });
                }
            }
        }
        outcomes
    }

    /// `None` when the scorer panicked.
    async fn try_score(
        &self,
        transcripts: Arc<Vec<Transcript>>,
        part: Range<usize>,
    ) -> Option<Vec<EvaluationOutcome>> {
        let scorer = self.scorer.clone();
        let score = move |transcript: &Transcript| {
            let began = Instant::now();
            let evaluation = Box::new(scorer.evaluate(&transcript.conversation));
            metrics::scored(began.elapsed());
            EvaluationOutcome::Evaluated { evaluation }
        };
        let work = move || transcripts.get(part).unwrap_or_default().iter().map(score).collect();
        blocking(work).await.ok()
    }
}

/// A transcript that cannot be understood may be mended, or a later release may understand it: until the last attempt.
fn give_up(
    unreadable: UnreadableTranscript,
    events: &Events<'_>,
) -> Option<(OrganizationId, TicketFacts, Option<EvaluationOutcome>)> {
    let mut asking = events.get(&unreadable.ticket.id)?.iter();
    asking.any(|event| event.is_last_attempt).then(|| {
        let outcome = EvaluationOutcome::Failed { error_message: UNREADABLE.to_owned() };
        (unreadable.organization_id, unreadable.ticket, Some(outcome))
    })
}

/// An outage that many events share.
fn outage(error: &DatabaseError) -> DatabaseError {
    DatabaseError::Unavailable(error.to_string())
}
