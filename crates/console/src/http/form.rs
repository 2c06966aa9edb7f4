//! Forms: read with limits, and refused if another site sent them.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use assay_contracts::problem::Problem;
use assay_contracts::validation::FieldError;
use assay_platform::web::{BodyBudget, BodyLimits, read_form};

use super::error::PageError;
use super::viewer::PublicAddress;
use crate::domain::{Pairs, first_value, is_same_origin, parse_pairs};

const LIMITS: BodyLimits = BodyLimits { max_bytes: 64 * 1024, deadline: Duration::from_secs(10) };

/// Enough for the form of exports, which has a field for each value of a filter; an error page may have to hold all of them.
const MAX_FIELDS: usize = 512;

/// The fields of a form, with their values, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fields(Pairs);

impl Fields {
    /// The first value of a field; empty when there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        first_value(&self.0, name).unwrap_or_default()
    }

    pub(crate) fn of(pairs: Pairs) -> Self {
        Self(pairs)
    }

    /// The fields of an encoded body.
    pub(crate) fn parse(body: &[u8]) -> Self {
        Self(parse_pairs(body))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|given| given == value)
    }

    /// The fields without the form's token.
    pub(crate) fn into_pairs(self) -> Pairs {
        self.0.into_iter().filter(|(name, _)| name != "csrf").collect()
    }
}

/// The fields of a form of this host; the caller checks the token.
///
/// # Errors
/// [`PageError::CsrfRejected`] when another site sent it, [`PageError::Invalid`] for more fields than any form has.
pub(crate) async fn read_same_origin_form(
    request: &HttpRequest,
    payload: Payload,
) -> Result<Fields, PageError> {
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let host = PublicAddress::of(request).host;
    if !is_same_origin(header("sec-fetch-site"), header("origin"), &host) {
        return Err(PageError::CsrfRejected(None));
    }
    // Each form has its own budget: the gateway bounds the memory of all forms together.
    let body = read_form(request, payload, LIMITS, &BodyBudget::new(LIMITS.max_bytes)).await?;
    if url::form_urlencoded::parse(&body).nth(MAX_FIELDS).is_some() {
        return Err(PageError::Invalid(format!("A form has at most {MAX_FIELDS} fields.")));
    }
    Ok(Fields::parse(&body))
}

pub(crate) fn query_of(request: &HttpRequest) -> Pairs {
    parse_pairs(request.query_string())
}

/// Faults by field or parameter, for the texts beside them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Faults(Vec<FieldError>);

impl Faults {
    pub(crate) fn new(errors: Vec<FieldError>) -> Self {
        Self(errors)
    }

    /// The faults that a service found; a problem without any is shown beside `field`.
    pub(crate) fn of_problem(problem: Problem, field: &str) -> Self {
        let Problem { title, detail, errors, .. } = problem;
        let mut faults = Self::new(errors);
        if faults.is_empty() {
            faults.add(field, detail.unwrap_or(title));
        }
        faults
    }

    pub(crate) fn add(&mut self, field: &str, detail: impl Into<String>) {
        self.0.push(FieldError { pointer: field.to_owned(), detail: detail.into() });
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The parameters of a query that are not among `known`, or are given twice.
    pub(crate) fn of_parameters(query: &[(String, String)], known: &[&str]) -> Self {
        let mut faults = Self::default();
        for (index, (name, _)) in query.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                faults.add(name, "is not a parameter of this page");
            } else if query[..index].iter().any(|(earlier, _)| earlier == name) {
                faults.add(name, "is given twice");
            }
        }
        faults
    }

    /// 400 if there are any.
    pub(crate) fn status(&self) -> StatusCode {
        if self.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wrong with a field. Services name fields by pointers: `/url` is the field `url`, and `/events/0` is `events`.
    pub(crate) fn of(&self, field: &str) -> Option<&str> {
        let is_of =
            |error: &&FieldError| error.pointer.trim_start_matches('/').split('/').next() == Some(field);
        self.0.iter().find(is_of).map(|error| error.detail.as_str())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|error| (error.pointer.trim_start_matches('/'), error.detail.as_str()))
    }
}
