//! The list of evaluations: its order, its pages, and the position of one ticket in it.

use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::filters::EvaluationFilters;
use super::item::EvaluationItem;
use super::query::{QueryReader, parse_digits};
use super::render::Pairs;
use crate::ids::TicketId;
use crate::named_enum::{Named, named_enum};
use crate::page::{DEFAULT_LIMIT, MAX_LIMIT, PageInfo};
use crate::validation::FieldError;

/// A count that reads rows stops at this number, which takes some ten milliseconds. A count from the columns of days has no
/// maximum.
pub const MAX_COUNTED: u64 = 2_000;

/// Positions of tickets in lists are counted up to this one.
pub const MAX_POSITION: u64 = 10_000;

named_enum!(
    /// Key of a list's order; ties are ordered by the conversation's date and the ticket's id.
    SortKey {
        /// The conversation's date.
        StartedAt = "started_at",
        /// AXIS.
        Axis = "axis",
        /// Resolution accuracy.
        ResolutionAccuracy = "resolution_accuracy",
        /// Interaction effort.
        InteractionEffort = "interaction_effort",
        /// Handoff smoothness.
        HandoffSmoothness = "handoff_smoothness",
        /// Confidence.
        Confidence = "confidence",
        /// Charge: supported, review, disputed, not applicable.
        Charge = "charge",
    }
);

/// An order: a key, and its direction. Rows without a value of the key come last in both directions; `not_applicable` is no
/// value of the charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// The key.
    pub key: SortKey,
    /// Highest first.
    pub descending: bool,
}

impl Default for Sort {
    /// Newest first.
    fn default() -> Self {
        Self { key: SortKey::StartedAt, descending: true }
    }
}

impl Sort {
    /// Reads `key` or `-key`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        SortKey::from_name(name).map(|key| Self { key, descending })
    }

    fn read(query: &mut QueryReader) -> Self {
        let detail =
            format!("must be one of: {}; with a `-` in front for the highest first", SortKey::names());
        query.parsed("sort", &detail, Self::parse).unwrap_or_default()
    }

    /// The parameter, absent for the default order.
    fn to_pair(self) -> Option<(&'static str, String)> {
        (self != Self::default()).then(|| ("sort", self.to_string()))
    }
}

impl std::fmt::Display for Sort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}{}", if self.descending { "-" } else { "" }, self.key.as_str())
    }
}

impl PartialSchema for Sort {
    fn schema() -> RefOr<Schema> {
        let both = |key: &SortKey| [false, true].map(|descending| Self { key: *key, descending }.to_string());
        let orders = SortKey::ALL.iter().flat_map(both);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(orders)).into()
    }
}

impl ToSchema for Sort {}

/// The query of `GET /v1/evaluations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Filters of the rows.
    pub filters: EvaluationFilters,
    /// Order of the rows.
    pub sort: Sort,
    /// Cursor of the page, as it was sent; the first page without one.
    pub cursor: Option<String>,
    /// Page size.
    pub limit: u32,
}

impl ListQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// Every error, by the name of its parameter.
    pub fn parse<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut query = QueryReader::new(pairs);
        let filters = EvaluationFilters::read(&mut query);
        let sort = Sort::read(&mut query);
        let cursor = query.single("cursor");
        if cursor.as_deref() == Some("") {
            query.add_error("cursor", "must not be empty: leave it out for the first page");
        }
        let limit = query.parsed("limit", "must be an integer from 1 to 100", |text| {
            u32::try_from(parse_digits(text)?).ok().filter(|limit| (1..=MAX_LIMIT).contains(limit))
        });
        query.finish(Self { filters, sort, cursor, limit: limit.unwrap_or(DEFAULT_LIMIT) })
    }

    /// The parameters that parse to this query, without the defaults.
    pub fn to_pairs(&self) -> Pairs {
        let mut pairs = self.filters.to_pairs();
        pairs.extend(self.sort.to_pair());
        pairs.extend(self.cursor.clone().map(|cursor| ("cursor", cursor)));
        if self.limit != DEFAULT_LIMIT {
            pairs.push(("limit", self.limit.to_string()));
        }
        pairs
    }
}

/// The query of `GET /v1/tickets/{id}/neighbours`: the list that contains the neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighboursQuery {
    /// Filters of the rows.
    pub filters: EvaluationFilters,
    /// Order of the rows.
    pub sort: Sort,
}

impl NeighboursQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// Every error, by the name of its parameter.
    pub fn parse<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut query = QueryReader::new(pairs);
        let filters = EvaluationFilters::read(&mut query);
        let sort = Sort::read(&mut query);
        query.finish(Self { filters, sort })
    }

    /// The parameters that parse to this query, without the defaults.
    pub fn to_pairs(&self) -> Pairs {
        let mut pairs = self.filters.to_pairs();
        pairs.extend(self.sort.to_pair());
        pairs
    }
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvaluationPage {
    /// Rows of this page.
    pub data: Vec<EvaluationItem>,
    /// Pagination state.
    pub page_info: PageInfo,
    /// Rows of the whole list.
    pub total: Total,
}

/// A number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Total {
    /// The number; a lower bound unless `exact`.
    #[schema(example = 214)]
    pub count: u64,
    /// Whether `count` is the exact number. `false`: counting stopped at 2,000, and there are more rows.
    pub exact: bool,
}

/// The position of a ticket in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Neighbours {
    /// The ticket before it in the order of the list; absent at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub previous: Option<TicketId>,
    /// The ticket after it; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub next: Option<TicketId>,
    /// Whether the list contains the ticket. If not, `previous` and `next` enclose the position that it would have.
    pub included: bool,
    /// Position of the ticket in the list, from 1; absent beyond 10,000, or when the ticket is not in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 21)]
    pub position: Option<u64>,
    /// Rows of the whole list.
    pub total: Total,
}
