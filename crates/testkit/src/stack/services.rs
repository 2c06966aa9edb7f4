//! The processes of the stack and the databases they own.

use crate::roles::ServiceRole;

/// A role that runs as its own process; subcommand, log and pid file have its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) name: &'static str,
    /// The setting that holds the address on which it listens.
    pub(super) listen: &'static str,
    /// The setting by which others find it, if they call it.
    pub(super) url: Option<&'static str>,
}

/// The services behind the gateway.
pub(super) const SERVICES: [Service; 6] = [
    Service {
        name: "agent-registry",
        listen: "ASSAY_REGISTRY__LISTEN",
        url: Some("ASSAY_SERVICES__REGISTRY_URL"),
    },
    Service { name: "ingest", listen: "ASSAY_INGEST__LISTEN", url: Some("ASSAY_SERVICES__INGEST_URL") },
    Service {
        name: "scoring-worker",
        listen: "ASSAY_SCORING__LISTEN",
        url: Some("ASSAY_SERVICES__SCORING_URL"),
    },
    Service { name: "export", listen: "ASSAY_EXPORT__LISTEN", url: Some("ASSAY_SERVICES__EXPORT_URL") },
    Service { name: "export-worker", listen: "ASSAY_EXPORT_WORKER__LISTEN", url: None },
    Service { name: "webhooks", listen: "ASSAY_WEBHOOKS__LISTEN", url: Some("ASSAY_SERVICES__WEBHOOKS_URL") },
];

/// The public service.
pub(super) const GATEWAY: &str = "gateway";

/// The names of the backends' processes.
pub(super) const POSTGRES: &str = "postgres";
pub(super) const RABBITMQ: &str = "rabbitmq";
pub(super) const EPMD: &str = "epmd";

/// A role, its schema and the setting that holds its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServiceDatabase {
    pub(super) owner: ServiceRole,
    pub(super) url: &'static str,
}

/// One role and one schema per service.
pub(super) const DATABASES: [ServiceDatabase; 5] = [
    ServiceDatabase {
        owner: ServiceRole { role: "assay_registry", schema: "registry" },
        url: "ASSAY_REGISTRY__DATABASE_URL",
    },
    ServiceDatabase {
        owner: ServiceRole { role: "assay_ingest", schema: "ingest" },
        url: "ASSAY_INGEST__DATABASE_URL",
    },
    ServiceDatabase {
        owner: ServiceRole { role: "assay_scoring", schema: "scoring" },
        url: "ASSAY_SCORING__DATABASE_URL",
    },
    ServiceDatabase {
        owner: ServiceRole { role: "assay_export", schema: "export" },
        url: "ASSAY_EXPORT__DATABASE_URL",
    },
    ServiceDatabase {
        owner: ServiceRole { role: "assay_webhooks", schema: "webhooks" },
        url: "ASSAY_WEBHOOKS__DATABASE_URL",
    },
];
