//! Requests and responses of `/chat/completions`.

use serde::Serialize;
use serde_json::{Value, json};

use crate::endpoint::EndpointError;

/// One message of the exchange with the model.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ChatMessage {
    pub role: &'static str,
    pub content: String,
}

/// The parameters that an endpoint supports. A refused parameter is omitted from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    response_format: bool,
    temperature: bool,
    /// `max_tokens`, otherwise its successor `max_completion_tokens`.
    max_tokens: bool,
}

/// The text of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    pub text: String,
    /// Whether the token limit cut the text off.
    pub is_cut_off: bool,
}

/// Token counts of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

/// The response is not a usable completion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoCompletion {
    #[error("the endpoint's response is not JSON")]
    NotJson,
    #[error("the endpoint's response is not a chat completion: it has no choices[0].message.content")]
    NoContent,
    #[error("the model refuses to answer")]
    Refusal,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { response_format: true, temperature: true, max_tokens: true }
    }
}

impl Dialect {
    pub(crate) fn body(self, model: &str, messages: &[ChatMessage], max_answer_tokens: u32) -> Vec<u8> {
        let mut body = json!({"model": model, "messages": messages});
        if self.temperature {
            body["temperature"] = json!(0);
        }
        let limit = if self.max_tokens { "max_tokens" } else { "max_completion_tokens" };
        body[limit] = json!(max_answer_tokens);
        if self.response_format {
            body["response_format"] = json!({"type": "json_object"});
        }
        body.to_string().into_bytes()
    }

    /// The dialect without the parameter that the error names, if it names one.
    pub(crate) fn without_refused_parameter(self, error: &EndpointError) -> Option<Self> {
        let (400 | 422, message) = error.status_and_message()? else { return None };
        let message = message.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if self.response_format && has(&["response_format", "json_object", "json mode", "json_mode"]) {
            Some(Self { response_format: false, ..self })
        } else if self.max_tokens && has(&["max_completion_tokens"]) && !has(&["too large", "too long"]) {
            Some(Self { max_tokens: false, ..self })
        } else if self.temperature && has(&["temperature"]) {
            Some(Self { temperature: false, ..self })
        } else {
            None
        }
    }

    /// The parameters supported by both.
    pub(crate) const fn intersection(self, other: Self) -> Self {
        Self {
            response_format: self.response_format && other.response_format,
            temperature: self.temperature && other.temperature,
            max_tokens: self.max_tokens && other.max_tokens,
        }
    }
}

impl Completion {
    /// Parses a response. Token counts are returned with an error too: they are billed.
    pub(crate) fn parse(body: &[u8]) -> (Option<Usage>, Result<Self, NoCompletion>) {
        let Ok(response) = serde_json::from_slice::<Value>(body) else {
            return (None, Err(NoCompletion::NotJson));
        };
        let tokens = |name: &str| response.pointer(&format!("/usage/{name}"))?.as_u64();
        let usage = tokens("prompt_tokens").zip(tokens("completion_tokens"));
        let usage =
            usage.map(|(prompt_tokens, completion_tokens)| Usage { prompt_tokens, completion_tokens });
        let text = text_of(response.pointer("/choices/0/message/content"));
        let completion = match text {
            Some(text) => {
                let is_cut_off =
                    response.pointer("/choices/0/finish_reason").is_some_and(|reason| reason == "length");
                Ok(Self { text, is_cut_off })
            }
            None if response.pointer("/choices/0/message/refusal").is_some_and(Value::is_string) => {
                Err(NoCompletion::Refusal)
            }
            None => Err(NoCompletion::NoContent),
        };
        (usage, completion)
    }
}

/// A string, or an array of parts with `text`.
fn text_of(content: Option<&Value>) -> Option<String> {
    match content? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, message: &str) -> EndpointError {
        EndpointError::Status { status, code: None, message: message.to_owned(), retry_after: None }
    }

    #[test]
    fn refused_parameter_is_omitted() {
        let full = Dialect::default();
        let cases = [
            (400, "Unknown parameter: 'response_format'.", "response_format"),
            (422, "JSON mode is not supported by this model", "response_format"),
            (400, "Unsupported value: 'temperature' does not support 0", "temperature"),
            (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ];
        for (status, message, parameter) in cases {
            let error = refused(status, message);
            let reduced = full.without_refused_parameter(&error).unwrap();
            let body: Value = serde_json::from_slice(&reduced.body("m", &[], 100)).unwrap();
            assert!(body.get(parameter).is_none(), "{message}: {body}");
            assert_eq!(reduced.without_refused_parameter(&error), None, "{message}");
        }
        let others = [(400, "context length exceeded"), (401, "response_format"), (500, "temperature")];
        for (status, message) in others {
            assert_eq!(full.without_refused_parameter(&refused(status, message)), None, "{status} {message}");
        }
        let too_large = "'max_tokens' or 'max_completion_tokens' is too large: 1000";
        assert_eq!(full.without_refused_parameter(&refused(400, too_large)), None);
    }

    #[test]
    fn completion_is_parsed_from_text_or_parts() {
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 3});
        let whole =
            json!({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "usage": usage});
        let (counted, completion) = Completion::parse(whole.to_string().as_bytes());
        assert_eq!(counted, Some(Usage { prompt_tokens: 7, completion_tokens: 3 }));
        assert_eq!(completion, Ok(Completion { text: "yes".to_owned(), is_cut_off: false }));
        let parts = json!({"choices": [{"message": {"content": [{"text": "y"}, {"text": "es"}]}, "finish_reason": "length"}]});
        let (counted, completion) = Completion::parse(parts.to_string().as_bytes());
        assert_eq!(counted, None);
        assert!(completion.is_ok_and(|completion| completion.text == "yes" && completion.is_cut_off));
    }

    #[test]
    fn invalid_completions_are_distinguished() {
        let cases = [
            ("<html>", NoCompletion::NotJson),
            ("[]", NoCompletion::NoContent),
            (r#"{"choices":[]}"#, NoCompletion::NoContent),
            (r#"{"choices":[{"message":{"content":null,"refusal":"I cannot"}}]}"#, NoCompletion::Refusal),
        ];
        for (body, expected) in cases {
            assert_eq!(Completion::parse(body.as_bytes()).1, Err(expected), "{body}");
        }
    }
}
