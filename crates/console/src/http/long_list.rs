//! Pages of a long list, newest first. A page is named by the last row of the one before it (`?before=ID`), so that it stays the
//! same while rows are added.

use std::str::FromStr;

use actix_web::HttpRequest;
use assay_clients::ClientError;

use super::form::{Faults, query_of};

/// Rows of a page. A thousand keys or agents would weigh more than 30 kB.
const ROWS: usize = 100;

/// The parameter `before` of the query, and the faults of the query, which may have the parameters `others`, too.
pub(crate) fn read_before<T: FromStr>(request: &HttpRequest, others: &[&str]) -> (Option<T>, Faults) {
    let query = query_of(request);
    let mut faults = Faults::of_parameters(&query, &[others, &["before"]].concat());
    let given = query.iter().find(|pair| pair.0 == "before");
    let before = given.and_then(|(_, value)| value.parse().ok());
    if given.is_some() && before.is_none() {
        faults.add("before", "is no id");
    }
    (before, faults)
}

/// The fault of a cursor that the service refused, for instance because it is of another list; the page shows the first rows.
pub(crate) fn refused_cursor<T>(cursor: Option<&str>, listed: &Result<T, ClientError>) -> Faults {
    let mut faults = Faults::default();
    if cursor.is_some() && matches!(listed, Err(ClientError::Refused { status: 400, .. })) {
        faults.add("cursor", "belongs to another list");
    }
    faults
}

/// The first rows, and the id of the last of them if there are more.
pub(crate) fn first_page<R, I>(mut rows: Vec<R>, id_of: impl Fn(&R) -> I) -> (Vec<R>, Option<I>) {
    let has_more = rows.len() > ROWS;
    rows.truncate(ROWS);
    let next = rows.last().filter(|_| has_more).map(id_of);
    (rows, next)
}
