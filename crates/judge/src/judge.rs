//! Judging a conversation: ask, read, look up, rule, and repair once what can be repaired.

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{Evaluation, FallbackReason, JudgeUse};
use assay_platform::runtime::{blocking, within};
use assay_scoring::Scorer;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::answer::{Answer, AnswerFault};
use crate::circuit::Circuit;
use crate::completion::Completion;
use crate::config::{JudgeConfig, JudgeConfigError};
use crate::endpoint::EndpointError;
use crate::evidence::look_up;
use crate::overlay::{Judgement, fallen_back, judged};
use crate::prompt::Question;
use crate::retry::{AskError, Asker, Tally};

/// The judge of a process: its endpoint, its places, its account.
#[derive(Debug)]
pub struct Judge {
    asker: Asker,
    places: Semaphore,
    circuit: Circuit,
}

/// There is no judgement.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum NoJudgement {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("the answer cannot be used: {0}")]
    Answer(#[from] AnswerFault),
    #[error("there was no usable answer within {0} ms")]
    Timeout(u128),
    #[error("the endpoint is left alone after it failed")]
    LeftAlone,
    #[error("the conversation has {bytes} bytes, and {limit} may be sent")]
    TooLong { bytes: usize, limit: usize },
    #[error("the process stops")]
    Stopping,
}

impl NoJudgement {
    /// For the evaluation.
    pub(crate) const fn reason(&self) -> FallbackReason {
        match self {
            Self::Ask(AskError::Endpoint(error)) => match error {
                EndpointError::Status { status: 429, .. } => FallbackReason::RateLimited,
                EndpointError::TooLarge { .. } => FallbackReason::UnusableAnswer,
                EndpointError::Status { .. } | EndpointError::Redirect { .. } if !error.is_temporary() => {
                    FallbackReason::Refused
                }
                _ => FallbackReason::Unavailable,
            },
            Self::Ask(AskError::NoCompletion(_)) => FallbackReason::UnusableAnswer,
            Self::Ask(AskError::Cap(_)) => FallbackReason::SpendingCap,
            Self::Answer(fault) if fault.is_about_quotes() => FallbackReason::UnsupportedQuotes,
            Self::Answer(_) => FallbackReason::UnusableAnswer,
            Self::Timeout(_) => FallbackReason::Timeout,
            Self::LeftAlone | Self::Stopping => FallbackReason::Unavailable,
            Self::TooLong { .. } => FallbackReason::TranscriptTooLong,
        }
    }
}

impl Judge {
    /// The judge that the settings describe; `None` where they name none. Asks nothing yet.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn open(config: &JudgeConfig) -> Result<Option<Self>, JudgeConfigError> {
        if !config.is_on() {
            return Ok(None);
        }
        let settings = config.check()?;
        let places = Semaphore::new(settings.concurrency);
        Ok(Some(Self { asker: Asker::open(settings)?, places, circuit: Circuit::default() }))
    }

    /// Judgements under way at most.
    pub fn concurrency(&self) -> usize {
        self.asker.settings.concurrency
    }

    /// Judges a conversation that the built-in scorer has evaluated. Without AXIS there is nothing to judge, and the
    /// evaluation comes back as it was; without a usable answer it comes back marked as a fall-back.
    ///
    /// Takes no longer than the timeout once it has a place. Dropping the future ends the request that is under way.
    pub async fn evaluate(
        &self,
        scorer: &Scorer,
        conversation: &Conversation,
        builtin: Evaluation,
    ) -> Evaluation {
        if builtin.axis.is_none() {
            return builtin;
        }
        // It is never closed.
        let _place = self.places.acquire().await;
        let began = Instant::now();
        let mut tally = Tally::default();
        let result = self.judge(scorer, conversation, &builtin, &mut tally).await;
        let (model, policy) = (&self.asker.settings.model, self.asker.settings.policy);
        let latency_ms = if tally.attempts == 0 { 0 } else { millis_since(began) };
        let usage = |fallback_reason| tally.record(latency_ms, fallback_reason);
        match result {
            Ok(judgement) => judged(builtin, judgement, policy, model, usage(None)),
            Err(error) => {
                report(&builtin, &error);
                fallen_back(builtin, model, usage(Some(error.reason())))
            }
        }
    }

    /// One judgement within its deadline, with everything that it takes in `tally`.
    pub(crate) async fn judge(
        &self,
        scorer: &Scorer,
        conversation: &Conversation,
        builtin: &Evaluation,
        tally: &mut Tally,
    ) -> Result<Judgement, NoJudgement> {
        let talks_to_evaluator = scorer.talks_to_evaluator(conversation);
        let question = Question::about(conversation, builtin, &talks_to_evaluator);
        let (bytes, limit) = (question.transcript_bytes(), self.asker.settings.max_transcript_bytes);
        if bytes > limit {
            return Err(NoJudgement::TooLong { bytes, limit });
        }
        if !self.circuit.allows(Instant::now()) {
            return Err(NoJudgement::LeftAlone);
        }
        let timeout = self.asker.settings.timeout;
        let bench = Bench {
            asker: &self.asker,
            scorer,
            conversation,
            builtin,
            talks_to_evaluator: &talks_to_evaluator,
            deadline: Instant::now() + timeout,
        };
        let result = within(timeout, bench.judge(&question, tally)).await;
        let result = result.unwrap_or(Err(NoJudgement::Timeout(timeout.as_millis())));
        self.remember(&result);
        result
    }

    /// Three failures of the endpoint in a row and it is left alone for a while.
    fn remember(&self, result: &Result<Judgement, NoJudgement>) {
        let (error, asked) = match result {
            Err(error @ NoJudgement::Timeout(_)) => (error, None),
            Err(error @ NoJudgement::Ask(AskError::Endpoint(cause)))
                if !matches!(cause, EndpointError::TooLarge { .. }) =>
            {
                (error, cause.retry_after())
            }
            // No word about the endpoint.
            Err(NoJudgement::Ask(AskError::Cap(_))) => return,
            _ => {
                if self.circuit.answered() {
                    tracing::info!("the judge answers again");
                }
                return;
            }
        };
        if let Some(pause) = self.circuit.failed(Instant::now(), asked) {
            tracing::warn!(
                cause = %error,
                pause_seconds = pause.as_secs(),
                "the judge is left alone for a while, and the built-in scorer stands in: see `assay judge test`"
            );
        }
    }
}

