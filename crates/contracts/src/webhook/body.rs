//! Bodies of requests about webhooks.

use std::collections::BTreeSet;

use utoipa::ToSchema;

use super::WebhookEvent;
use crate::evaluation::Score;
use crate::fault::BodyError;
use crate::json::{Faults, ObjectReader, Tree, parse_tree};

/// Longest address, in bytes.
pub const MAX_URL_BYTES: usize = 2_048;

/// The threshold of `axis.low_score` when none is named.
pub const DEFAULT_LOW_SCORE: f64 = 3.0;

/// A checked body of `POST /v1/webhooks`.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWebhook {
    /// Where messages are posted; whether that may be is for the webhooks role to say.
    pub url: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it is told; at least one.
    pub events: BTreeSet<WebhookEvent>,
    /// `axis.low_score` is told of scores below this one.
    pub axis_low_score_below: Score,
}

impl NewWebhook {
    /// Reads and checks a request body.
    ///
    /// # Errors
    /// [`BodyError`] with every fault found.
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let tree = parse_tree(body)?;
        let mut faults = Faults::default();
        let webhook = ObjectReader::new(tree, "", &mut faults).and_then(|mut object| {
            let url = object.required_text("url").and_then(|url| short_url(&mut object, url));
            let description = object.optional_name("description");
            let events = object.required("events").and_then(|value| events(&mut object, value));
            let threshold = match object.take("axis_low_score_below") {
                Some(value) => score(&mut object, &value),
                None => Some(Score::nearest(DEFAULT_LOW_SCORE)),
            };
            Some(Self { url: url?, description, events: events?, axis_low_score_below: threshold? })
        });
        faults.finish(webhook)
    }
}

/// A checked body of `PATCH /v1/webhooks/{id}`: what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebhookChange {
    /// Where messages are posted.
    pub url: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it is told.
    pub events: Option<BTreeSet<WebhookEvent>>,
    /// The threshold of `axis.low_score`.
    pub axis_low_score_below: Option<Score>,
    /// Whether it is told anything.
    pub enabled: Option<bool>,
}

impl WebhookChange {
    /// Reads and checks a request body.
    ///
    /// # Errors
    /// [`BodyError`] with every fault found.
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let tree = parse_tree(body)?;
        let mut faults = Faults::default();
        let change = ObjectReader::new(tree, "", &mut faults).map(|mut object| {
            let url = object.take("url").and_then(|value| match value {
                Tree::String(url) => short_url(&mut object, url.into_owned()),
                other => {
                    object.fault("url", format!("must be a string, not {}", other.kind()));
                    None
                }
            });
            let description = object.optional_name("description");
            let events = object.take("events").and_then(|value| events(&mut object, value));
            let threshold = object.take("axis_low_score_below");
            let axis_low_score_below = threshold.and_then(|value| score(&mut object, &value));
            let enabled = object.take("enabled").and_then(|value| match value {
                Tree::Bool(enabled) => Some(enabled),
                other => {
                    object.fault("enabled", format!("must be true or false, not {}", other.kind()));
                    None
                }
            });
            Self { url, description, events, axis_low_score_below, enabled }
        });
        faults.finish(change)
    }
}

fn short_url(object: &mut ObjectReader<'_, '_>, url: String) -> Option<String> {
    if url.len() > MAX_URL_BYTES {
        object.fault("url", format!("must not be longer than {MAX_URL_BYTES} bytes"));
        return None;
    }
    Some(url)
}

