//! What a conversation costs, as `make bench` measures it. Figures of one machine: another processor differs by its own
//! factor, which `make bench` tells.

/// Processor time of one conversation, from its import to its row in the read model, in microseconds by process.
pub const PROCESSOR_MICROS: [(Part, f64); 6] = [
    (Part::Gateway, 70.0),
    (Part::Ingest, 120.0),
    (Part::ScoringWorker, 52_000.0),
    (Part::Export, 40.0),
    (Part::Postgres, 230.0),
    (Part::RabbitMq, 60.0),
];

/// Body of the conversations that these figures were measured with, in bytes. Work and storage grow with the body.
pub const MEASURED_BODY_BYTES: f64 = 5_000.0;

/// Bytes on the disk of PostgreSQL for one conversation of that size, indexes included: the transcript (ingest).
pub const TRANSCRIPT_BYTES: f64 = 2_250.0;

/// The same: its evaluation (scoring) and its row in the read model (export).
pub const EVALUATION_BYTES: f64 = 4_400.0;

/// What stays of every conversation for ever: the hash that finds duplicates, with its index.
pub const IDENTITY_BYTES: f64 = 290.0;

/// Bytes of an event in RabbitMQ's log until it is consumed, both events of a conversation together.
pub const EVENT_BYTES: f64 = 6_000.0;

/// Bytes of write-ahead log for one conversation, for backups and replicas.
pub const WRITE_AHEAD_BYTES: f64 = 19_400.0;

/// Bytes of a row in an export file, both kinds together.
pub const EXPORT_ROW_BYTES: f64 = 1_200.0;

/// A part of an installation that needs processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Gateway,
    Ingest,
    ScoringWorker,
    Export,
    Postgres,
    RabbitMq,
}

impl Part {
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

    /// Fewer than two would stop the service when one is restarted; RabbitMQ's quorum queues need three.
    pub fn fewest(self) -> u32 {
        match self {
            Self::RabbitMq => 3,
            _ => 2,
        }
    }
}
