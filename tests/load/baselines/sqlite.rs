//! Baseline of imports on SQLite: in process, without any service: ticket, messages as text and an outbox row, as durable as
//! the product's writes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use crate::cluster::Servers;
use crate::conversations::Conversations;

/// The product's pragmas.
const PRAGMAS: &str = "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;";

const SCHEMA: &str = "
    CREATE TABLE ticket (id TEXT NOT NULL PRIMARY KEY, namespace TEXT NOT NULL, external_id TEXT NOT NULL,
                         source TEXT NOT NULL, subject TEXT, created_at BIGINT NOT NULL, messages TEXT NOT NULL,
                         UNIQUE (namespace, external_id));
    CREATE TABLE outbox (id TEXT NOT NULL PRIMARY KEY, topic TEXT NOT NULL, payload TEXT NOT NULL,
                         created_at BIGINT NOT NULL) WITHOUT ROWID;";

/// Creation time of every ticket.
const CREATED_AT: i64 = 1_763_600_000_000;

diesel::table! {
    ticket (id) {
        id -> Text,
        namespace -> Text,
        external_id -> Text,
        source -> Text,
        subject -> Nullable<Text>,
        created_at -> BigInt,
        messages -> Text,
    }
}

diesel::table! {
    outbox (id) {
        id -> Text,
        topic -> Text,
        payload -> Text,
        created_at -> BigInt,
    }
}

pub struct Sqlite {
    folder: PathBuf,
    messages: Vec<String>,
}

impl Sqlite {
    pub fn prepare(servers: &Servers, conversations: &Conversations) -> Result<Self> {
        let folder = servers.folder("sqlite-baseline")?;
        let messages = conversations.sample_of_messages(conversations.len()).map(str::to_owned).collect();
        Ok(Self { folder, messages })
    }

    /// Imports into a new file.
    pub fn imports_per_second(&self, imports_per_transaction: usize, time: Duration) -> Result<f64> {
        let file = tempfile::Builder::new().suffix(".sqlite").tempfile_in(&self.folder)?;
        let mut connection = SqliteConnection::establish(&file.path().display().to_string())?;
        connection.batch_execute(PRAGMAS)?;
        connection.batch_execute(SCHEMA)?;
        let begin = Instant::now();
        let mut number = 0;
        while begin.elapsed() < time {
            connection.immediate_transaction(|tx| {
                for _ in 0..imports_per_transaction {
                    self.import(tx, number)?;
                    number += 1;
                }
                diesel::QueryResult::Ok(())
            })?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        drop(connection);
        for beside in ["-wal", "-shm"] {
            let path = format!("{}{beside}", file.path().display());
            if std::path::Path::new(&path).exists() {
                std::fs::remove_file(&path).with_context(|| path.clone())?;
            }
        }
        Ok(number as f64 / seconds)
    }

    /// Statements are prepared once: diesel caches them.
    fn import(&self, tx: &mut SqliteConnection, number: usize) -> diesel::QueryResult<()> {
        // Ids ascend with time, like those of version 7.
        let id = format!("019a{number:08x}-0000-7000-8000-{number:012x}");
        diesel::insert_into(ticket::table)
            .values((
                ticket::id.eq(&id),
                ticket::namespace.eq("acct-1"),
                ticket::external_id.eq(format!("T-{number}")),
                ticket::source.eq("custom"),
                ticket::subject.eq("Subject of the ticket"),
                ticket::created_at.eq(CREATED_AT),
                ticket::messages.eq(&self.messages[number % self.messages.len()]),
            ))
            .execute(tx)?;
        diesel::insert_into(outbox::table)
            .values((
                outbox::id.eq(&id),
                outbox::topic.eq("conversation.accepted.v1"),
                outbox::payload.eq(format!("{{\"ticket_id\":\"{id}\",\"organization_id\":\"default\"}}")),
                outbox::created_at.eq(CREATED_AT),
            ))
            .execute(tx)?;
        Ok(())
    }
}
