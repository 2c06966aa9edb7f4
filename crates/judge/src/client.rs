//! The client of the endpoint: retries with backoff, omits unsupported parameters, and respects the spending cap.

use std::sync::Mutex;
use std::time::Duration;

use assay_platform::runtime::{LockExt as _, now};
use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::completion::{Completion, Dialect, NoCompletion};
use crate::config::{JudgeConfigError, Settings};
use crate::endpoint::{Endpoint, EndpointError};
use crate::prompt::Prompt;
use crate::spending::{CapReached, Spending};

const MIN_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(10);
const BACKOFF_FACTOR: f32 = 3.0;
/// Minimum bytes per token: the estimate must not be too low.
const MIN_BYTES_PER_TOKEN: u64 = 2;

/// An endpoint with its settings, dialect and spending.
#[derive(Debug)]
pub(crate) struct JudgeClient {
    pub settings: Settings,
    endpoint: Endpoint,
    dialect: Mutex<Dialect>,
    spending: Spending,
}

/// Requests, tokens and cost of one judgement so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    /// Requests sent, also those that only repeat a request without a refused parameter.
    pub requests: u32,
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    /// US dollars; requests in flight or lost count with their estimate.
    pub cost_usd: f64,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ClientError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    NoCompletion(#[from] NoCompletion),
    #[error(transparent)]
    Cap(#[from] CapReached),
}

impl JudgeClient {
    pub(crate) fn open(settings: Settings) -> Result<Self, JudgeConfigError> {
        let endpoint = Endpoint::open()?;
        let spending = Spending::new(settings.daily_cap);
        Ok(Self { settings, endpoint, dialect: Mutex::default(), spending })
    }

    /// Retries temporary errors until there is a completion, the attempts are used up, or the next attempt would start
    /// after `deadline`; other errors are returned at once. When the endpoint refuses a parameter, the request is repeated
    /// without it, which does not use up an attempt.
    pub(crate) async fn complete(
        &self,
        prompt: &Prompt,
        deadline: Instant,
        tally: &mut Tally,
    ) -> Result<Completion, ClientError> {
        let mut backoff = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(MIN_BACKOFF)
            .with_factor(BACKOFF_FACTOR)
            .with_max_delay(MAX_BACKOFF)
            .with_max_times(usize::try_from(self.settings.attempts.get() - 1).unwrap_or(usize::MAX))
            .build();
        loop {
            let dialect = *self.dialect.locked();
            let error = match self.send_once(prompt, dialect, tally).await {
                Err(ClientError::Endpoint(error)) => error,
                other => return other,
            };
            if let Some(reduced) = dialect.without_refused_parameter(&error) {
                self.restrict_dialect(reduced);
                continue;
            }
            let pause = backoff.next().filter(|_| error.is_temporary());
            let Some(pause) = pause.map(|pause| error.retry_after().unwrap_or(pause)) else {
                return Err(error.into());
            };
            if deadline.saturating_duration_since(Instant::now()) <= pause {
                return Err(error.into());
            }
            sleep(pause).await;
        }
    }

    async fn send_once(
        &self,
        prompt: &Prompt,
        dialect: Dialect,
        tally: &mut Tally,
    ) -> Result<Completion, ClientError> {
        let Settings { model, max_answer_tokens, prices, .. } = &self.settings;
        let request = dialect.body(model, &prompt.messages, *max_answer_tokens);
        let prompt_tokens = (request.len() as u64).div_ceil(MIN_BYTES_PER_TOKEN);
        let estimate = prices.cost(prompt_tokens, u64::from(*max_answer_tokens));
        let reserved = self.spending.reserve(estimate, now())?;
        let earlier_cost = tally.cost_usd;
        tally.requests += 1;
        tally.cost_usd = earlier_cost + estimate;
        let response = match self.endpoint.post(&self.settings, request).await {
            Ok(response) => response,
            Err(error) => {
                let cost =
                    if error.may_be_billed() { reserved.charge_estimate() } else { reserved.charge(0.0) };
                tally.cost_usd = earlier_cost + cost;
                return Err(error.into());
            }
        };
        let (usage, completion) = Completion::parse(&response);
        let cost = match usage {
            Some(usage) => reserved.charge(prices.cost(usage.prompt_tokens, usage.completion_tokens)),
            None => reserved.charge_estimate(),
        };
        tally.cost_usd = earlier_cost + cost;
        if let Some(usage) = usage {
            tally.prompt_tokens = Some(tally.prompt_tokens.unwrap_or(0) + usage.prompt_tokens);
            tally.completion_tokens = Some(tally.completion_tokens.unwrap_or(0) + usage.completion_tokens);
        }
        Ok(completion?)
    }

    fn restrict_dialect(&self, reduced: Dialect) {
        let mut dialect = self.dialect.locked();
        let supported = dialect.intersection(reduced);
        if supported != *dialect {
            tracing::info!(dialect = ?supported, "the judge's endpoint does not support a parameter: it is omitted from now on");
            *dialect = supported;
        }
    }
}
