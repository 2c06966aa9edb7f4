//! Cost of a conversation, measured on one machine (`proto-docs/scaling.md`). Other processors differ by a factor, which
//! `make bench` shows.

/// CPU time of one conversation by component, in microseconds, from its import to its row in the read model: measured by
/// `make bench` with the scorer 2.0.0 and rounded up. That of scoring-worker is of a later scorer, and of its reading alone (17
/// messages), beside which the rest is small.
pub const CPU_MICROS: [(Component, f64); 6] = [
    (Component::Gateway, 70.0),
    (Component::Ingest, 120.0),
    (Component::ScoringWorker, 52_000.0),
    (Component::Export, 40.0),
    (Component::Postgres, 230.0),
    (Component::RabbitMq, 60.0),
];

/// Size of the bodies that were measured, in bytes. CPU time and storage grow with the body, but the scorer's time only
/// up to `MAX_SCORING_FACTOR`.
pub const MEASURED_BODY_BYTES: f64 = 5_000.0;

/// Disk bytes of one measured transcript in PostgreSQL (ingest), indexes included.
pub const TRANSCRIPT_BYTES: f64 = 2_250.0;

/// Disk bytes of an evaluation (scoring) and of the conversation's row in the read model (export), indexes included.
pub const EVALUATION_BYTES: f64 = 4_400.0;

/// Disk bytes of the hash by which duplicates of a conversation are found, with its index. It is never removed.
pub const IDENTITY_BYTES: f64 = 290.0;

/// Bytes of `conversation.accepted` and `conversation.evaluated` in RabbitMQ's log until they are consumed.
pub const EVENT_BYTES: f64 = 6_000.0;

/// Bytes of write-ahead log for one conversation, for backups and replicas.
pub const WRITE_AHEAD_BYTES: f64 = 19_400.0;

/// Bytes of an evaluation's rows in export files: one of each kind.
pub const EXPORT_ROW_BYTES: f64 = 1_200.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    Gateway,
    Ingest,
    ScoringWorker,
    Export,
    Postgres,
    RabbitMq,
}

impl Component {
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Ingest => "ingest",
            Self::ScoringWorker => "scoring-worker",
            Self::Export => "export",
            Self::Postgres => "PostgreSQL",
            Self::RabbitMq => "RabbitMQ",
        }
    }

    /// With one replica a restart would be an outage; RabbitMQ's quorum queues need three.
    pub fn min_replicas(self) -> u32 {
        match self {
            Self::RabbitMq => 3,
            _ => 2,
        }
    }
}
