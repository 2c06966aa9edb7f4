//! Pages of a list that a cursor continues, and their sizes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Page size when the request names none.
pub const DEFAULT_LIMIT: u32 = 20;
/// Largest page size.
pub const MAX_LIMIT: u32 = 100;

/// One page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// Items of this page.
    pub data: Vec<T>,
    /// Pagination state.
    pub page_info: PageInfo,
}

/// Pagination state of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageInfo {
    /// Whether more items follow.
    pub has_next_page: bool,
    /// Page size applied.
    #[schema(minimum = 1, maximum = 100, example = 20)]
    pub limit: u32,
    /// Opaque cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}
