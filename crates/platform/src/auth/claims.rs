//! What a service token says: for which service, and on whose behalf.

use std::fmt;

use assay_contracts::tenant::Tenant;

/// The service that accepts a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audience {
    /// agent-registry.
    AgentRegistry,
    /// ingest.
    Ingest,
    /// scoring-worker.
    Scoring,
    /// export.
    Export,
    /// webhooks.
    Webhooks,
    /// console.
    Console,
}

impl Audience {
    /// The claim `aud`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentRegistry => "agent-registry",
            Self::Ingest => "ingest",
            Self::Scoring => "scoring",
            Self::Export => "export",
            Self::Webhooks => "webhooks",
            Self::Console => "console",
        }
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServiceClaims {
    /// A forwarded request of a tenant.
    Tenant(Tenant),
    /// A service on its own behalf: it may read across organizations where a route allows it.
    Service,
}
