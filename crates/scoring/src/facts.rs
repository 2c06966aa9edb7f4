//! Facts of a transcript: counts, times, AI agents, fingerprint.

use assay_contracts::conversation::{AiTool, Conversation, MessageKind};
use assay_contracts::evaluation::{AiInvolvement, AiToolUse, Counts, Timeline};
use sha2::{Digest, Sha256};

use crate::transcript::{Role, Transcript, ai_ids};

const MILLIS_PER_SECOND: i64 = 1_000;
const MILLIS_PER_HOUR: f64 = 3_600_000.0;

/// Items by author.
pub(crate) fn counts(transcript: &Transcript<'_>) -> Counts {
    let mut counts = Counts::default();
    for item in &transcript.items {
        let count = match item.role {
            Role::Customer => &mut counts.customer,
            Role::Ai => &mut counts.ai,
            Role::Human => &mut counts.human,
            Role::System => &mut counts.system,
            Role::Mixed => &mut counts.mixed,
            Role::Note => &mut counts.comment,
        };
        *count += 1;
    }
    counts
}

/// Whether AI agents, humans or both answered the customer.
pub(crate) fn involvement(counts: &Counts) -> AiInvolvement {
    match (counts.ai, counts.human) {
        (0, _) => AiInvolvement::NoAi,
        (_, 0) => AiInvolvement::AiOnly,
        _ => AiInvolvement::AiAssisted,
    }
}

/// The AI agents that wrote to the customer, in order of first appearance. An author may carry the service's id,
/// the caller's, or both; items that share either belong to one agent.
pub(crate) fn ai_tools(transcript: &Transcript<'_>) -> Vec<AiToolUse> {
    let mut uses: Vec<AiToolUse> = Vec::new();
    for item in transcript.items.iter().filter(|item| item.role == Role::Ai) {
        let Some((id, external_id)) = ai_ids(&item.message.author) else {
            continue;
        };
        let same = |one: &Option<String>, other: Option<&str>| other.is_some() && one.as_deref() == other;
        let known = uses
            .iter_mut()
            .find(|tool| same(&tool.agent_id, id) || same(&tool.agent_external_id, external_id));
        match known {
            Some(tool) => add_message(tool, id, external_id, item.message.ai_tool),
            None => uses.push(AiToolUse {
                ai_tool: item.message.ai_tool,
                agent_id: id.map(str::to_owned),
                agent_external_id: external_id.map(str::to_owned),
                messages: 1,
            }),
        }
    }
    uses
}

fn add_message(tool: &mut AiToolUse, id: Option<&str>, external_id: Option<&str>, label: Option<AiTool>) {
    tool.messages += 1;
    tool.ai_tool = tool.ai_tool.or(label);
    tool.agent_id = tool.agent_id.take().or_else(|| id.map(str::to_owned));
    tool.agent_external_id = tool.agent_external_id.take().or_else(|| external_id.map(str::to_owned));
}

/// Times and spans. Internal comments are not replies, but they count for the start, the end and the duration.
pub(crate) fn timeline(transcript: &Transcript<'_>) -> Timeline {
    let (started_at, ended_at) = (transcript.conversation.started_at(), transcript.conversation.ended_at());
    let first_customer = transcript.items.iter().position(|item| item.role == Role::Customer);
    let first_response_seconds = first_customer.and_then(|index| {
        let asked = transcript.item(index)?.message.timestamp;
        let reply = transcript.items.iter().skip(index).find(|item| item.role.is_answer())?;
        Some(reply.message.timestamp.millis_since(asked) / MILLIS_PER_SECOND)
    });
    let last_ai = transcript.items.iter().rposition(|item| item.role == Role::Ai);
    let last_ai_message_at =
        last_ai.and_then(|index| transcript.item(index)).map(|item| item.message.timestamp);
    let customer_replied_after_last_ai =
        last_ai.map(|index| transcript.items.iter().skip(index).any(|item| item.role == Role::Customer));
    let observed_silence_hours = last_ai_message_at
        .filter(|_| customer_replied_after_last_ai == Some(false))
        .map(|last| hundredths(ended_at.millis_since(last) as f64 / MILLIS_PER_HOUR));
    Timeline {
        started_at,
        ended_at,
        duration_seconds: ended_at.millis_since(started_at) / MILLIS_PER_SECOND,
        first_response_seconds,
        last_ai_message_at,
        last_customer_message_at: transcript
            .items
            .iter()
            .rfind(|item| item.role == Role::Customer)
            .map(|item| item.message.timestamp),
        customer_replied_after_last_ai,
        observed_silence_hours,
    }
}

/// Rounded to hundredths, so that equal results are equal bytes.
pub fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// SHA-256 over the conversation, lower-case hexadecimal.
///
/// Every field is written as its length (eight bytes, big-endian) and its bytes, an absent one as the length
/// 2⁶⁴−1: ticket id, source, source account id, subject; then for each item external id, kind, author type,
/// external id of the author, AI tool, timestamp (decimal) and content. Excluded are the ids of AI authors, which
/// the service completes on import, and display names: so a request body and the conversation imported from it have the
/// same fingerprint.
pub(crate) fn transcript_sha256(conversation: &Conversation) -> String {
    // Short fields are buffered: hashing many small slices is slow.
    let (mut hasher, mut fields) = (Sha256::new(), Vec::with_capacity(HASH_BUFFER_BYTES));
    add_field(&mut fields, Some(&conversation.ticket_id));
    add_field(&mut fields, Some(&conversation.source));
    add_field(&mut fields, conversation.source_account_id.as_deref());
    add_field(&mut fields, conversation.subject.as_deref());
    for message in &conversation.messages {
        let author_id = if ai_ids(&message.author).is_some() { None } else { message.author.external_id() };
        add_field(&mut fields, Some(&message.external_id));
        add_field(
            &mut fields,
            Some(match message.kind {
                MessageKind::Message => "message",
                MessageKind::Comment => "comment",
            }),
        );
        add_field(&mut fields, Some(message.author.author_type().as_str()));
        add_field(&mut fields, author_id);
        add_field(&mut fields, message.ai_tool.map(AiTool::as_str));
        add_field(&mut fields, Some(&message.timestamp.as_millis().to_string()));
        add_field(&mut fields, Some(&message.content));
        if fields.len() >= HASH_BUFFER_BYTES / 2 {
            hasher.update(&fields);
            fields.clear();
        }
    }
    hasher.update(&fields);
    hex::encode(hasher.finalize())
}

/// SHA-256 over texts, each with its length before it, lower-case hexadecimal.
pub(crate) fn sha256_of(texts: &[&str]) -> String {
    let mut fields = Vec::new();
    texts.iter().for_each(|text| add_field(&mut fields, Some(text)));
    hex::encode(Sha256::digest(&fields))
}

/// Size of the buffer of fields. It is hashed when half of it is full, so that it seldom grows.
const HASH_BUFFER_BYTES: usize = 8 * 1024;

fn add_field(fields: &mut Vec<u8>, value: Option<&str>) {
    fields.extend_from_slice(&value.map_or(u64::MAX, |value| value.len() as u64).to_be_bytes());
    fields.extend_from_slice(value.unwrap_or("").as_bytes());
}
