//! Prepared statements with constant text.
//!
//! diesel does not cache a [`diesel::sql_query`], because its text may differ each time. The text of a [`StaticSql`] is part
//! of the executable, so it is prepared once per connection, like the statements of diesel's query builder.
//!
//! A prepared statement belongs to a session of the database. A pooler that shares sessions between clients (pgbouncer in
//! transaction mode before 1.21, or later with `max_prepared_statements = 0`) breaks it. It would also break `search_path` and
//! the other settings of a session, so services need sessions of their own anyway.

use diesel::backend::Backend;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, BoxedSqlQuery, Query, QueryFragment, QueryId, SqlQuery};
use diesel::serialize::ToSql;
use diesel::sql_types::{HasSqlType, Untyped};

/// A statement with constant text, and its bound values.
#[must_use = "statements are only run by `load`, `get_result` or `execute`"]
pub struct StaticSql<'b, DB: Backend>(BoxedSqlQuery<'b, DB, SqlQuery>);

/// `sql` with the database's own placeholders: `$1` or `?`.
pub fn static_sql<'b, DB: Backend>(sql: &'static str) -> StaticSql<'b, DB> {
    StaticSql(diesel::sql_query(sql).into_boxed())
}

impl<'b, DB: Backend> StaticSql<'b, DB> {
    /// Binds the next placeholder, in order.
    pub fn bind<T, V>(self, value: V) -> Self
    where
        DB: HasSqlType<T>,
        T: Send + 'b,
        V: ToSql<T, DB> + Send + 'b,
    {
        Self(self.0.bind::<T, V>(value))
    }
}

impl<'q, DB: Backend> QueryFragment<DB> for StaticSql<'q, DB>
where
    BoxedSqlQuery<'q, DB, SqlQuery>: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }

    /// The purpose of this type: the text is constant.
    fn is_safe_to_cache_prepared(&self, _backend: &DB) -> QueryResult<bool> {
        Ok(true)
    }
}

/// No static id: the cache key is the text.
impl<DB: Backend> QueryId for StaticSql<'_, DB> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Backend> Query for StaticSql<'_, DB> {
    type SqlType = Untyped;
}

impl<C: Connection<Backend = DB>, DB: Backend> RunQueryDsl<C> for StaticSql<'_, DB> {}
