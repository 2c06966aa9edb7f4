//! Evaluating a batch of accepted conversations: read the transcripts, score them in parallel, store the results with
//! their events in one transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::available_parallelism;

use assay_clients::{ClientError, IngestClient};
use assay_contracts::evaluation::{Evaluation, EvaluationStatus};
use assay_contracts::event::{ConversationAccepted, ConversationEvaluated, EvaluationOutcome};
use assay_contracts::ids::{EventId, TicketId};
use assay_contracts::internal::{TicketReference, Transcript};
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{blocking, new_id, now};
use assay_scoring::{SCORER_VERSION, Scorer};
use futures_util::future::join_all;

use crate::store::{EvaluationStore, NewEvaluation, Status};

/// What a person reads when the scorer broke on a conversation.
const FAILURE: &str = "the conversation could not be evaluated: the scorer failed on it";

/// The use case and what it needs.
pub(crate) struct EvaluateConversations {
    pub(crate) ingest: IngestClient,
    pub(crate) store: Arc<dyn EvaluationStore>,
    pub(crate) scorer: Arc<Scorer>,
}

/// Nothing of the batch was stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvaluateError {
    /// The transcripts could not be read.
    #[error(transparent)]
    Transcripts(#[from] ClientError),
    /// The results could not be stored.
    #[error(transparent)]
    Store(#[from] DatabaseError),
    /// A result could not be written as an event.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// An evaluation could not be written as JSON.
    #[error("evaluation cannot be written as JSON: {0}")]
    Document(#[from] serde_json::Error),
}

impl EvaluateConversations {
    /// Evaluates what is new among `accepted`; conversations that were evaluated before, or deleted since, are passed
    /// over.
    pub(crate) async fn run(
        &self,
        accepted: &[(EventId, ConversationAccepted)],
    ) -> Result<(), EvaluateError> {
        let references: Vec<TicketReference> = accepted
            .iter()
            .map(|(_, event)| TicketReference {
                organization_id: event.organization_id,
                ticket_id: event.ticket_id,
            })
            .collect();
        let transcripts = self.ingest.read_transcripts(&references).await?;
        let events: HashMap<TicketId, EventId> =
            accepted.iter().map(|(id, event)| (event.ticket_id, *id)).collect();
        let mut evaluations = Vec::with_capacity(transcripts.len());
        for (transcript, outcome) in self.score_all(transcripts).await {
            if let Some(event_id) = events.get(&transcript.ticket.id) {
                evaluations.push(new_evaluation(*event_id, transcript, outcome)?);
            }
        }
        self.store.record(evaluations).await?;
        Ok(())
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
    };
    let event = OutgoingEvent::new(new_id(), evaluated_at, &evaluated)?;
    let (status, document, error_message) = match evaluated.outcome {
        EvaluationOutcome::Evaluated { evaluation } => {
            (status_of(&evaluation), Some(serde_json::to_string(&evaluation)?), None)
        }
        EvaluationOutcome::Failed { error_message } => (Status::Failed, None, Some(error_message)),
    };
    Ok(NewEvaluation {
        accepted_event_id: event_id,
        evaluated_event: event,
        id: evaluated.evaluation_id,
        ticket_id: evaluated.ticket.id,
        organization_id: evaluated.organization_id,
        status,
        document,
        error_message,
        scorer_version: SCORER_VERSION.to_owned(),
        created_at: evaluated_at,
    })
}

fn status_of(evaluation: &Evaluation) -> Status {
    match evaluation.status {
        EvaluationStatus::Scored => Status::Scored,
        EvaluationStatus::NotApplicable => Status::NotApplicable,
    }
}
