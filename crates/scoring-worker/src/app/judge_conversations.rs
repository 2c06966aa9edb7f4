//! Lets the judge evaluate conversations that the built-in scorer has scored. A call takes seconds and costs money:
//! none is made while a transaction is open, during shutdown, or for tickets that are evaluated already.

use std::sync::Arc;

use assay_contracts::evaluation::Evaluation;
use assay_contracts::event::EvaluationOutcome;
use assay_contracts::internal::Transcript;
use assay_judge::Judge;
use assay_scoring::Scorer;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::store::EvaluationStore;

pub(crate) struct JudgeConversations {
    pub(crate) judge: Judge,
    pub(crate) scorer: Arc<Scorer>,
    pub(crate) store: EvaluationStore,
    /// Cancelled when the process stops consuming; aborts pending calls of the judge.
    pub(crate) stop: CancellationToken,
}

impl JudgeConversations {
    /// The judged outcomes, in the same order; `None` for a call that the shutdown interrupted: its event is redelivered.
    pub(crate) async fn run(
        &self,
        scored: Vec<(Transcript, EvaluationOutcome)>,
    ) -> Vec<(Transcript, Option<EvaluationOutcome>)> {
        let judged = scored.into_iter().map(|(transcript, outcome)| async move {
            let outcome = self.judge(&transcript, outcome).await;
            (transcript, outcome)
        });
        join_all(judged).await
    }

    async fn judge(&self, transcript: &Transcript, outcome: EvaluationOutcome) -> Option<EvaluationOutcome> {
        let builtin = match outcome {
            EvaluationOutcome::Evaluated { evaluation } if evaluation.axis.is_some() => evaluation,
            unjudgeable => return Some(unjudgeable),
        };
        let evaluation = self.stop.run_until_cancelled(self.ask(transcript, *builtin)).await?;
        Some(EvaluationOutcome::Evaluated { evaluation: Box::new(evaluation) })
    }

    /// A redelivery does not change a stored evaluation, so the judge is not called for it.
    async fn ask(&self, transcript: &Transcript, builtin: Evaluation) -> Evaluation {
        if self.is_finished(transcript).await {
            return builtin;
        }
        self.judge.evaluate(&self.scorer, &transcript.conversation, builtin).await
    }

    /// Whether the ticket is evaluated already or deleted. False when the database fails: then the result is not stored either.
    async fn is_finished(&self, transcript: &Transcript) -> bool {
        let finished = self.store.finished(vec![transcript.ticket.id]).await;
        finished.is_ok_and(|finished| !finished.is_empty())
    }
}
