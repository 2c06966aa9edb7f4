//! Months of stored tickets: copies of imported ones, made by PostgreSQL, so that this code does not depend on the columns.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use assay_contracts::time::Timestamp;
use assay_platform::db::{PartitionedTable, ensure_monthly_partitions};
use assay_platform::runtime::now;
use assay_testkit::query_texts;
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};

use super::Cluster;

/// Imported conversations to copy.
const SAMPLES: u64 = 500;
/// Rows per statement.
const CHUNK: u64 = 100_000;
/// Time span of the stored tickets in days, up to now.
const DAYS: i64 = 150;
const DAY_MS: i64 = 24 * 3_600 * 1_000;
const CONVERSATIONS: PartitionedTable = PartitionedTable { name: "conversations", key: "id" };

/// Columns that differ in each copy, and their values in SQL: the id is a UUID of version 7. `number` is that of the copy,
/// `{millis}` its time, `{random}` are 32 random hexadecimal digits.
const OWN_COLUMNS: [(&str, &str); 3] = [
    (
        "id",
        "(lpad(to_hex({millis}), 12, '0') || '7' || left({random}, 3) || '8' || right({random}, 15))::uuid",
    ),
    ("external_id", "'stored-' || number"),
    ("created_at", "{millis}"),
];

/// The tables of tickets.
pub struct StoredTickets {
    url: String,
    database: PgConnection,
    columns: Vec<String>,
    stored: u64,
    first_ms: i64,
}

/// Sizes of the stored tickets.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub tickets: u64,
    table_bytes: u64,
    index_bytes: u64,
}

impl Sizes {
    pub fn table_bytes_each(self) -> f64 {
        self.table_bytes as f64 / self.tickets as f64
    }

    pub fn index_bytes_each(self) -> f64 {
        self.index_bytes as f64 / self.tickets as f64
    }
}

impl StoredTickets {
    /// Takes samples from a cluster with some imported conversations, and removes those.
    pub fn of(cluster: &Cluster) -> Result<Self> {
        let first_ms = now().as_millis() - DAYS * DAY_MS;
        // The partitions that the service would have created over time.
        let mut service = PgConnection::establish(cluster.setting("ASSAY_INGEST__DATABASE_URL"))?;
        service.batch_execute("SET search_path = ingest")?;
        for day in (0..DAYS).step_by(28) {
            let then = Timestamp::saturating_from_millis(first_ms + day * DAY_MS);
            ensure_monthly_partitions(&mut service, CONVERSATIONS, then, 0..=0)?;
        }
        let url = cluster.admin_url.as_deref().context("the cluster has no database")?;
        let mut database = PgConnection::establish(url)?;
        database.batch_execute(&format!(
            "SET search_path = ingest;
             CREATE TABLE public.sample AS
                 SELECT row_number() OVER () - 1 AS sample, * FROM conversations LIMIT {SAMPLES};
             CREATE UNIQUE INDEX ON public.sample (sample); ANALYZE public.sample;"
        ))?;
        let columns = query_texts(
            url,
            "SELECT attname::text AS value FROM pg_attribute
             WHERE attrelid = 'ingest.conversations'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        )?;
        let found = number(url, "SELECT count(*) FROM public.sample")?;
        ensure!(found == SAMPLES, "{found} conversations were imported, and {SAMPLES} are wanted");
        let mut this = Self { url: url.to_owned(), database, columns, stored: 0, first_ms };
        this.empty()?;
        Ok(this)
    }

    /// Removes all tickets.
    pub fn empty(&mut self) -> Result<()> {
        self.stored = 0;
        Ok(self.database.batch_execute("TRUNCATE conversations, identities")?)
    }

    /// Adds copies up to this number, evenly over the time span.
    pub fn fill(&mut self, tickets: u64) -> Result<()> {
        // Each call spreads its rows over the whole time span.
        let step = (DAYS * DAY_MS) as f64 / tickets.saturating_sub(self.stored).max(1) as f64;
        let first = self.stored;
        while self.stored < tickets {
            let end = tickets.min(self.stored + CHUNK);
            let millis = format!("({} + ((number - {first}) * {step})::bigint)", self.first_ms);
            self.database.batch_execute(&self.copies(self.stored..end, &millis))?;
            self.stored = end;
        }
        // Maintenance that must not happen during the measurement.
        for statement in ["VACUUM ANALYZE conversations", "VACUUM ANALYZE identities", "CHECKPOINT"] {
            self.database.batch_execute(statement)?;
        }
        ensure!(Command::new("sync").status()?.success(), "sync failed");
        Ok(())
    }

    /// SQL for copies with these numbers, and their identities.
    fn copies(&self, numbers: std::ops::Range<u64>, millis: &str) -> String {
        let own = |column: &str| {
            let found = OWN_COLUMNS.iter().find(|(name, _)| *name == column);
            found.map(|(_, value)| {
                value.replace("{millis}", millis).replace("{random}", "md5('id' || number)")
            })
        };
        let values: Vec<String> =
            self.columns.iter().map(|column| own(column).unwrap_or_else(|| column.clone())).collect();
        let id = own("id").unwrap_or_default();
        let (columns, values) = (self.columns.join(", "), values.join(", "));
        let numbers =
            format!("generate_series({}::bigint, {}::bigint) AS number", numbers.start, numbers.end - 1);
        format!(
            "INSERT INTO conversations ({columns})
                 SELECT {values} FROM {numbers} JOIN public.sample ON sample = number % {SAMPLES};
             INSERT INTO identities (organization_id, identity_sha256, ticket_id)
                 SELECT organization_id, sha256(convert_to('identity' || number, 'UTF8')), {id}
                 FROM {numbers} JOIN public.sample ON sample = number % {SAMPLES};"
        )
    }

    pub fn sizes(&self) -> Result<Sizes> {
        let bytes = |size_function: &str| -> Result<u64> {
            let tables = "(VALUES ('ingest.conversations'), ('ingest.identities')) AS partitioned (name), pg_partition_tree(name::regclass)";
            number(&self.url, &format!("SELECT sum({size_function}(relid))::bigint FROM {tables}"))
        };
        let (table_bytes, index_bytes) = (bytes("pg_table_size")?, bytes("pg_indexes_size")?);
        let tickets = number(&self.url, "SELECT count(*) FROM ingest.identities")?;
        Ok(Sizes { tickets, table_bytes, index_bytes })
    }
}

fn number(url: &str, query: &str) -> Result<u64> {
    Ok(query_texts(url, &format!("SELECT ({query})::text AS value"))?.concat().parse()?)
}
