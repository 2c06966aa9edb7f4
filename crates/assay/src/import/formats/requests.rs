//! Assay's own format: one request body per line, sent unchanged unless it has too many messages.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Converted, Request, drop_middle};

#[derive(Deserialize)]
struct WithMessages<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

/// Does not validate: the service's error messages are better.
pub fn convert(line: Vec<u8>) -> Converted {
    let (body, left_out) = shorten(&line).unwrap_or_else(|| (line.clone(), 0));
    Converted { original: line, request: Ok(Request { body, left_out, notices: Vec::new() }) }
}

/// The shortened body and the number of dropped messages; `None` when nothing has to be dropped.
fn shorten(line: &[u8]) -> Option<(Vec<u8>, usize)> {
    let WithMessages { messages } = serde_json::from_slice(line).ok()?;
    let (messages, left_out) = drop_middle(messages);
    if left_out == 0 {
        return None;
    }
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_slice(line).ok()?;
    let messages = serde_json::value::to_raw_value(&messages).ok()?;
    members.insert("messages", &messages);
    Some((serde_json::to_vec(&members).ok()?, left_out))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body(count: usize) -> Value {
        let messages: Vec<_> = (0..count).map(|number| json!({"external_id": number.to_string()})).collect();
        json!({"ticket_id": "T", "messages": messages, "other": [1]})
    }

    #[test]
    fn request_body_is_sent_unchanged() {
        let fitting = format!(" {} ", body(50)).into_bytes();
        for line in [fitting, b"{\"ticket_id\":".to_vec(), b"\xFF".to_vec(), b"{\"messages\": 7}".to_vec()] {
            let request = convert(line.clone()).request.unwrap();
            assert_eq!((request.body, request.left_out), (line, 0));
        }
    }

    #[test]
    fn shortened_body_keeps_its_other_members() {
        let converted = convert(body(63).to_string().into_bytes());
        let request = converted.request.unwrap();
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let ids: Vec<&str> =
            sent["messages"].as_array().unwrap().iter().map(|m| m["external_id"].as_str().unwrap()).collect();
        assert_eq!((ids.len(), ids[9], ids[10], ids[49], request.left_out), (50, "9", "23", "62", 13));
        assert_eq!((&sent["ticket_id"], &sent["other"]), (&json!("T"), &json!([1])));
    }
}
