//! Progress of accepted conversations: their number in the read model, and the age of the oldest waiting one. Cheap enough
//! for ten queries per second under load.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use assay_platform::runtime::now;
use diesel::sql_types::BigInt;
use diesel::{
    Connection, OptionalExtension, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection, sql_query,
};

use super::Cluster;

/// `progress.watermark` is the watermark of an organization; `early_sequences` has the ranges of sequence numbers above it.
const COUNT: &str = "
    SELECT CAST((SELECT coalesce(sum(watermark), 0) FROM {schema}progress)
              + (SELECT coalesce(sum(last - first + 1), 0) FROM {schema}early_sequences) AS bigint) AS number";

/// The first conversation in id order without a row, starting at an id before which all have one.
const OLDEST_WAITING: &str = "
    SELECT created_at AS number FROM ingest.conversations accepted
    WHERE id >= '{from}' AND NOT EXISTS (
        SELECT FROM export.evaluation_rows WHERE ticket_id = accepted.id AND ticket_id >= '{from}')
    ORDER BY id LIMIT 1";

/// Maximum time between the creation of an id and the commit: the deadline of an import.
const MAX_COMMIT_DELAY_MS: i64 = 8_000;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A connection to the read model of a cluster.
pub struct ReadModel {
    database: Database,
    /// Everything accepted before this time has its row, in Unix epoch milliseconds.
    settled_until: i64,
}

enum Database {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

impl ReadModel {
    pub fn of(cluster: &Cluster) -> Result<Self> {
        let path = cluster.home().join("data").join("export.sqlite");
        let database = if path.exists() {
            let mut connection = SqliteConnection::establish(&path.display().to_string())?;
            sql_query("PRAGMA busy_timeout = 5000").execute(&mut connection)?;
            Database::Sqlite(connection)
        } else {
            let url = cluster.admin_url.as_deref().context("the cluster has no database")?;
            Database::Postgres(PgConnection::establish(url)?)
        };
        Ok(Self { database, settled_until: now().as_millis() })
    }

    /// Number of evaluations in the read model.
    pub fn count(&mut self) -> Result<u64> {
        let Row { number } = match &mut self.database {
            Database::Postgres(connection) => {
                sql_query(COUNT.replace("{schema}", "export.")).get_result(connection)?
            }
            Database::Sqlite(connection) => {
                sql_query(COUNT.replace("{schema}", "")).get_result(connection)?
            }
        };
        Ok(u64::try_from(number)?)
    }

    /// Age of the oldest waiting conversation: accepted, and not in the read model; zero when there is none.
    pub fn oldest_waiting(&mut self) -> Result<Duration> {
        let Database::Postgres(connection) = &mut self.database else {
            bail!("the age of the oldest waiting conversation is looked up in PostgreSQL only");
        };
        let asked_at = now().as_millis();
        let from = lowest_id_at(self.settled_until - MAX_COMMIT_DELAY_MS);
        let oldest: Option<Row> =
            sql_query(OLDEST_WAITING.replace("{from}", &from)).get_result(connection).optional()?;
        let accepted_at = oldest.map_or(asked_at, |row| row.number);
        self.settled_until = accepted_at.min(asked_at);
        Ok(Duration::from_millis(u64::try_from(now().as_millis() - accepted_at).unwrap_or(0)))
    }

    /// Waits until the read model has this many evaluations.
    pub fn settle(&mut self, expected: u64, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            let count = self.count()?;
            if count == expected {
                return Ok(());
            }
            if count > expected || Instant::now() > end {
                return Err(anyhow!("{count} evaluations are in the read model instead of {expected}"));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// The smallest version 7 UUID of a timestamp.
fn lowest_id_at(millis: i64) -> String {
    let moment = format!("{:012x}", millis.max(0));
    format!("{}-{}-0000-0000-000000000000", &moment[..8], &moment[8..])
}
