//! The scorer of an evaluation, and the cost of its judge.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::named_enum::named_enum;

/// The scorer of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Scorer {
    /// The kind of scorer.
    #[serde(rename = "type")]
    pub kind: ScorerKind,
    /// Version of the built-in scorer, the basis of every evaluation.
    pub version: String,
    /// SHA-256 of the model and of the user's weights where there are any, lower-case hexadecimal.
    pub weights_sha256: String,
    /// Name of the judge's model, when a judge was used or could not be used (`fallback`).
    pub judge_model: Option<String>,
    /// Cost and latency of the judge; absent when no judge was to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub judge: Option<JudgeUse>,
}

named_enum!(
    /// The kind of scorer.
    ScorerKind {
        /// The built-in engine.
        Builtin = "builtin",
        /// An LLM judge; the facts of the transcript are those of the built-in engine.
        Judge = "judge",
        /// The built-in engine, because the configured judge could not be used.
        Fallback = "fallback",
    }
);

/// Cost and latency of the judge, whether or not its answer was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JudgeUse {
    /// Time from the first request to the last response, in milliseconds, without the wait for a free slot.
    pub latency_ms: u64,
    /// Prompt tokens reported by the endpoint, over all requests; absent when it reported none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prompt_tokens: Option<u64>,
    /// Completion tokens reported by the endpoint, over all responses; absent when it reported none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completion_tokens: Option<u64>,
    /// At the configured prices, in US dollars, rounded to millionths; an upper estimate where the endpoint reported no
    /// tokens or a response was lost.
    pub cost_usd: f64,
    /// Number of requests sent.
    pub attempts: u32,
    /// Why the judge's answer was not used; absent when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fallback_reason: Option<FallbackReason>,
}

named_enum!(
    /// Why an evaluation fell back to the built-in scorer.
    FallbackReason {
        /// The endpoint could not be reached or failed, is in a cooldown after failures, or the service was stopping.
        Unavailable = "unavailable",
        /// No usable answer in time.
        Timeout = "timeout",
        /// The endpoint's rate limit was reached (429), and no later attempt succeeded.
        RateLimited = "rate_limited",
        /// The endpoint refused the request: the key, the model or a parameter is wrong.
        Refused = "refused",
        /// The judge's answer does not match the requested format, and neither does the repaired answer.
        UnusableAnswer = "unusable_answer",
        /// The judge's answer cites quotes that are not in the conversation, and so does the repaired answer.
        UnsupportedQuotes = "unsupported_quotes",
        /// The judge's answer contradicted the rules. Only in older evaluations: the judge is no longer checked against the
        /// rules.
        ContradictsRules = "contradicts_rules",
        /// The day's spending cap is reached.
        SpendingCap = "spending_cap",
        /// The conversation has more bytes than may be sent to the judge.
        TranscriptTooLong = "transcript_too_long",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scorer_without_judge_fields_round_trips() {
        let stored = r#"{"type":"builtin","version":"1.0.0","weights_sha256":"ab","judge_model":null}"#;
        let scorer: Scorer = serde_json::from_str(stored).unwrap();
        assert_eq!((scorer.kind, &scorer.judge), (ScorerKind::Builtin, &None));
        assert_eq!(serde_json::to_string(&scorer).unwrap(), stored);
    }

    #[test]
    fn fallback_round_trips_with_its_reason() {
        let scorer = Scorer {
            kind: ScorerKind::Fallback,
            version: "1.0.0".to_owned(),
            weights_sha256: "ab".to_owned(),
            judge_model: Some("judge-1".to_owned()),
            judge: Some(JudgeUse {
                latency_ms: 0,
                prompt_tokens: None,
                completion_tokens: None,
                cost_usd: 0.0,
                attempts: 0,
                fallback_reason: Some(FallbackReason::SpendingCap),
            }),
        };
        let written = serde_json::to_value(&scorer).unwrap();
        assert_eq!(written["type"], "fallback");
        let judge = r#"{"latency_ms":0,"cost_usd":0.0,"attempts":0,"fallback_reason":"spending_cap"}"#;
        assert_eq!(written["judge"], serde_json::from_str::<serde_json::Value>(judge).unwrap());
        assert_eq!(serde_json::from_value::<Scorer>(written).unwrap(), scorer);
    }

    #[test]
    fn wire_names_equal_export_names() {
        for kind in ScorerKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        for reason in FallbackReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}
