//! Requests and responses between services over HTTP. Not public; both ends are at most one release apart.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::agent::AgentFacts;
use crate::conversation::Conversation;
use crate::event::TicketFacts;
use crate::ids::{ApiKeyId, OrganizationId, TicketId};
use crate::retention::RetentionPeriod;
use crate::tenant::Scopes;
use crate::time::Timestamp;

/// Export → gateway: response header of a download with the id of the file's organization; the request has no API key.
pub const FILE_OWNER_HEADER: &str = "x-assay-organization";

/// Gateway → agent-registry: the organization of an API key. The key itself is never sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResolveKey {
    /// SHA-256 of the API key, lower-case hexadecimal.
    pub key_sha256: String,
}

/// Response to [`ResolveKey`]. Always a 200: a 401 would mean that the gateway's own token was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedKey {
    /// Absent when the key is unknown, expired or revoked.
    pub grant: Option<KeyGrant>,
}

/// A valid key: neither expired nor revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyGrant {
    /// The key's record.
    pub key_id: ApiKeyId,
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// What the key may do.
    pub scopes: Scopes,
}

/// Ingest → agent-registry: look up agents of the token's organization.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindAgents {
    /// Service agent ids, as the caller wrote them.
    pub ids: Vec<String>,
    /// The caller's ids.
    pub external_ids: Vec<String>,
}

/// Response: the existing agents, in no particular order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoundAgents {
    /// The agents.
    pub agents: Vec<AgentFacts>,
}

/// Scoring worker → ingest: transcripts of tickets of any organization.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadTranscripts {
    /// The tickets.
    pub tickets: Vec<TicketReference>,
    /// Whether only attributes of the tickets are requested: all existing tickets are listed in `unreadable`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub facts_only: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A ticket and the organization it must belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TicketReference {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
}

/// Maximum number of tickets in one [`ReadTranscripts`].
pub const MAX_TRANSCRIPTS: usize = 100;

/// Response: the existing transcripts, in no particular order. Ingest serializes each as a [`StoredTranscript`], the caller
/// deserializes it as a [`Transcript`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transcripts<T = Transcript> {
    /// The transcripts.
    pub transcripts: Vec<T>,
    /// Tickets left out because the response would be too large: request them again.
    #[serde(default)]
    pub unread: Vec<TicketReference>,
    /// Deleted tickets.
    #[serde(default)]
    pub deleted: Vec<TicketReference>,
    /// Tickets whose stored transcript cannot be decoded or was not requested (`facts_only`).
    #[serde(default)]
    pub unreadable: Vec<TicketWithoutTranscript>,
}

impl<T> Default for Transcripts<T> {
    fn default() -> Self {
        Self { transcripts: Vec::new(), unread: Vec::new(), deleted: Vec::new(), unreadable: Vec::new() }
    }
}

/// A ticket without its transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketWithoutTranscript {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// Attributes of the ticket, as far as they can be decoded.
    pub ticket: TicketFacts,
}

/// Webhooks → scoring-worker: a page of the organizations with a webhook for evaluations.
pub type SubscribersPage = OrganizationPage<OrganizationId>;

/// Agent-registry → services that store data: a page of the organizations and their retention periods.
pub type RetentionPage = OrganizationPage<OrganizationRetention>;

/// A page of organizations, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrganizationPage<O> {
    /// The organizations.
    pub organizations: Vec<O>,
    /// Start of the next page; absent on the last one.
    pub next: Option<OrganizationId>,
}

/// Ingest → gateway: the deletion of a ticket of the token's organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// Time of the deletion; absent for a ticket that was not deleted, or whose tombstone has expired.
    pub deleted_at: Option<Timestamp>,
    /// Whether the ticket is stored.
    pub exists: bool,
}

/// Retention periods of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrganizationRetention {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// Of transcripts and all other data of the ticket except its evaluation.
    pub transcripts: RetentionPeriod,
    /// Of evaluations, including their rows in future exports.
    pub evaluations: RetentionPeriod,
    /// Of export files; absent: the default of the installation.
    pub files: Option<RetentionPeriod>,
}

/// One stored transcript. AI authors carry both `id` and `external_id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript<C = Conversation> {
    /// Owning organization.
    pub organization_id: OrganizationId,
    /// Attributes of the ticket.
    pub ticket: TicketFacts,
    /// The conversation.
    pub conversation: C,
}

/// A [`Transcript`] whose messages are passed on without being deserialized.
pub type StoredTranscript = Transcript<Conversation<Box<RawValue>>>;

/// Scoring → export: number of evaluations of the token's organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Evaluations ever recorded, each with one `conversation.evaluated.v1`.
    pub evaluated: i64,
}

/// Ingest and export → gateway: number of tickets of the token's organization, or of evaluations of tickets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketCount {
    /// The number.
    pub count: u64,
    /// The oldest ticket that was considered, if the maximum was reached: only the newest tickets are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<TicketId>,
}

/// Header that carries the public base address (scheme and authority) from the gateway to the export service, which
/// builds download addresses with it.
pub const PUBLIC_BASE_URL_HEADER: &str = "x-assay-public-base-url";