fn events(object: &mut ObjectReader<'_, '_>, value: Tree<'_>) -> Option<BTreeSet<WebhookEvent>> {
    let names = WebhookEvent::SUBSCRIBABLE.map(WebhookEvent::as_str).join(", ");
    let Tree::Array(items) = value else {
        object.fault("events", format!("must be an array of: {names}"));
        return None;
    };
    if items.is_empty() {
        object.fault("events", format!("must name at least one of: {names}"));
        return None;
    }
    let count = items.len();
    let mut found = BTreeSet::new();
    let mut understood = 0;
    for (index, item) in items.into_iter().enumerate() {
        let event = match &item {
            Tree::String(name) => WebhookEvent::subscribable(name),
            _ => None,
        };
        match event {
            Some(event) => {
                understood += 1;
                found.insert(event);
            }
            None => object.fault(&format!("events/{index}"), format!("must be one of: {names}")),
        }
    }
    (understood == count).then_some(found)
}

fn score(object: &mut ObjectReader<'_, '_>, value: &Tree<'_>) -> Option<Score> {
    let number = match value {
        Tree::Number(number) => number.as_f64().filter(|number| (1.0..=5.0).contains(number)),
        _ => None,
    };
    if number.is_none() {
        object.fault("axis_low_score_below", "must be a number from 1.0 to 5.0");
    }
    number.map(Score::nearest)
}

/// An endpoint to be made.
// The wire form of `NewWebhook`.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct NewWebhookRequest {
    /// Where messages are posted: `https://`, without user name and password. Addresses of private networks are refused.
    #[schema(min_length = 1, max_length = 2048, format = "uri", example = "https://hooks.example.com/assay")]
    url: String,
    /// What it is for.
    #[schema(min_length = 1, max_length = 1024, nullable = false)]
    description: Option<String>,
    /// What it is told. `webhook.test` cannot be subscribed to.
    #[schema(min_items = 1, example = json!(["evaluation.completed", "resolution.disputed"]))]
    events: Vec<WebhookEvent>,
    /// `axis.low_score` is told of scores below this one.
    #[schema(minimum = 1.0, maximum = 5.0, default = 3.0, nullable = false)]
    axis_low_score_below: Option<f64>,
}

/// What is to be changed of an endpoint; what is left out stays as it is.
// The wire form of `WebhookChange`.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct WebhookChangeRequest {
    /// Where messages are posted.
    #[schema(min_length = 1, max_length = 2048, format = "uri", nullable = false)]
    url: Option<String>,
    /// What it is for.
    #[schema(min_length = 1, max_length = 1024, nullable = false)]
    description: Option<String>,
    /// What it is told.
    #[schema(min_items = 1, nullable = false, example = json!(["evaluation.completed"]))]
    events: Option<Vec<WebhookEvent>>,
    /// The threshold of `axis.low_score`.
    #[schema(minimum = 1.0, maximum = 5.0, nullable = false)]
    axis_low_score_below: Option<f64>,
    /// `false` pauses it: what waits is kept, nothing new is added. `true` lets it go on, and forgets why the service
    /// disabled it.
    #[schema(nullable = false)]
    enabled: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_body_is_enough() {
        let body = br#"{"url": "https://a.example", "events": ["axis.low_score", "axis.low_score"]}"#;
        let webhook = NewWebhook::parse(body).unwrap();
        assert_eq!(webhook.events, BTreeSet::from([WebhookEvent::AxisLowScore]));
        assert_eq!(webhook.axis_low_score_below, Score::nearest(3.0));
    }

    #[test]
    fn every_fault_of_a_body_is_named() {
        let body =
            br#"{"url": "", "events": ["axis.low_score", "webhook.test", 7], "axis_low_score_below": 0.9}"#;
        let Err(BodyError::Invalid(faults)) = NewWebhook::parse(body) else { unreachable!() };
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, ["/url", "/events/1", "/events/2", "/axis_low_score_below"]);
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        assert_eq!(WebhookChange::parse(b"{}").unwrap(), WebhookChange::default());
        let change = WebhookChange::parse(br#"{"enabled": false}"#).unwrap();
        assert_eq!(change, WebhookChange { enabled: Some(false), ..WebhookChange::default() });
        for body in [r#"{"enabled": "yes"}"#, r#"{"events": []}"#, r#"{"url": 1}"#] {
            assert!(WebhookChange::parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
