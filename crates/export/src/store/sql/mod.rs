//! The statements, written once for both databases: `postgres.rs` and `sqlite.rs` include these modules and define what differs.
//! Both databases accept the placeholders `$1`, `$2`, …; SQLite numbers them in order of appearance, so they must appear in order.

pub mod days;
pub mod evaluations;
mod facts;
mod facts_records;
pub mod jobs;
pub mod leases;
mod record;
pub mod removal;
pub mod rows;
mod schema;
pub mod sequences;

use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sql_query;
use diesel::sql_types::Text;

pub(in crate::store) use self::facts::{FactsValues, TicketRecord};
use super::{
    Backend, Connection, DIALECT, Id, PRUNE_TOMBSTONES, REMOVE_OLDER, ROW_VALUES, RowByRow, SKIP_LOCKED,
    greatest, insert_facts, lock_until_commit, read_snapshot, upsert_rows,
};

/// A statement with the texts of its placeholders.
pub(in crate::store) fn bind_texts(
    sql: String,
    bindings: Vec<String>,
) -> BoxedSqlQuery<'static, Backend, SqlQuery> {
    bindings
        .into_iter()
        .fold(sql_query(sql).into_boxed::<Backend>(), |query, text| query.bind::<Text, _>(text))
}
