//! Plain SQL on the database at a URL, for checks that bypass the service that owns it.

use anyhow::{Context as _, Result};
use diesel::{
    Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _, sql_query, sql_types::Text,
};

#[derive(QueryableByName)]
pub(crate) struct Row {
    #[diesel(sql_type = Text)]
    pub(crate) value: String,
}

/// Runs statements on the database at `url` (`postgres://…` or `sqlite:PATH`).
///
/// # Errors
/// When the database cannot be opened or refuses a statement.
pub fn execute(url: &str, statements: &str) -> Result<()> {
    match url.strip_prefix("sqlite:") {
        Some(path) => {
            let mut connection = SqliteConnection::establish(path).context("cannot open the database")?;
            connection.batch_execute("PRAGMA busy_timeout = 10000")?;
            connection.batch_execute(statements)
        }
        None => PgConnection::establish(url).context("cannot connect")?.batch_execute(statements),
    }
    .with_context(|| statements.to_owned())
}

/// Runs `query` on the database at `url` (`postgres://…` or `sqlite:PATH`) and returns its text column `value`.
///
/// # Errors
/// When the database cannot be opened or refuses the query.
pub fn query_texts(url: &str, query: &str) -> Result<Vec<String>> {
    let rows: Vec<Row> = match url.strip_prefix("sqlite:") {
        Some(path) => {
            let mut connection = SqliteConnection::establish(path).context("cannot open the database")?;
            sql_query("PRAGMA busy_timeout = 10000").execute(&mut connection)?;
            sql_query(query).load(&mut connection)
        }
        None => sql_query(query).load(&mut PgConnection::establish(url).context("cannot connect")?),
    }
    .with_context(|| query.to_owned())?;
    Ok(rows.into_iter().map(|row| row.value).collect())
}
