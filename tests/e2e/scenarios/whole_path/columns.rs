//! The documented columns, word for word.

/// Of `axis`.
pub const AXIS: [&str; 43] = [
    "ticket_id", "external_ticket_id", "source", "source_account_id", "subject", "conversation_started_at",
    "conversation_ended_at", "imported_at", "evaluated_at", "evaluation_status", "ai_involvement", "ai_tools",
    "agent_ids", "agent_names", "axis_score", "axis_band", "axis_excluding_handoff", "resolution_accuracy",
    "resolution_accuracy_reason", "interaction_effort", "interaction_effort_reason", "handoff_smoothness",
    "handoff_smoothness_reason", "handoff_state", "confidence", "customer_messages", "ai_messages",
    "human_messages", "internal_comments", "system_events", "customer_sentiment_start", "customer_sentiment_end",
    "repeated_information_count", "duration_seconds", "first_response_seconds", "language", "flags",
    "evidence_message_ids", "scorer", "scorer_version", "evaluation_id", "transcript_sha256", "schema_version",
];

/// Of `resolution_audit`.
pub const AUDIT: [&str; 43] = [
    "ticket_id", "external_ticket_id", "source", "source_account_id", "subject", "conversation_started_at",
    "conversation_ended_at", "imported_at", "evaluated_at", "evaluation_status", "ai_involvement", "ai_tools",
    "agent_ids", "agent_names", "resolution_status", "resolved_by", "resolution_basis", "resolution_confidence",
    "resolution_reason", "charge_assessment", "charge_reasons", "handoff_state", "handoff_at",
    "first_human_reply_at", "customer_requested_human", "customer_confirmed", "customer_replied_after_last_ai",
    "customer_messages", "ai_messages", "human_messages", "internal_comments", "system_events",
    "last_ai_message_at", "last_customer_message_at", "observed_silence_hours", "axis_score",
    "evidence_message_ids", "evidence_quote", "scorer", "scorer_version", "evaluation_id", "transcript_sha256",
    "schema_version",
];
