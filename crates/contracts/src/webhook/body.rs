//! Bodies of requests about webhooks.

use std::collections::BTreeSet;

use utoipa::ToSchema;

use super::WebhookEvent;
use crate::evaluation::Score;
use crate::json::{ObjectReader, Tree, ValidationErrors, parse_tree};
use crate::validation::BodyError;

/// Longest address, in bytes.
pub const MAX_URL_BYTES: usize = 2_048;

/// The threshold of `axis.low_score` when none is named.
pub const DEFAULT_LOW_SCORE: f64 = 3.0;

/// A checked body of `POST /v1/webhooks`.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWebhook {
    /// Where messages are posted; the webhooks role checks whether the address is allowed.
    pub url: String,
    /// Description given by the caller.
    pub description: Option<String>,
    /// Subscribed event types; at least one.
    pub events: BTreeSet<WebhookEvent>,
    /// `axis.low_score` is sent for scores below this threshold.
    pub axis_low_score_below: Score,
}

/// Fields of the bodies of `POST` and `PATCH`. `POST` ignores `enabled`, as it ignores unknown fields.
const FIELDS: [&str; 5] = ["url", "description", "events", "axis_low_score_below", "enabled"];

impl NewWebhook {
    /// Reads and checks a request body.
    ///
    /// # Errors
    /// [`BodyError`] with all validation errors.
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let tree = parse_tree(body, &FIELDS)?;
        let mut errors = ValidationErrors::default();
        let webhook = ObjectReader::new(tree, "", &mut errors).and_then(|mut object| {
            let url = object.required_text("url").and_then(|url| check_url_length(&mut object, url));
            let description = object.optional_short_text("description");
            let events = object.required("events").and_then(|value| read_events(&mut object, value));
            let threshold = match object.take("axis_low_score_below") {
                Some(value) => read_threshold(&mut object, &value),
                None => Some(Score::nearest(DEFAULT_LOW_SCORE)),
            };
            Some(Self { url: url?, description, events: events?, axis_low_score_below: threshold? })
        });
        errors.finish(webhook)
    }
}

/// A checked body of `PATCH /v1/webhooks/{id}`: absent fields stay unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebhookChange {
    /// Where messages are posted.
    pub url: Option<String>,
    /// Description given by the caller; an empty one removes it.
    pub description: Option<String>,
    /// Subscribed event types.
    pub events: Option<BTreeSet<WebhookEvent>>,
    /// The threshold of `axis.low_score`.
    pub axis_low_score_below: Option<Score>,
    /// Whether messages are sent to it.
    pub enabled: Option<bool>,
}

impl WebhookChange {
    /// Reads and checks a request body.
    ///
    /// # Errors
    /// [`BodyError`] with all validation errors.
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let tree = parse_tree(body, &FIELDS)?;
        let mut errors = ValidationErrors::default();
        let change = ObjectReader::new(tree, "", &mut errors).map(|mut object| {
            let url = object.take("url").and_then(|value| object.non_empty_text_of("url", value));
            let url = url.and_then(|url| check_url_length(&mut object, url));
            let description = object.take("description").and_then(|value| match value {
                Tree::String(text) if text.is_empty() => Some(String::new()),
                value => object.short_text_of("description", value),
            });
            let events = object.take("events").and_then(|value| read_events(&mut object, value));
            let threshold = object.take("axis_low_score_below");
            let axis_low_score_below = threshold.and_then(|value| read_threshold(&mut object, &value));
            let enabled = object.take("enabled").and_then(|value| match value {
                Tree::Bool(enabled) => Some(enabled),
                other => {
                    object.add_error("enabled", format!("must be true or false, not {}", other.kind()));
                    None
                }
            });
            Self { url, description, events, axis_low_score_below, enabled }
        });
        errors.finish(change)
    }
}

fn check_url_length(object: &mut ObjectReader<'_, '_>, url: String) -> Option<String> {
    if url.len() > MAX_URL_BYTES {
        object.add_error("url", format!("must not be longer than {MAX_URL_BYTES} bytes"));
        return None;
    }
    Some(url)
}

fn read_events(object: &mut ObjectReader<'_, '_>, value: Tree<'_>) -> Option<BTreeSet<WebhookEvent>> {
    let names = WebhookEvent::SUBSCRIBABLE.map(WebhookEvent::as_str).join(", ");
    let Tree::Array(items) = value else {
        object.add_error("events", format!("must be an array of: {names}"));
        return None;
    };
    if items.is_empty() {
        object.add_error("events", format!("must name at least one of: {names}"));
        return None;
    }
    let mut events = BTreeSet::new();
    let mut are_valid = true;
    for (index, item) in items.into_iter().enumerate() {
        let event = match &item {
            Tree::String(name) => {
                WebhookEvent::from_name(name).filter(|event| WebhookEvent::SUBSCRIBABLE.contains(event))
            }
            _ => None,
        };
        match event {
            Some(event) => {
                events.insert(event);
            }
            None => {
                are_valid = false;
                object.add_error(&format!("events/{index}"), format!("must be one of: {names}"));
            }
        }
    }
    are_valid.then_some(events)
}

