//! The documented columns.

/// Columns of the file `axis`.
pub fn axis() -> Vec<&'static str> {
    let first = [
        "axis_score",
        "axis_band",
        "axis_excluding_handoff",
        "resolution_accuracy",
        "resolution_accuracy_reason",
        "interaction_effort",
        "interaction_effort_reason",
        "handoff_smoothness",
        "handoff_smoothness_reason",
        "handoff_state",
        "confidence",
    ];
    let second = [
        "customer_sentiment_start",
        "customer_sentiment_end",
        "repeated_information_count",
        "duration_seconds",
        "first_response_seconds",
        "language",
        "flags",
        "evidence_message_ids",
    ];
    [&TICKET[..], &first, &COUNTS, &second, &ORIGIN].concat()
}

/// Columns of the file `resolution_audit`.
pub fn audit() -> Vec<&'static str> {
    let first = [
        "resolution_status",
        "resolved_by",
        "resolution_basis",
        "resolution_confidence",
        "resolution_reason",
        "charge_assessment",
        "charge_reasons",
        "handoff_state",
        "handoff_at",
        "first_human_reply_at",
        "customer_requested_human",
        "customer_confirmed",
        "customer_replied_after_last_ai",
    ];
    let second = [
        "last_ai_message_at",
        "last_customer_message_at",
        "observed_silence_hours",
        "axis_score",
        "evidence_message_ids",
        "evidence_quote",
    ];
    [&TICKET[..], &first, &COUNTS, &second, &ORIGIN].concat()
}

/// The columns that both files begin with: the ticket, and who answered it.
const TICKET: [&str; 14] = [
    "ticket_id",
    "external_ticket_id",
    "source",
    "source_account_id",
    "subject",
    "conversation_started_at",
    "conversation_ended_at",
    "imported_at",
    "evaluated_at",
    "evaluation_status",
    "ai_involvement",
    "ai_tools",
    "agent_ids",
    "agent_names",
];

/// Columns in the middle of both files.
const COUNTS: [&str; 5] =
    ["customer_messages", "ai_messages", "human_messages", "internal_comments", "system_events"];

/// The columns that both files end with: where the evaluation comes from.
const ORIGIN: [&str; 5] =
    ["scorer", "scorer_version", "evaluation_id", "transcript_sha256", "schema_version"];
