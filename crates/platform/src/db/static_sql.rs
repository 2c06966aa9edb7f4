//! Statements that the database plans once for each connection.
//!
//! diesel has every [`diesel::sql_query`] parsed and planned anew, because it cannot know whether the text is the same next
//! time. Of a [`StaticSql`] it is: its text is part of the executable. So it is prepared once, under a name, as the
//! statements of diesel's query builder are.
//!
//! A named statement belongs to a session. A pooler that gives sessions away between transactions (pgbouncer in
//! transaction mode before 1.21, or later with `max_prepared_statements = 0`) breaks it; it would break `search_path` and
//! the other settings of a session just the same, so that services need sessions of their own anyway.

use diesel::backend::Backend;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, BoxedSqlQuery, Query, QueryFragment, QueryId, SqlQuery};
use diesel::serialize::ToSql;
use diesel::sql_types::{HasSqlType, Untyped};

/// A statement whose text never changes, and what it is run with.
#[must_use = "statements are only run by `load`, `get_result` or `execute`"]
pub struct StaticSql<'b, DB: Backend>(BoxedSqlQuery<'b, DB, SqlQuery>);

/// `sql` with the database's own placeholders: `$1` or `?`.
pub fn static_sql<'b, DB: Backend>(sql: &'static str) -> StaticSql<'b, DB> {
    StaticSql(diesel::sql_query(sql).into_boxed())
}

impl<'b, DB: Backend> StaticSql<'b, DB> {
    /// The value of the next placeholder, in their order.
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

    /// What this type is for.
    fn is_safe_to_cache_prepared(&self, _backend: &DB) -> QueryResult<bool> {
        Ok(true)
    }
}

/// None: the text is what the statement is found again by.
impl<DB: Backend> QueryId for StaticSql<'_, DB> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Backend> Query for StaticSql<'_, DB> {
    type SqlType = Untyped;
}

impl<C: Connection<Backend = DB>, DB: Backend> RunQueryDsl<C> for StaticSql<'_, DB> {}
