//! The canonical query of filters: parameters in the order of documentation, values sorted.

use std::fmt::{Display, Write};

use crate::named_enum::Named;
use crate::time::Timestamp;

/// Names and values of query parameters, in order.
pub type Pairs = Vec<(&'static str, String)>;

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

pub(super) fn push_moment(pairs: &mut Pairs, name: &'static str, moment: &Option<Timestamp>) {
    push_texts(pairs, name, moment.map(Timestamp::as_millis));
}

pub(super) fn push_texts<T: Display>(
    pairs: &mut Pairs,
    name: &'static str,
    values: impl IntoIterator<Item = T>,
) {
    pairs.extend(values.into_iter().map(|value| (name, value.to_string())));
}

pub(super) fn push_names<T: Named>(pairs: &mut Pairs, name: &'static str, values: &[T]) {
    pairs.extend(values.iter().map(|value| (name, value.name().to_owned())));
}
