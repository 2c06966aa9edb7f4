//! What services say to each other over HTTP. Not public; both ends are ours and change together, one release
//! apart at most.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::conversation::Conversation;
use crate::event::{AgentFacts, TicketFacts};
use crate::ids::{ApiKeyId, OrganizationId, TicketId};
use crate::retention::Period;
use crate::tenant::Scopes;
use crate::time::Timestamp;

/// Gateway → agent-registry: who does this API key belong to? The secret itself never travels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResolveKey {
    /// SHA-256 of the API key, lower-case hexadecimal.
    pub key_sha256: String,
}

/// Answer to [`ResolveKey`]. A success in either case: a 401 would mean that the gateway's own token was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedKey {
    /// Absent when the key is unknown, expired or revoked.
    pub grant: Option<KeyGrant>,
}

/// A key that is known, neither expired nor revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyGrant {
    /// The key's record.
    pub key_id: ApiKeyId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// What the key may do.
    pub scopes: Scopes,
}

/// Ingest → agent-registry: which of these agents exist in the token's organization?
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindAgents {
    /// Service agent ids, as the caller wrote them.
    pub ids: Vec<String>,
    /// The caller's ids.
    pub external_ids: Vec<String>,
}

/// Answer: every agent found, in no particular order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoundAgents {
    /// The agents.
    pub agents: Vec<AgentFacts>,
}

/// Scoring worker → ingest: the transcripts of these tickets, of whatever organization.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadTranscripts {
    /// The tickets.
    pub tickets: Vec<TicketReference>,
}

/// A ticket and the organization it must belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TicketReference {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
}

/// At most so many tickets in one [`ReadTranscripts`].
pub const MAX_TRANSCRIPTS: usize = 100;

/// Answer: the transcripts that (still) exist, in no particular order. Ingest writes each as a [`StoredTranscript`], and who
/// asks reads it as a [`Transcript`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transcripts<T = Transcript> {
    /// The transcripts.
    pub transcripts: Vec<T>,
    /// Tickets that were not looked at, because the answer would have become too large: ask again.
    #[serde(default)]
    pub unread: Vec<TicketReference>,
    /// Tickets that were deleted: there is nothing to be done for them any more.
    #[serde(default)]
    pub deleted: Vec<TicketReference>,
    /// Tickets whose transcript is stored and cannot be understood.
    #[serde(default)]
    pub unreadable: Vec<UnreadableTranscript>,
}

impl<T> Default for Transcripts<T> {
    fn default() -> Self {
        Self { transcripts: Vec::new(), unread: Vec::new(), deleted: Vec::new(), unreadable: Vec::new() }
    }
}

/// A stored transcript that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableTranscript {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Where it came from, as far as that can be understood.
    pub ticket: TicketFacts,
}

/// Webhooks → scoring-worker: a page of the organizations that want to be told of evaluations, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterestPage {
    /// The organizations.
    pub organizations: Vec<OrganizationId>,
    /// Where the next page goes on; absent on the last one.
    pub next: Option<OrganizationId>,
}

/// Ingest → gateway: whether a ticket of the token's organization was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// When; absent when it was not, and long after it was.
    pub deleted_at: Option<Timestamp>,
}

/// Agent-registry → whoever keeps something: a page of the organizations and their periods, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionPage {
    /// The organizations.
    pub organizations: Vec<OrganizationRetention>,
    /// Where the next page goes on; absent on the last one.
    pub next: Option<OrganizationId>,
}

/// How long things of an organization are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrganizationRetention {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Transcripts, with everything of the ticket but its evaluation.
    pub transcripts: Period,
    /// Evaluations, with their rows in exports to come.
    pub evaluations: Period,
    /// Files of exports; absent: as long as the installation keeps them.
    pub files: Option<Period>,
}

/// One stored transcript. AI authors carry both `id` and `external_id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Where it came from.
    pub ticket: TicketFacts,
    /// The conversation.
    pub conversation: Conversation,
}

/// What is read as a [`Transcript`], for whom passes it on without reading it.
#[derive(Debug, Clone, Serialize)]
pub struct StoredTranscript {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Where it came from.
    pub ticket: TicketFacts,
    /// The conversation.
    pub conversation: StoredConversation,
}

/// What is read as a [`Conversation`].
#[derive(Debug, Clone, Serialize)]
pub struct StoredConversation {
    /// Stable ticket or conversation id from the source system.
    pub ticket_id: String,
    /// Namespace of the messages' external ids.
    pub source: String,
    /// Stable account id within the source system.
    pub source_account_id: Option<String>,
    /// Ticket subject.
    pub subject: Option<String>,
    /// The messages as JSON.
    pub messages: Box<RawValue>,
}

/// Scoring → export: how far the evaluations of the token's organization are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Evaluations that were ever recorded. Each of them is told by one `conversation.evaluated.v1`.
    pub evaluated: i64,
}

/// Header that carries the public base address (scheme and authority) from the gateway to the export service, which
/// builds download addresses with it.
pub const PUBLIC_BASE_URL_HEADER: &str = "x-assay-public-base-url";
