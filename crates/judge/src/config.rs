//! The section `[scoring.judge]` of the configuration.

use std::num::NonZeroU32;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

/// Upper bound of the timeout: the queue must not stall for longer.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Endpoint and limits of the judge. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeConfig {
    /// Base URL of `/chat/completions`; empty: no judge.
    pub url: String,
    /// Name of the model, as the endpoint knows it.
    pub model: String,
    /// How disagreement between judge and built-in scorer affects the charge.
    pub policy: JudgePolicy,
    /// Sent as bearer token; empty: none is sent.
    pub key: SecretString,
    /// Deadline of one judgement including retries, in milliseconds.
    pub timeout_milliseconds: u64,
    /// Maximum number of judgements in flight.
    pub concurrency: usize,
    /// Maximum number of requests for one prompt.
    pub attempts: u32,
    /// Maximum number of tokens of an answer.
    pub max_answer_tokens: u32,
    /// Maximum size of a response, in bytes.
    pub max_answer_bytes: usize,
    /// Maximum size of the encoded transcript, in bytes; longer ones are not sent.
    pub max_transcript_bytes: usize,
    /// Price of a million prompt tokens, in US dollars.
    pub prompt_usd_per_million_tokens: f64,
    /// Price of a million answer tokens, in US dollars.
    pub completion_usd_per_million_tokens: f64,
    /// Spending cap of this process for a day (UTC), in US dollars; 0: no cap.
    pub daily_usd_cap: f64,
}

/// How disagreement on status, `resolved_by` or charge affects the charge. Disagreement is flagged under either policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgePolicy {
    /// The charge goes to review.
    Advise,
    /// The judge's charge stands.
    Decide,
}

/// The judge's settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeConfigError {
    /// Not an HTTP URL.
    #[error(
        "scoring.judge.url must begin with http:// or https:// and name a host, as in https://api.example.com/v1: {0}"
    )]
    Url(String),
    /// The URL contains a user name or a password.
    #[error("scoring.judge.url must contain no user name or password: put the key into scoring.judge.key")]
    UrlWithCredentials,
    /// The key is not valid in an HTTP header.
    #[error(
        "scoring.judge.key contains characters that are not allowed in an HTTP header: was it copied with a line break?"
    )]
    Key,
    /// A setting is missing or out of its range.
    #[error("scoring.judge.{name} {rule}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The violated rule.
        rule: &'static str,
    },
    /// The HTTP client cannot be built.
    #[error("http client of the judge cannot be built: {0}")]
    Client(String),
}

/// Validated settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub url: Url,
    pub model: String,
    pub policy: JudgePolicy,
    pub key: SecretString,
    pub timeout: Duration,
    pub concurrency: usize,
    pub attempts: NonZeroU32,
    pub max_answer_tokens: u32,
    pub max_answer_bytes: usize,
    pub max_transcript_bytes: usize,
    pub prices: Prices,
    /// US dollars; `None`: no cap.
    pub daily_cap: Option<f64>,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    pub prompt: f64,
    pub completion: f64,
}

impl Prices {
    /// Cost in US dollars.
    pub(crate) fn cost(self, prompt_tokens: u64, completion_tokens: u64) -> f64 {
        (self.prompt * prompt_tokens as f64 + self.completion * completion_tokens as f64) / 1e6
    }
}

impl JudgeConfig {
    /// Whether a judge is configured.
    pub fn is_on(&self) -> bool {
        !self.url.trim().is_empty()
    }

