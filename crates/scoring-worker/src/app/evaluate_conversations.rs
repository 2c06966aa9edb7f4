//! Evaluating a batch of accepted conversations: read the transcripts, score them in parallel, ask the judge where there is
//! one, store the results with their events in one transaction. No transaction is open before the last step.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::available_parallelism;

use assay_clients::{ClientError, IngestClient};
use assay_contracts::evaluation::{Evaluation, EvaluationStatus};
use assay_contracts::event::{ConversationAccepted, ConversationEvaluated, EvaluationOutcome};
use assay_contracts::ids::{EventId, TicketId};
use assay_contracts::internal::{TicketReference, Transcript};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{blocking, new_id, now};
use assay_scoring::{SCORER_VERSION, Scorer};
use futures_util::future::join_all;

use super::judge_conversations::JudgeConversations;
use crate::store::{EvaluationStore, NewEvaluation, Status};

/// What a person reads when the scorer broke on a conversation.
const FAILURE: &str = "the conversation could not be evaluated: the scorer failed on it";

/// The use case and what it needs.
pub(crate) struct EvaluateConversations {
    pub(crate) ingest: IngestClient,
    pub(crate) store: Arc<dyn EvaluationStore>,
    pub(crate) scorer: Arc<Scorer>,
    pub(crate) judging: Option<JudgeConversations>,
}

/// Why an accepted conversation is not evaluated this time.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum EvaluateError {
    /// The transcripts could not be read.
    #[error("transcripts could not be read: {0}")]
    Transcripts(Arc<ClientError>),
    /// Its owner does not have it, or cannot read it.
    #[error("ingest has no readable transcript of the ticket")]
    Missing,
    /// The process stops before the judge has answered.
    #[error("the process stopped while the judge was asked")]
    Stopped,
    /// The result could not be stored.
    #[error("evaluation could not be stored: {0}")]
    Store(Arc<DatabaseError>),
    /// The result could not be written as JSON.
    #[error("evaluation could not be written as JSON: {0}")]
    Encode(String),
}

/// What became of each event.
pub(crate) type Verdicts = HashMap<EventId, Result<(), EvaluateError>>;

impl EvaluateConversations {
    /// Evaluates what is new among `accepted`. Each event has a verdict of its own: one that cannot be evaluated does not
    /// keep the others from it. Conversations that were evaluated before are passed over.
    pub(crate) async fn run(&self, accepted: &[(EventId, ConversationAccepted)]) -> Verdicts {
        let mut verdicts: Verdicts =
            accepted.iter().map(|(id, _)| (*id, Err(EvaluateError::Missing))).collect();
        let mut events: HashMap<TicketId, Vec<EventId>> = HashMap::new();
        let mut unread: Vec<TicketReference> = Vec::with_capacity(accepted.len());
        for (id, event) in accepted {
            let events = events.entry(event.ticket_id).or_default();
            // A batch may hold a ticket twice, even in the same event: it is read and evaluated once.
            if events.is_empty() {
                let (organization_id, ticket_id) = (event.organization_id, event.ticket_id);
                unread.push(TicketReference { organization_id, ticket_id });
            }
            events.push(*id);
        }
        // Page by page, so that large transcripts do not pile up.
        while !unread.is_empty() {
            let page = match self.ingest.read_transcripts(&unread).await {
                Ok(page) => page,
                Err(error) => {
                    let error = EvaluateError::Transcripts(Arc::new(error));
                    let unread = unread.iter().filter_map(|reference| events.get(&reference.ticket_id));
                    verdicts.extend(unread.flatten().map(|id| (*id, Err(error.clone()))));
                    break;
                }
            };
            unread = page.unread;
            verdicts.extend(self.evaluate_page(page.transcripts, &events).await);
        }
        verdicts
    }