fn read_threshold(object: &mut ObjectReader<'_, '_>, value: &Tree<'_>) -> Option<Score> {
    let number = match value {
        Tree::Number(number) => number.as_f64().filter(|number| (1.0..=5.0).contains(number)),
        _ => None,
    };
    if number.is_none() {
        object.add_error("axis_low_score_below", "must be a number from 1.0 to 5.0");
    }
    number.map(Score::nearest)
}

/// Request to create an endpoint.
// The OpenAPI schema of the body that `NewWebhook::parse` reads.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct NewWebhookRequest {
    /// Where messages are posted: `https://`, without user name and password. Addresses of private networks are refused.
    #[schema(min_length = 1, max_length = 2048, format = "uri", example = "https://hooks.example.com/assay")]
    url: String,
    /// Description given by the caller.
    #[schema(min_length = 1, max_length = 1024)]
    description: Option<String>,
    /// Event types to subscribe to; `webhook.test` is not one of them.
    #[schema(min_items = 1, example = json!(["evaluation.completed", "resolution.disputed"]))]
    events: Vec<WebhookEvent>,
    /// `axis.low_score` is sent for scores below this threshold.
    #[schema(minimum = 1.0, maximum = 5.0, default = 3.0)]
    axis_low_score_below: Option<f64>,
}

/// Request to change an endpoint; absent fields stay unchanged.
// The OpenAPI schema of the body that `WebhookChange::parse` reads.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct WebhookChangeRequest {
    /// Where messages are posted.
    #[schema(min_length = 1, max_length = 2048, format = "uri")]
    url: Option<String>,
    /// Description given by the caller; an empty one removes it.
    #[schema(max_length = 1024)]
    description: Option<String>,
    /// Subscribed event types.
    #[schema(min_items = 1, example = json!(["evaluation.completed"]))]
    events: Option<Vec<WebhookEvent>>,
    /// The threshold of `axis.low_score`.
    #[schema(minimum = 1.0, maximum = 5.0)]
    axis_low_score_below: Option<f64>,
    /// `false` pauses it: pending deliveries are kept, new events are not enqueued. `true` resumes it and clears
    /// `disabled_reason`.
    enabled: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimal_body_gets_defaults() {
        let body = br#"{"url": "https://a.example", "events": ["axis.low_score", "axis.low_score"]}"#;
        let webhook = NewWebhook::parse(body).unwrap();
        assert_eq!(webhook.events, BTreeSet::from([WebhookEvent::AxisLowScore]));
        assert_eq!(webhook.axis_low_score_below, Score::nearest(3.0));
    }

    #[test]
    fn every_invalid_field_is_reported() {
        let body =
            br#"{"url": "", "events": ["axis.low_score", "webhook.test", 7], "axis_low_score_below": 0.9}"#;
        let Err(BodyError::Invalid(errors)) = NewWebhook::parse(body) else { unreachable!() };
        let pointers: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/url", "/events/1", "/events/2", "/axis_low_score_below"]);
    }

    #[test]
    fn change_keeps_absent_fields() {
        assert_eq!(WebhookChange::parse(b"{}").unwrap(), WebhookChange::default());
        let change = WebhookChange::parse(br#"{"enabled": false}"#).unwrap();
        assert_eq!(change, WebhookChange { enabled: Some(false), ..WebhookChange::default() });
        let change = WebhookChange::parse(br#"{"description": ""}"#).unwrap();
        assert_eq!(change.description.as_deref(), Some(""), "an empty description removes it");
    }

    #[test]
    fn invalid_change_is_refused_by_the_name_of_its_field() {
        for (field, value) in [
            ("description", "1"),
            ("enabled", r#""yes""#),
            ("events", "[]"),
            ("url", "1"),
            ("url", r#""""#),
            ("url", r#""https://a.example/\u0000""#),
        ] {
            let body = format!(r#"{{"{field}": {value}}}"#);
            let Err(BodyError::Invalid(errors)) = WebhookChange::parse(body.as_bytes()) else {
                unreachable!("{body}")
            };
            let pointers: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
            assert_eq!(pointers, [format!("/{field}")], "{body}");
        }
    }

    #[test]
    fn null_counts_as_absent() {
        let fields = r#""description": null, "axis_low_score_below": null"#;
        let required = r#""url": "https://a.example", "events": ["axis.low_score"]"#;
        let with_nulls = NewWebhook::parse(format!("{{{required}, {fields}}}").as_bytes()).unwrap();
        assert_eq!(with_nulls, NewWebhook::parse(format!("{{{required}}}").as_bytes()).unwrap());
        let change = format!(r#"{{{fields}, "url": null, "events": null, "enabled": null}}"#);
        assert_eq!(WebhookChange::parse(change.as_bytes()).unwrap(), WebhookChange::default());
        let missing = NewWebhook::parse(br#"{"url": null, "events": ["axis.low_score"]}"#);
        assert!(matches!(missing, Err(BodyError::Invalid(errors)) if errors[0].pointer == "/url"));
    }
}
