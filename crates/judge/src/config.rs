//! The section `[scoring.judge]` of the configuration.

use std::num::NonZeroU32;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

/// Longest that one judgement may be given: a queue must not stand still for longer.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

/// Which judge is asked, and within which limits. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeConfig {
    /// Address below which `/chat/completions` lies; empty: no judge.
    pub url: String,
    /// The model.
    pub model: String,
    /// What becomes of a charge on which the judge and the built-in scorer differ.
    pub policy: JudgePolicy,
    /// Sent as bearer token; empty: none is sent.
    pub key: SecretString,
    /// For one judgement with all attempts and pauses, in milliseconds.
    pub timeout_milliseconds: u64,
    /// Judgements under way at most.
    pub concurrency: usize,
    /// Requests for one question at most.
    pub attempts: u32,
    /// Tokens that the judge may answer with.
    pub max_answer_tokens: u32,
    /// Bytes of an answer that are read.
    pub max_answer_bytes: usize,
    /// A longer transcript is not sent, in bytes as it would be sent.
    pub max_transcript_bytes: usize,
    /// Price of a million prompt tokens, in US dollars.
    pub prompt_usd_per_million_tokens: f64,
    /// Price of a million answer tokens, in US dollars.
    pub completion_usd_per_million_tokens: f64,
    /// Spent at most in a day (UTC) by this process, in US dollars; 0: no cap.
    pub daily_usd_cap: f64,
}

/// What becomes of a charge where the judge and the built-in scorer differ on status, solver or charge. That they differ is
/// shown under either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum JudgePolicy {
    /// A person looks: the charge goes to review.
    Advise,
    /// The judge's charge stands.
    Decide,
}

impl TryFrom<String> for JudgePolicy {
    type Error = &'static str;

    /// By its name in the settings.
    fn try_from(name: String) -> Result<Self, Self::Error> {
        match name.as_str() {
            "advise" => Ok(Self::Advise),
            "decide" => Ok(Self::Decide),
            _ => Err("must be \"advise\" or \"decide\""),
        }
    }
}

/// The judge's settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeConfigError {
    /// The address is none of HTTP.
    #[error(
        "scoring.judge.url must begin with http:// or https:// and name a host, as in https://api.example.com/v1: {0}"
    )]
    Url(String),
    /// The address holds a name or password.
    #[error("scoring.judge.url must hold no user and no password: put the key into scoring.judge.key")]
    UrlWithCredentials,
    /// The key cannot be sent.
    #[error(
        "scoring.judge.key holds characters that no HTTP header may hold: was it copied with a line break?"
    )]
    Key,
    /// A setting is missing or out of its range.
    #[error("scoring.judge.{name} {rule}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What holds for it.
        rule: &'static str,
    },
    /// The HTTP client cannot be built.
    #[error("http client of the judge cannot be built: {0}")]
    Client(String),
}

/// Settings that were checked.
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

/// What tokens cost, in US dollars a million.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    pub prompt: f64,
    pub completion: f64,
}

impl Prices {
    /// US dollars for so many tokens.
    pub(crate) fn of(self, prompt_tokens: u64, completion_tokens: u64) -> f64 {
        (self.prompt * prompt_tokens as f64 + self.completion * completion_tokens as f64) / 1e6
    }
}

impl JudgeConfig {
    /// Whether a judge is to be asked.
    pub fn is_on(&self) -> bool {
        !self.url.trim().is_empty()
    }

    /// Checks everything that can be checked without asking the judge.
    pub(crate) fn check(&self) -> Result<Settings, JudgeConfigError> {
        let fault = |name, rule| Err(JudgeConfigError::Setting { name, rule });
        let timeout = Duration::from_millis(self.timeout_milliseconds);
        let Some(attempts) = NonZeroU32::new(self.attempts) else {
            return fault("attempts", "must be at least 1");
        };
        if self.model.trim().is_empty() {
            return fault("model", "must name the model to ask");
        }
        if timeout.is_zero() || timeout > LONGEST_TIMEOUT {
            return fault("timeout_milliseconds", "must be from 1 to 600000");
        }
        if self.concurrency == 0 || self.concurrency > 1024 {
            return fault("concurrency", "must be from 1 to 1024");
        }
        if self.max_answer_tokens < 64 {
            return fault("max_answer_tokens", "must be at least 64: an answer has about 500");
        }
        if self.max_answer_bytes < 1024 || self.max_transcript_bytes < 1024 {
            return fault("max_answer_bytes and max_transcript_bytes", "must be at least 1024");
        }
        let amounts =
            [self.prompt_usd_per_million_tokens, self.completion_usd_per_million_tokens, self.daily_usd_cap];
        if amounts.iter().any(|amount| !amount.is_finite() || *amount < 0.0) {
            return fault("prices and daily_usd_cap", "must be amounts of 0 or more");
        }
        let prices = Prices {
            prompt: self.prompt_usd_per_million_tokens,
            completion: self.completion_usd_per_million_tokens,
        };
        if self.daily_usd_cap > 0.0 && prices.prompt + prices.completion == 0.0 {
            return fault(
                "daily_usd_cap",
                "needs the prices of tokens: without them nothing seems to cost anything",
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

/// `{url}/chat/completions`; a query stays at its end, and an address that is complete already stays as it is.
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
    fn the_path_of_completions_is_added_to_the_address_once() {
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
        for (given, asked) in cases {
            assert_eq!(completions_url(given).unwrap().as_str(), asked, "{given}");
        }
    }

    #[test]
    fn a_policy_that_there_is_not_is_refused_with_those_that_there_are() {
        let read = |word: &str| serde_json::from_value::<JudgePolicy>(word.into());
        assert_eq!(read("advise").unwrap(), JudgePolicy::Advise);
        assert_eq!(read("decide").unwrap(), JudgePolicy::Decide);
        let fault = read("veto").unwrap_err().to_string();
        assert!(fault.contains(r#""advise" or "decide""#), "{fault}");
    }

    type Change = fn(&mut JudgeConfig);

    #[test]
    fn a_setting_that_cannot_work_is_named() {
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
        for (named, spoil) in cases {
            let mut config = config();
            spoil(&mut config);
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(named), "{named}: {error}");
            assert!(!error.contains("me:secret"), "{error}");
        }
        config().check().unwrap();
    }
}
