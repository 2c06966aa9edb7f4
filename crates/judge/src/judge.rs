//! Judges a conversation: request, parse, locate quotes, apply the rules, and repair a faulty answer once.

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{Evaluation, FallbackReason, JudgeUse};
use assay_platform::runtime::{blocking, timeout};
use assay_scoring::Scorer;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::answer::{Answer, AnswerError};
use crate::client::{ClientError, JudgeClient, Tally};
use crate::completion::Completion;
use crate::config::{JudgeConfig, JudgeConfigError};
use crate::cooldown::Cooldown;
use crate::endpoint::EndpointError;
use crate::evidence::locate_quotes;
use crate::overlay::{Judgement, fallback, overlay};
use crate::prompt::Prompt;

/// The judge of a process, with its concurrency limit and cooldown.
#[derive(Debug)]
pub struct Judge {
    client: JudgeClient,
    permits: Semaphore,
    cooldown: Cooldown,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum NoJudgement {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the answer cannot be used: {0}")]
    Answer(#[from] AnswerError),
    #[error("there was no usable answer within {0} ms")]
    Timeout(u128),
    #[error("the endpoint is in a cooldown after failures")]
    CoolingDown,
    #[error("the conversation has {bytes} bytes, and {limit} may be sent")]
    TooLong { bytes: usize, limit: usize },
    #[error("the process stops")]
    Stopping,
}

impl NoJudgement {
    pub(crate) const fn fallback_reason(&self) -> FallbackReason {
        match self {
            Self::Client(ClientError::Endpoint(error)) => match error {
                EndpointError::Status { status: 429, .. } => FallbackReason::RateLimited,
                EndpointError::TooLarge { .. } => FallbackReason::UnusableAnswer,
                EndpointError::Status { .. } | EndpointError::Redirect { .. } if !error.is_temporary() => {
                    FallbackReason::Refused
                }
                _ => FallbackReason::Unavailable,
            },
            Self::Client(ClientError::NoCompletion(_)) => FallbackReason::UnusableAnswer,
            Self::Client(ClientError::Cap(_)) => FallbackReason::SpendingCap,
            Self::Answer(error) if error.is_about_quotes() => FallbackReason::UnsupportedQuotes,
            Self::Answer(_) => FallbackReason::UnusableAnswer,
            Self::Timeout(_) => FallbackReason::Timeout,
            Self::CoolingDown | Self::Stopping => FallbackReason::Unavailable,
            Self::TooLong { .. } => FallbackReason::TranscriptTooLong,
        }
    }
}

impl Judge {
    /// Opens the configured judge without a request; `None` when it is off.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn open(config: &JudgeConfig) -> Result<Option<Self>, JudgeConfigError> {
        if !config.is_on() {
            return Ok(None);
        }
        let settings = config.check()?;
        let permits = Semaphore::new(settings.concurrency);
        Ok(Some(Self { client: JudgeClient::open(settings)?, permits, cooldown: Cooldown::default() }))
    }

    /// Maximum number of judgements in flight.
    pub fn concurrency(&self) -> usize {
        self.client.settings.concurrency
    }

    /// Judges a conversation with a built-in evaluation. An evaluation without AXIS is returned unchanged; without a usable
    /// answer the built-in one is returned, marked as a fallback.
    ///
    /// Takes no longer than the timeout once it has a permit. Dropping the future cancels the request in flight.
    pub async fn evaluate(
        &self,
        scorer: &Scorer,
        conversation: &Conversation,
        builtin: Evaluation,
    ) -> Evaluation {
        if builtin.axis.is_none() {
            return builtin;
        }
        // Cannot fail: the semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let began = Instant::now();
        let mut tally = Tally::default();
        let result = self.judge(scorer, conversation, &builtin, &mut tally).await;
        let (model, policy) = (&self.client.settings.model, self.client.settings.policy);
        let latency_ms = if tally.requests == 0 { 0 } else { millis_since(began) };
        let usage = |fallback_reason| tally.to_judge_use(latency_ms, fallback_reason);
        match result {
            Ok(judgement) => overlay(builtin, judgement, policy, model, usage(None)),
            Err(error) => {
                log_failure(&builtin, &error);
                fallback(builtin, model, usage(Some(error.fallback_reason())))
            }
        }
    }

    /// One judgement by its deadline. `tally` is kept up to date, also on errors and timeouts.
    pub(crate) async fn judge(
        &self,
        scorer: &Scorer,
        conversation: &Conversation,
        builtin: &Evaluation,
        tally: &mut Tally,
    ) -> Result<Judgement, NoJudgement> {
        let is_injection = scorer.injection_mask(conversation);
        let prompt = Prompt::for_conversation(conversation, builtin, &is_injection);
        let (bytes, limit) = (prompt.transcript_bytes(), self.client.settings.max_transcript_bytes);
        if bytes > limit {
            return Err(NoJudgement::TooLong { bytes, limit });
        }
        if !self.cooldown.allows_request(Instant::now()) {
            return Err(NoJudgement::CoolingDown);
        }
        let time_limit = self.client.settings.timeout;
        let run = JudgementRun {
            client: &self.client,
            scorer,
            conversation,
            builtin,
            is_injection: &is_injection,
            deadline: Instant::now() + time_limit,
        };
        let result = timeout(time_limit, run.judge(&prompt, tally)).await;
        let result = result.unwrap_or(Err(NoJudgement::Timeout(time_limit.as_millis())));
        self.update_cooldown(&result);
        result
    }

    /// Records success or failure of the endpoint.
    fn update_cooldown(&self, result: &Result<Judgement, NoJudgement>) {
        let (error, retry_after) = match result {
            Err(error @ NoJudgement::Timeout(_)) => (error, None),
            Err(error @ NoJudgement::Client(ClientError::Endpoint(cause)))
                if !cause.is_about_one_request() =>
            {
                (error, cause.retry_after())
            }
            // Nothing was sent.
            Err(NoJudgement::Client(ClientError::Cap(_))) => return,
            _ => {
                if self.cooldown.record_success() {
                    tracing::info!("the judge answers again");
                }
                return;
            }
        };
        if let Some(pause) = self.cooldown.record_failure(Instant::now(), retry_after) {
            tracing::warn!(
                cause = %error,
                pause_seconds = pause.as_secs(),
                "the judge is in a cooldown after failures, and the built-in scorer is used: see `assay judge test`"
            );
        }
    }
}

struct JudgementRun<'j> {
    client: &'j JudgeClient,
    scorer: &'j Scorer,
    conversation: &'j Conversation,
    builtin: &'j Evaluation,
    is_injection: &'j [bool],
    deadline: Instant,
}

