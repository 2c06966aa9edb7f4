//! Having the judge look at conversations that the built-in scorer has evaluated. It takes seconds and costs money: not while
//! a transaction is open, not beyond the end of the process, and not again for what has an evaluation already.

use std::sync::Arc;

use assay_contracts::evaluation::Evaluation;
use assay_contracts::event::EvaluationOutcome;
use assay_contracts::internal::Transcript;
use assay_judge::Judge;
use assay_scoring::Scorer;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::store::EvaluationStore;

/// The use case and what it needs.
pub(crate) struct JudgeConversations {
    pub(crate) judge: Judge,
    pub(crate) scorer: Arc<Scorer>,
    pub(crate) store: Arc<dyn EvaluationStore>,
    /// Cancelled when the process stops consuming: then nobody waits for the judge any more.
    pub(crate) stop: CancellationToken,
}

impl JudgeConversations {
    /// The conversations with what the judge made of them, in the same order; `None` for those whose judgement was
    /// interrupted, which have to be delivered again.
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
            nothing_to_judge => return Some(nothing_to_judge),
        };
        let evaluation = self.stop.run_until_cancelled(self.ask(transcript, *builtin)).await?;
        Some(EvaluationOutcome::Evaluated { evaluation: Box::new(evaluation) })
    }

    /// A delivery that comes again changes nothing, whatever is made of it here: so nothing is asked for it.
    async fn ask(&self, transcript: &Transcript, builtin: Evaluation) -> Evaluation {
        if self.is_settled(transcript).await {
            return builtin;
        }
        self.judge.evaluate(&self.scorer, &transcript.conversation, builtin).await
    }

    /// A database that cannot say so will not store the result either: then it is asked again later, and paid again.
    async fn is_settled(&self, transcript: &Transcript) -> bool {
        let settled = self.store.settled(vec![transcript.ticket.id]).await;
        settled.is_ok_and(|settled| !settled.is_empty())
    }
}
