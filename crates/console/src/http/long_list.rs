//! Pages of a long list, newest first. A page is named by the last row of the one before it (`?before=ID`), so that it stays the
//! same while rows are added.

use std::fmt::Display;
use std::str::FromStr;

use assay_clients::ClientError;

use super::form::Faults;
use crate::domain::first_value;

/// Maximum number of rows on a page. A page with a thousand keys or agents would weigh more than 30 kB.
pub(crate) const MAX_ROWS: usize = 100;

/// The links between the pages of a list.
pub(crate) struct Pager {
    /// Address of the first page; `None` on it.
    pub(crate) first: Option<String>,
    /// Address of the next page, with older rows, if there is one.
    pub(crate) next: Option<String>,
}

impl Pager {
    /// `before` is the row after which the page begins, `last` its last row if there are older ones; `address` makes the address of the
    /// page after a row, and that of the first page.
    pub(crate) fn new<I: Display>(
        before: Option<I>,
        last: Option<I>,
        address: impl Fn(Option<String>) -> String,
    ) -> Self {
        Self { first: before.map(|_| address(None)), next: last.map(|id| address(Some(id.to_string()))) }
    }
}

/// The id in a parameter of a query; adds a fault if the parameter is not an id.
pub(crate) fn read_id<T: FromStr>(query: &[(String, String)], name: &str, faults: &mut Faults) -> Option<T> {
    let id = first_value(query, name)?.parse::<T>().ok();
    if id.is_none() {
        faults.add(name, "is no id");
    }
    id
}

/// The fault of a cursor that the service refused, for instance because it is of another list; none if it refused no cursor.
pub(crate) fn refused_cursor<T>(cursor: Option<&str>, listed: &Result<T, ClientError>) -> Faults {
    let mut faults = Faults::default();
    if cursor.is_some() && matches!(listed, Err(ClientError::ErrorStatus { status: 400, .. })) {
        faults.add("cursor", "belongs to another list");
    }
    faults
}

/// The first `count` rows, and the id of the last of them if there are more.
pub(crate) fn take_page<R, I>(
    mut rows: Vec<R>,
    count: usize,
    id_of: impl Fn(&R) -> I,
) -> (Vec<R>, Option<I>) {
    let has_more = rows.len() > count;
    rows.truncate(count);
    let last = rows.last().filter(|_| has_more).map(id_of);
    (rows, last)
}
