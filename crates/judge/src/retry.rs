//! Asking one question until there is a completion: again after a pause while the endpoint is busy or away, without a
//! parameter that it does not take, within the spending cap.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_platform::runtime::now;
use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::completion::{Completion, Dialect, NoCompletion};
use crate::config::{JudgeConfigError, Settings};
use crate::endpoint::{Endpoint, EndpointError};
use crate::prompt::Question;
use crate::spending::{CapReached, Spending};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const GROWTH: f32 = 3.0;
/// Bytes of a request for one token, at the least: the estimate must not be too low.
const BYTES_PER_TOKEN: u64 = 2;

/// An endpoint with everything that is known about it.
#[derive(Debug)]
pub(crate) struct Asker {
    pub settings: Settings,
    endpoint: Endpoint,
    dialect: Mutex<Dialect>,
    spending: Spending,
}

/// What one judgement took so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    pub attempts: u32,
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    /// US dollars; requests that are under way or were lost with their estimate.
    pub cost_usd: f64,
}

/// There is no completion.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum AskError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    NoCompletion(#[from] NoCompletion),
    #[error(transparent)]
    Cap(#[from] CapReached),
}

impl Asker {
    pub(crate) fn open(settings: Settings) -> Result<Self, JudgeConfigError> {
        let endpoint = Endpoint::open(&settings)?;
        let spending = Spending::new(settings.daily_cap);
        Ok(Self { settings, endpoint, dialect: Mutex::default(), spending })
    }

    /// Asks until there is a completion, the attempts are used up, or the next one would begin after `deadline`.
    pub(crate) async fn ask(
        &self,
        question: &Question,
        deadline: Instant,
        tally: &mut Tally,
    ) -> Result<Completion, AskError> {
        let mut pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(FIRST_PAUSE)
            .with_factor(GROWTH)
            .with_max_delay(LONGEST_PAUSE)
            .with_max_times(usize::try_from(self.settings.attempts.get() - 1).unwrap_or(usize::MAX))
            .build();
        loop {
            let dialect = *self.dialect();
            let error = match self.try_once(question, dialect, tally).await {
                Err(AskError::Endpoint(error)) => error,
                other => return other,
            };
            if let Some(poorer) = dialect.without_refused(&error) {
                self.learn(poorer);
                continue;
            }
            let pause = pauses.next().filter(|_| error.is_temporary());
            let Some(pause) = pause.map(|pause| error.retry_after().unwrap_or(pause)) else {
                return Err(error.into());
            };
            if deadline.saturating_duration_since(Instant::now()) <= pause {
                return Err(error.into());
            }
            sleep(pause).await;
        }
    }

    async fn try_once(
        &self,
        question: &Question,
        dialect: Dialect,
        tally: &mut Tally,
    ) -> Result<Completion, AskError> {
        let Settings { model, max_answer_tokens, prices, .. } = &self.settings;
        let body = dialect.body(model, &question.messages, *max_answer_tokens);
        let prompt_tokens = (body.len() as u64).div_ceil(BYTES_PER_TOKEN);
        let estimate = prices.of(prompt_tokens, u64::from(*max_answer_tokens));
        let reserved = self.spending.reserve(estimate, now())?;
        let before = tally.cost_usd;
        tally.attempts += 1;
        tally.cost_usd = before + estimate;
        let body = match self.endpoint.post(body).await {
            Ok(body) => body,
            Err(error) => {
                let cost = if error.may_cost() { reserved.keep() } else { reserved.settle(0.0) };
                tally.cost_usd = before + cost;
                return Err(error.into());
            }
        };
        let (usage, completion) = Completion::read(&body);
        tally.cost_usd = before
            + match usage {
                Some(usage) => reserved.settle(prices.of(usage.prompt_tokens, usage.completion_tokens)),
                None => reserved.keep(),
            };
        if let Some(usage) = usage {
            tally.prompt_tokens = Some(tally.prompt_tokens.unwrap_or(0) + usage.prompt_tokens);
            tally.completion_tokens = Some(tally.completion_tokens.unwrap_or(0) + usage.completion_tokens);
        }
        Ok(completion?)
    }

    fn learn(&self, poorer: Dialect) {
        let mut dialect = self.dialect();
        let known = dialect.and(poorer);
        if known != *dialect {
            tracing::info!(dialect = ?known, "the judge's endpoint does not take a parameter: it is left away from now on");
            *dialect = known;
        }
    }

    /// Every change is a single step that does not panic.
    fn dialect(&self) -> MutexGuard<'_, Dialect> {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
