//! Database type of ids for stores that use the same columns on both databases.

use diesel::backend::Backend;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
#[cfg(feature = "distributed")]
use diesel::pg::Pg;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::Text;
#[cfg(feature = "distributed")]
use diesel::sql_types::Uuid as SqlUuid;
use diesel::sqlite::Sqlite;
use uuid::Uuid;

/// An id: `uuid` in PostgreSQL, lower-case text in SQLite; both have the same sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromSqlRow, AsExpression)]
#[cfg_attr(feature = "distributed", diesel(sql_type = SqlUuid))]
#[diesel(sql_type = Text)]
pub struct StoredId(pub Uuid);

impl StoredId {
    /// Wraps an id of any kind.
    pub fn of(id: impl Into<Uuid>) -> Self {
        Self(id.into())
    }
}

#[cfg(feature = "distributed")]
impl FromSql<SqlUuid, Pg> for StoredId {
    fn from_sql(value: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        <Uuid as FromSql<SqlUuid, Pg>>::from_sql(value).map(Self)
    }
}

#[cfg(feature = "distributed")]
impl ToSql<SqlUuid, Pg> for StoredId {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        <Uuid as ToSql<SqlUuid, Pg>>::to_sql(&self.0, out)
    }
}

impl FromSql<Text, Sqlite> for StoredId {
    fn from_sql(value: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let text = <String as FromSql<Text, Sqlite>>::from_sql(value)?;
        Ok(Self(Uuid::try_parse(&text)?))
    }
}

impl ToSql<Text, Sqlite> for StoredId {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.to_string());
        Ok(IsNull::No)
    }
}
