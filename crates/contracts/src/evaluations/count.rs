//! The query that counts tickets in ingest and evaluations in export: the difference is the pending imports.

use super::filters::EvaluationFilters;
use super::query::QueryReader;
use crate::ids::TicketId;
use crate::validation::FieldError;

/// Selects tickets with the id `since` or a later one whose conversations began in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountQuery {
    /// `from` and `to`; no other filter.
    pub period: EvaluationFilters,
    /// The earliest ticket id, inclusive.
    pub since: TicketId,
}

impl CountQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// Every error, by the name of its parameter.
    pub fn parse<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut query = QueryReader::new(pairs);
        let since = query.parsed("since", "must be a ticket id", |text| text.parse().ok());
        let (from, to) = (query.moment("from"), query.moment("to"));
        let period = EvaluationFilters { from, to, ..EvaluationFilters::default() };
        let since = query.finish(since)?;
        let missing = || vec![FieldError { pointer: "since".to_owned(), detail: "is required".to_owned() }];
        Ok(Self { period, since: since.ok_or_else(missing)? })
    }
}
