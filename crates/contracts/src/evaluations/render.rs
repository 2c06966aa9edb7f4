//! The canonical query of filters: parameters in the order of documentation, values sorted.

use std::fmt::{Display, Write};

use super::filters::EvaluationFilters;
use crate::evaluation::Named;

/// Parameters in order.
pub type Pairs = Vec<(&'static str, String)>;

impl EvaluationFilters {
    /// The parameters that parse to these filters.
    pub fn to_pairs(&self) -> Pairs {
        let mut pairs = Pairs::new();
        push_texts(&mut pairs, "from", self.from.map(|moment| moment.as_millis()));
        push_texts(&mut pairs, "to", self.to.map(|moment| moment.as_millis()));
        push_texts(&mut pairs, "external_id", &self.external_id);
        push_texts(&mut pairs, "subject", &self.subject);
        push_texts(&mut pairs, "search", &self.search);
        push_texts(&mut pairs, "source", &self.source);
        push_texts(&mut pairs, "ai_tool", &self.ai_tool);
        push_texts(&mut pairs, "agent", &self.agent);
        push_names(&mut pairs, "involvement", &self.involvement);
        push_names(&mut pairs, "resolution", &self.resolution);
        push_names(&mut pairs, "resolved_by", &self.resolved_by);
        push_names(&mut pairs, "basis", &self.basis);
        push_names(&mut pairs, "charge", &self.charge);
        push_names(&mut pairs, "charge_reason", &self.charge_reason);
        push_names(&mut pairs, "handoff", &self.handoff);
        push_names(&mut pairs, "band", &self.band);
        push_names(&mut pairs, "axis_band", &self.axis_band);
        push_texts(&mut pairs, "axis_min", self.axis_min);
        push_texts(&mut pairs, "axis_max", self.axis_max);
        push_names(&mut pairs, "resolution_accuracy_band", &self.resolution_accuracy_band);
        push_texts(&mut pairs, "resolution_accuracy_min", self.resolution_accuracy_min);
        push_texts(&mut pairs, "resolution_accuracy_max", self.resolution_accuracy_max);
        push_names(&mut pairs, "interaction_effort_band", &self.interaction_effort_band);
        push_texts(&mut pairs, "interaction_effort_min", self.interaction_effort_min);
        push_texts(&mut pairs, "interaction_effort_max", self.interaction_effort_max);
        push_names(&mut pairs, "handoff_smoothness_band", &self.handoff_smoothness_band);
        push_texts(&mut pairs, "handoff_smoothness_min", self.handoff_smoothness_min);
        push_texts(&mut pairs, "handoff_smoothness_max", self.handoff_smoothness_max);
        push_texts(&mut pairs, "confidence_min", self.confidence_min);
        push_texts(&mut pairs, "confidence_max", self.confidence_max);
        push_texts(&mut pairs, "language", &self.language);
        push_names(&mut pairs, "flag", &self.flag);
        push_names(&mut pairs, "scorer", &self.scorer);
        push_names(&mut pairs, "status", &self.status);
        pairs
    }

    /// The canonical query, percent-encoded, without `?`; empty without filters.
    pub fn to_query(&self) -> String {
        encode_query(self.to_pairs())
    }
}

/// `application/x-www-form-urlencoded`, with `%20` for a space.
pub fn encode_query<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        if !query.is_empty() {
            query.push('&');
        }
        encode(&mut query, name.as_ref());
        query.push('=');
        encode(&mut query, value.as_ref());
    }
    query
}

fn encode(query: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            // Writing to a string is infallible.
            let _ = write!(query, "%{byte:02X}");
        }
    }
}

fn push_texts<T: Display>(pairs: &mut Pairs, name: &'static str, values: impl IntoIterator<Item = T>) {
    pairs.extend(values.into_iter().map(|value| (name, value.to_string())));
}

fn push_names<T: Named>(pairs: &mut Pairs, name: &'static str, values: &[T]) {
    pairs.extend(values.iter().map(|value| (name, value.name().to_owned())));
}