    /// Validates the settings without a request.
    pub(crate) fn check(&self) -> Result<Settings, JudgeConfigError> {
        let invalid = |name, rule| Err(JudgeConfigError::Setting { name, rule });
        let timeout = Duration::from_millis(self.timeout_milliseconds);
        let Some(attempts) = NonZeroU32::new(self.attempts) else {
            return invalid("attempts", "must be at least 1");
        };
        if self.model.trim().is_empty() {
            return invalid("model", "must name the model to ask");
        }
        if timeout.is_zero() || timeout > MAX_TIMEOUT {
            return invalid("timeout_milliseconds", "must be from 1 to 600000");
        }
        if self.concurrency == 0 || self.concurrency > 1024 {
            return invalid("concurrency", "must be from 1 to 1024");
        }
        if self.max_answer_tokens < 64 {
            return invalid("max_answer_tokens", "must be at least 64: an answer has about 500");
        }
        if self.max_answer_bytes < 1024 || self.max_transcript_bytes < 1024 {
            return invalid("max_answer_bytes and max_transcript_bytes", "must be at least 1024");
        }
        let amounts =
            [self.prompt_usd_per_million_tokens, self.completion_usd_per_million_tokens, self.daily_usd_cap];
        if amounts.iter().any(|amount| !amount.is_finite() || *amount < 0.0) {
            return invalid("prices and daily_usd_cap", "must be amounts of 0 or more");
        }
        let prices = Prices {
            prompt: self.prompt_usd_per_million_tokens,
            completion: self.completion_usd_per_million_tokens,
        };
        if self.daily_usd_cap > 0.0 && prices.prompt + prices.completion == 0.0 {
            return invalid(
                "daily_usd_cap",
                "needs the prices of tokens: without them every request seems to be free",
            );
        }
        let key = self.key.expose_secret().trim();
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(JudgeConfigError::Key);
        }
        Ok(Settings {
            url: completions_url(&self.url)?,
            model: self.model.trim().to_owned(),
            policy: self.policy,
            key: key.to_owned().into(),
            timeout,
            concurrency: self.concurrency,
            attempts,
            max_answer_tokens: self.max_answer_tokens,
            max_answer_bytes: self.max_answer_bytes,
            max_transcript_bytes: self.max_transcript_bytes,
            prices,
            daily_cap: (self.daily_usd_cap > 0.0).then_some(self.daily_usd_cap),
        })
    }
}

/// `{url}/chat/completions`, or the URL itself when it already ends in this path. A query is kept.
fn completions_url(text: &str) -> Result<Url, JudgeConfigError> {
    let mut url = Url::parse(text.trim()).map_err(|error| JudgeConfigError::Url(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(JudgeConfigError::Url(format!("the scheme is {}", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(JudgeConfigError::UrlWithCredentials);
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    if path.ends_with("/chat/completions") {
        url.set_path(&path);
    } else {
        url.set_path(&format!("{path}/chat/completions"));
    }
    Ok(url)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn config() -> JudgeConfig {
        JudgeConfig {
            url: "https://judge.example/v1".to_owned(),
            model: "judge-1".to_owned(),
            policy: JudgePolicy::Decide,
            key: "secret".to_owned().into(),
            timeout_milliseconds: 30_000,
            concurrency: 4,
            attempts: 3,
            max_answer_tokens: 1000,
            max_answer_bytes: 65_536,
            max_transcript_bytes: 100_000,
            prompt_usd_per_million_tokens: 1.0,
            completion_usd_per_million_tokens: 4.0,
            daily_usd_cap: 0.0,
        }
    }

    #[test]
    fn completions_path_is_appended_once() {
        let cases = [
            ("https://judge.example/v1", "https://judge.example/v1/chat/completions"),
            (" https://judge.example/v1/ ", "https://judge.example/v1/chat/completions"),
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434/chat/completions"),
            ("https://judge.example/v1/chat/completions", "https://judge.example/v1/chat/completions"),
            (
                "https://judge.example/x?api-version=2",
                "https://judge.example/x/chat/completions?api-version=2",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(completions_url(given).unwrap().as_str(), expected, "{given}");
        }
    }

    type Change = fn(&mut JudgeConfig);

    #[test]
    fn invalid_setting_is_named() {
        let cases: [(&str, Change); 12] = [
            ("judge.url", |config| config.url = "judge.example".to_owned()),
            ("judge.url", |config| config.url = "ftp://judge.example".to_owned()),
            ("judge.key", |config| config.url = "https://me:secret@judge.example".to_owned()),
            ("judge.key", |config| config.key = "two\nlines".to_owned().into()),
            ("judge.model", |config| config.model = " ".to_owned()),
            ("judge.timeout_milliseconds", |config| config.timeout_milliseconds = 0),
            ("judge.concurrency", |config| config.concurrency = 0),
            ("judge.attempts", |config| config.attempts = 0),
            ("judge.max_answer_tokens", |config| config.max_answer_tokens = 1),
            ("max_answer_bytes", |config| config.max_answer_bytes = 1),
            ("daily_usd_cap", |config| config.daily_usd_cap = f64::NAN),
            ("daily_usd_cap", |config| {
                config.daily_usd_cap = 5.0;
                config.prompt_usd_per_million_tokens = 0.0;
                config.completion_usd_per_million_tokens = 0.0;
            }),
        ];
        for (name, change) in cases {
            let mut config = config();
            change(&mut config);
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(name), "{name}: {error}");
            assert!(!error.contains("me:secret"), "{error}");
        }
        config().check().unwrap();
    }
}
