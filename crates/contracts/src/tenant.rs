//! Tenants: every record belongs to one organization, and a key may do only what its scopes name.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::OrganizationId;
use crate::named_enum::named_enum;

named_enum!(
    /// What an API key may do.
    Scope {
        /// Submit conversations.
        Assess = "assess",
        /// Register AI agents.
        Agents = "agents",
        /// Read and delete tickets and their evaluations.
        Tickets = "tickets",
        /// Create, read and download exports.
        Exports = "exports",
        /// List and summarize evaluations.
        EvaluationsRead = "evaluations:read",
        /// Read transcripts.
        TranscriptsRead = "transcripts:read",
        /// Manage webhooks and read their deliveries.
        Webhooks = "webhooks",
        /// Sign in to the console, which shows everything of the organization and manages its keys.
        Console = "console",
        /// Administer the organization.
        Admin = "admin",
    }
);

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The name is not one of [`Scope::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown scope `{0}`: use assess, agents, tickets, exports, evaluations:read, transcripts:read, webhooks, console or admin"
)]
pub struct UnknownScope(pub String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::from_name(text).ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// A set of scopes; written as names separated by spaces in tokens and in the database (RFC 6749, section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// Default scopes of a key: all but `console` and `admin`, so that the key of a program can neither
    /// sign in to the console nor create keys.
    pub fn default_for_keys() -> Self {
        let is_default = |scope: &Scope| !matches!(scope, Scope::Console | Scope::Admin);
        Self(Scope::ALL.iter().copied().filter(is_default).collect())
    }

    /// The scopes that `other` lacks.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// Whether the set has no scopes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the set contains `scope`.
    pub fn allows(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|scope| scope.as_str()).collect();
        formatter.write_str(&names.join(" "))
    }
}

impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        text.split_ascii_whitespace().map(Scope::from_str).collect()
    }
}

/// The authenticated tenant of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// The organization that every record of the request belongs to.
    pub organization_id: OrganizationId,
    /// Scopes of the request's key.
    pub scopes: Scopes,
}
