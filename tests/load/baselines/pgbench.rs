//! Baseline of imports: pgbench on PostgreSQL, without any service: ticket, messages as jsonb and an outbox row, of the same
//! conversations.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cluster::Servers;
use crate::conversations::Conversations;

const DATABASE: &str = "pgbench";

const SCHEMA: &str = "
    CREATE TABLE ticket (id uuid PRIMARY KEY, namespace text NOT NULL, external_id text NOT NULL, source text NOT NULL,
                         subject text, created_at bigint NOT NULL, messages jsonb NOT NULL,
                         UNIQUE (namespace, external_id));
    CREATE TABLE outbox (id bigserial PRIMARY KEY, topic text NOT NULL, payload jsonb NOT NULL, created_at bigint NOT NULL);";

/// Conversations used in turn: one script each, and pgbench accepts at most 128.
const SCRIPTS: usize = 100;

/// Concurrency and transaction size of a run.
#[derive(Clone, Copy)]
pub struct Shape {
    pub clients: usize,
    pub imports_per_transaction: usize,
}

pub struct Pgbench<'s> {
    servers: &'s Servers,
    folder: PathBuf,
}

impl<'s> Pgbench<'s> {
    pub fn prepare(servers: &'s Servers, conversations: &Conversations) -> Result<Self> {
        let folder = servers.folder("pgbench-scripts")?;
        servers.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
        servers.sql(DATABASE, SCHEMA)?;
        let messages: Vec<&str> = conversations.sample_of_messages(SCRIPTS).collect();
        for (index, first) in messages.iter().enumerate() {
            fs::write(folder.join(format!("one-{index}.sql")), script(&[first]))?;
            // Five scripts of twenty hold every conversation once.
            if index % 20 == 0 {
                let twenty: Vec<&str> =
                    (0..20).map(|offset| messages[(index + offset) % messages.len()]).collect();
                fs::write(folder.join(format!("twenty-{index}.sql")), script(&twenty))?;
            }
        }
        Ok(Self { servers, folder })
    }

    pub fn imports_per_second(&self, shape: Shape, seconds: u64) -> Result<f64> {
        self.servers.sql(DATABASE, "TRUNCATE ticket, outbox; CHECKPOINT")?;
        // Simple protocol: this many statements are not worth preparing.
        let (prefix, protocol) =
            if shape.imports_per_transaction == 1 { ("one-", "prepared") } else { ("twenty-", "simple") };
        let mut command = Command::new(self.servers.program("pgbench")?);
        command.args(["-n", "-M", protocol, "-T", &seconds.to_string()]);
        command.args(["-c", &shape.clients.to_string(), "-j", &shape.clients.min(2).to_string()]);
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)) {
                command.arg("-f").arg(path);
            }
        }
        command.arg(self.servers.admin_url(DATABASE));
        Ok(run(command)?.per_second * shape.imports_per_transaction as f64)
    }
}

/// Transactions of a run of pgbench.
pub(super) struct Transactions {
    pub per_second: f64,
    /// Mean time of one, in milliseconds.
    pub mean_ms: f64,
}

pub(super) fn run(mut command: Command) -> Result<Transactions> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("pgbench: {}", String::from_utf8_lossy(&output.stderr));
    }
    let figure = |name: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let line = line.with_context(|| format!("pgbench does not say `{name}`: {text}"))?;
        Ok(line.split(' ').next().unwrap_or_default().parse()?)
    };
    Ok(Transactions { per_second: figure("tps = ")?, mean_ms: figure("latency average = ")? })
}

/// A transaction that imports one conversation for each of these texts, the messages of a conversation as JSON.
fn script(messages: &[&str]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for index in 0..messages.len() {
        let _ = writeln!(text, "\\set a{index} random(1,9000000000000000000)");
    }
    text.push_str("BEGIN;\n");
    let each = |write: &dyn Fn(usize, &str) -> String| {
        messages
            .iter()
            .enumerate()
            .map(|(index, messages)| write(index, messages))
            .collect::<Vec<_>>()
            .join(",")
    };
    let tickets = each(&|index, messages| {
        format!(
            "(md5((:a{index})::text)::uuid,'acct-1','T-'||(:a{index})::text,'custom','Subject of the ticket',1763600000000,{}::jsonb)",
            literal(messages)
        )
    });
    let events = each(&|index, _| {
        format!(
            "('conversation.accepted.v1',jsonb_build_object('ticket_id',(:a{index})::text,'organization_id','default'),1763600000000)"
        )
    });
    let _ = writeln!(
        text,
        "INSERT INTO ticket(id,namespace,external_id,source,subject,created_at,messages) VALUES {tickets};\n\
         INSERT INTO outbox(topic,payload,created_at) VALUES {events};\nCOMMIT;"
    );
    text
}

/// An SQL literal for a script. pgbench reads a colon before a letter as a variable, also inside literals.
fn literal(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 16);
    text.push('\'');
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => text.push_str("''"),
            ':' if characters
                .peek()
                .is_some_and(|next| !next.is_ascii() || next.is_alphabetic() || *next == '_') =>
            {
                // A colon before `true`, `false` or `null` is taken as JSON syntax, where a space may follow.
                let rest: String = characters.clone().take(4).collect();
                text.push_str(if ["true", "fals", "null"].contains(&rest.as_str()) {
                    ": "
                } else {
                    "\\u003a"
                });
            }
            other => text.push(other),
        }
    }
    text.push('\'');
    text
}
