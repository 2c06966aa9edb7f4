//! Query parameters of paginated lists.

use std::collections::BTreeMap;

use assay_contracts::page::{DEFAULT_LIMIT, MAX_LIMIT};
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::validation::FieldError;

use super::error::WebError;

/// Takes `cursor` (not empty) and reads `limit` (1 to [`MAX_LIMIT`]) from the pairs of [`super::query_pairs`].
///
/// # Errors
/// 400 that names the parameter.
pub fn page_parameters(query: &mut BTreeMap<String, String>) -> Result<(Option<String>, u32), WebError> {
    let limit = match query.get("limit") {
        None => DEFAULT_LIMIT,
        // Digits only: `parse` also accepts a sign.
        Some(text) => Some(text)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or_else(|| invalid_parameter("limit", "must be an integer from 1 to 100"))?,
    };
    let cursor = query.remove("cursor");
    if cursor.as_deref() == Some("") {
        return Err(invalid_parameter("cursor", "must not be empty: leave it out for the first page"));
    }
    Ok((cursor, limit))
}

/// 400 for an invalid query parameter.
pub fn invalid_parameter(name: &str, detail: &str) -> WebError {
    let error = FieldError { pointer: name.to_owned(), detail: detail.to_owned() };
    Problem::new(ProblemCode::InvalidRequest, format!("query parameter `{name}` {detail}"))
        .with_errors(vec![error])
        .into()
}