/// What one judgement works with.
struct Bench<'j> {
    asker: &'j Asker,
    scorer: &'j Scorer,
    conversation: &'j Conversation,
    builtin: &'j Evaluation,
    talks_to_evaluator: &'j [bool],
    deadline: Instant,
}

impl Bench<'_> {
    /// Asks, and once more when the answer has a fault that its author can mend.
    async fn judge(&self, question: &Question, tally: &mut Tally) -> Result<Judgement, NoJudgement> {
        let completion = self.asker.ask(question, self.deadline, tally).await?;
        let fault = match self.weigh(&completion, question).await {
            // Who a human is invented for can be mended, too, and by the rules if need be.
            Ok(judgement) if self.invents_human(&judgement) => AnswerFault::NoHuman,
            Err(NoJudgement::Answer(fault)) => fault,
            other => return other,
        };
        let repair = question.repair(&completion.text, &fault.to_string());
        let completion = self.asker.ask(&repair, self.deadline, tally).await?;
        self.weigh(&completion, question).await
    }

    async fn weigh(&self, completion: &Completion, question: &Question) -> Result<Judgement, NoJudgement> {
        let answer = Answer::parse(&completion.text, completion.is_cut_off, &question.case)?;
        let quotes = look_up(&answer, self.conversation, self.talks_to_evaluator)?;
        let (scorer, conversation, builtin, opinion) =
            (self.scorer.clone(), self.conversation.clone(), self.builtin.clone(), answer.opinion());
        // The conversation is read once more for it, which takes tens of milliseconds.
        let ruling = blocking(move || scorer.rule_on(&conversation, &builtin, opinion)).await;
        let ruling = ruling.map_err(|_| NoJudgement::Stopping)?;
        Ok(Judgement { answer, quotes, ruling })
    }

    fn invents_human(&self, judgement: &Judgement) -> bool {
        judgement.answer.opinion().invents_human(self.conversation)
    }
}

impl Tally {
    /// For the evaluation.
    pub(crate) fn record(&self, latency_ms: u64, fallback_reason: Option<FallbackReason>) -> JudgeUse {
        JudgeUse {
            latency_ms,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            cost_usd: (self.cost_usd * 1e6).round() / 1e6,
            attempts: self.attempts,
            fallback_reason,
        }
    }
}

pub(crate) fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Once for each conversation that the judge was asked about, once a day for the cap, and once for each pause.
fn report(builtin: &Evaluation, error: &NoJudgement) {
    match error {
        NoJudgement::Ask(AskError::Cap(cap)) => {
            if cap.first {
                tracing::warn!(
                    cause = %cap,
                    "the judge is not asked again before midnight UTC, and the built-in scorer stands in: raise \
                     scoring.judge.daily_usd_cap to change that"
                );
            }
        }
        NoJudgement::LeftAlone => {}
        error => {
            let transcript = builtin.transcript_sha256.as_str();
            tracing::warn!(transcript, cause = %error, "the judge gave no usable answer: the built-in scorer stands in");
        }
    }
}