impl JudgementRun<'_> {
    /// Requests an answer, and one repair when the answer is faulty.
    async fn judge(&self, prompt: &Prompt, tally: &mut Tally) -> Result<Judgement, NoJudgement> {
        let completion = self.client.complete(prompt, self.deadline, tally).await?;
        let error = match self.check_answer(&completion, prompt).await {
            // The rules would correct an invented human: a repair is requested first.
            Ok(judgement) if self.invents_human(&judgement) => AnswerError::NoHuman,
            Err(NoJudgement::Answer(error)) => error,
            other => return other,
        };
        let repair = prompt.repair(&completion.text, &error.to_string());
        let completion = self.client.complete(&repair, self.deadline, tally).await?;
        self.check_answer(&completion, prompt).await
    }

    async fn check_answer(&self, completion: &Completion, prompt: &Prompt) -> Result<Judgement, NoJudgement> {
        let answer = Answer::parse(completion, &prompt.case)?;
        let quotes = locate_quotes(&answer, self.conversation, self.is_injection)?;
        let (scorer, conversation, builtin, opinion) =
            (self.scorer.clone(), self.conversation.clone(), self.builtin.clone(), answer.opinion());
        // `rule_on` analyses the whole conversation: tens of milliseconds.
        let ruling = blocking(move || scorer.rule_on(&conversation, &builtin, opinion)).await;
        let ruling = ruling.map_err(|_| NoJudgement::Stopping)?;
        Ok(Judgement { answer, quotes, ruling })
    }

    fn invents_human(&self, judgement: &Judgement) -> bool {
        judgement.answer.opinion().invents_human(self.conversation)
    }
}

impl Tally {
    /// The record of an evaluation.
    pub(crate) fn to_judge_use(self, latency_ms: u64, fallback_reason: Option<FallbackReason>) -> JudgeUse {
        JudgeUse {
            latency_ms,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            cost_usd: (self.cost_usd * 1e6).round() / 1e6,
            attempts: self.requests,
            fallback_reason,
        }
    }
}

pub(crate) fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Logs every failed judgement, but a reached cap only once a day and a cooldown only when it starts.
fn log_failure(builtin: &Evaluation, error: &NoJudgement) {
    match error {
        NoJudgement::Client(ClientError::Cap(cap)) => {
            if cap.is_first {
                tracing::warn!(
                    cause = %cap,
                    "the judge is not used again before midnight UTC, and the built-in scorer is used: raise \
                     scoring.judge.daily_usd_cap to change that"
                );
            }
        }
        NoJudgement::CoolingDown => {}
        error => {
            let transcript = builtin.transcript_sha256.as_str();
            tracing::warn!(transcript, cause = %error, "the judge gave no usable answer: the built-in scorer is used");
        }
    }
}