    async fn evaluate_page(
        &self,
        transcripts: Vec<Transcript>,
        events: &HashMap<TicketId, Vec<EventId>>,
    ) -> Verdicts {
        let mut verdicts = Verdicts::new();
        let mut evaluations = Vec::with_capacity(transcripts.len());
        let scored = self.score_all(transcripts).await;
        let scored = match &self.judging {
            Some(judging) => judging.run(scored).await,
            None => scored.into_iter().map(|(transcript, outcome)| (transcript, Some(outcome))).collect(),
        };
        for (transcript, outcome) in scored {
            let Some([first, others @ ..]) = events.get(&transcript.ticket.id).map(Vec::as_slice) else {
                continue;
            };
            let Some(outcome) = outcome else {
                verdicts.extend(others.iter().chain([first]).map(|id| (*id, Err(EvaluateError::Stopped))));
                continue;
            };
            match new_evaluation(*first, transcript, outcome) {
                // A second event for the same ticket is done when the first one is.
                Ok(evaluation) => evaluations.push((evaluation, others)),
                Err(error) => verdicts.extend([(*first, Err(error))]),
            }
        }
        let batch: Vec<NewEvaluation> =
            evaluations.iter().map(|(evaluation, _)| evaluation.clone()).collect();
        let together = self.store.record(batch).await;
        for (evaluation, others) in evaluations {
            let first = evaluation.accepted_event_id;
            let verdict = match &together {
                Ok(()) => Ok(()),
                Err(error) if error.is_transient() => Err(EvaluateError::Store(Arc::new(outage(error)))),
                // One of them is at fault: each is tried on its own.
                Err(_) => {
                    let alone = self.store.record(vec![evaluation]).await;
                    alone.map_err(|error| EvaluateError::Store(Arc::new(error)))
                }
            };
            verdicts.extend(others.iter().chain([&first]).map(|id| (*id, verdict.clone())));
        }
        verdicts
    }

    /// Scores in as many parts as there are processors.
    async fn score_all(&self, transcripts: Vec<Transcript>) -> Vec<(Transcript, EvaluationOutcome)> {
        let parts = available_parallelism().map_or(1, usize::from);
        let size = transcripts.len().div_ceil(parts).max(1);
        let scored = transcripts.chunks(size).map(|part| self.score_part(part.to_vec()));
        join_all(scored).await.concat()
    }

    /// A transcript that the scorer breaks on must not take its neighbours with it: then each is tried on its own.
    async fn score_part(&self, part: Vec<Transcript>) -> Vec<(Transcript, EvaluationOutcome)> {
        if let Some(scored) = self.try_score(part.clone()).await {
            return scored;
        }
        let mut scored = Vec::with_capacity(part.len());
        for transcript in part {
            match self.try_score(vec![transcript.clone()]).await {
                Some(one) => scored.extend(one),
                None => {
                    tracing::error!(ticket_id = %transcript.ticket.id, "the scorer failed on a conversation");
                    scored
                        .push((transcript, EvaluationOutcome::Failed { error_message: FAILURE.to_owned() }));
                }
            }
        }
        scored
    }

    /// `None` when the scorer panicked.
    async fn try_score(&self, part: Vec<Transcript>) -> Option<Vec<(Transcript, EvaluationOutcome)>> {
        let scorer = self.scorer.clone();
        let work = move || {
            part.into_iter()
                .map(|transcript| {
                    let evaluation = Box::new(scorer.evaluate(&transcript.conversation));
                    (transcript, EvaluationOutcome::Evaluated { evaluation })
                })
                .collect()
        };
        blocking(work).await.ok()
    }
}

fn new_evaluation(
    event_id: EventId,
    transcript: Transcript,
    outcome: EvaluationOutcome,
) -> Result<NewEvaluation, EvaluateError> {
    let evaluated_at = now();
    let evaluated = ConversationEvaluated {
        organization_id: transcript.organization_id,
        ticket: transcript.ticket,
        evaluation_id: new_id(),
        evaluated_at,
        outcome,
        // Known when it is stored.
        sequence: None,
    };
    let (status, document, error_message) = match &evaluated.outcome {
        EvaluationOutcome::Evaluated { evaluation } => {
            (status_of(evaluation), Some(serde_json::to_string(evaluation).map_err(encode_error)?), None)
        }
        EvaluationOutcome::Failed { error_message } => (Status::Failed, None, Some(error_message.clone())),
    };
    Ok(NewEvaluation {
        accepted_event_id: event_id,
        status,
        document,
        error_message,
        scorer_version: SCORER_VERSION.to_owned(),
        evaluated,
    })
}

fn status_of(evaluation: &Evaluation) -> Status {
    match evaluation.status {
        EvaluationStatus::Scored => Status::Scored,
        EvaluationStatus::NotApplicable => Status::NotApplicable,
    }
}

fn encode_error(error: impl std::error::Error) -> EvaluateError {
    EvaluateError::Encode(error.to_string())
}

/// An outage that many events share.
fn outage(error: &DatabaseError) -> DatabaseError {
    DatabaseError::Unavailable(error.to_string())
}
