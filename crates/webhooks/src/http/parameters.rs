//! Parameters of queries.

use std::collections::BTreeMap;

use assay_contracts::fault::Fault;
use assay_contracts::page::{DEFAULT_LIMIT, MAX_LIMIT};
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::webhook::DeliveryStatus;
use assay_platform::web::WebError;

/// `cursor`, at least one character, and `limit`, 1 to [`MAX_LIMIT`].
pub(super) fn page(query: &mut BTreeMap<String, String>) -> Result<(Option<String>, u32), WebError> {
    let limit = match query.get("limit") {
        None => DEFAULT_LIMIT,
        // Digits alone: `parse` would also take a sign.
        Some(text) => Some(text)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or_else(|| invalid("limit", "must be an integer from 1 to 100"))?,
    };
    let cursor = query.remove("cursor");
    if cursor.as_deref() == Some("") {
        return Err(invalid("cursor", "must not be empty: leave it out for the first page"));
    }
    Ok((cursor, limit))
}

/// `status`, one of [`DeliveryStatus::ALL`].
pub(super) fn status(query: &BTreeMap<String, String>) -> Result<Option<DeliveryStatus>, WebError> {
    let status = query.get("status").map(|name| {
        let names = DeliveryStatus::ALL.map(DeliveryStatus::as_str).join(", ");
        DeliveryStatus::from_name(name).ok_or_else(|| invalid("status", &format!("must be one of: {names}")))
    });
    status.transpose()
}

fn invalid(name: &str, detail: &str) -> WebError {
    let fault = Fault { pointer: name.to_owned(), detail: detail.to_owned() };
    Problem::new(ProblemCode::InvalidRequest, format!("query parameter `{name}` {detail}"))
        .with_errors(vec![fault])
        .into()
}
