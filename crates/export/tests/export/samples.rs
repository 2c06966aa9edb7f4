//! Sample evaluations.

use assay_contracts::agent::AgentFacts;
use assay_contracts::conversation::{AiTool, AuthorType};
use assay_contracts::evaluation::{
    AiInvolvement, AiToolUse, Axis, AxisBand, Charge, ChargeAssessment, ChargeReason, Confidence, Counts,
    Dimension, Dimensions, Effort, Evaluation, EvaluationStatus, Evidence, Flag, Handoff, HandoffDimension,
    HandoffRequester, HandoffState, Resolution, ResolutionBasis, ResolutionStatus, ResolvedBy,
    SCHEMA_VERSION, Score, Scorer, ScorerKind, Sentiment, SentimentLevel, Signal, Timeline,
};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_export::domain::removal::DeletedRow;
use assay_platform::runtime::{new_id, now};
use uuid::Uuid;

/// 2026-11-20T07:00:00.000Z.
pub const STARTED: Timestamp = Timestamp::saturating_from_millis(1_795_158_000_000);

/// An evaluated conversation that started at `started_at`, the first of its organization.
pub fn evaluated(organization_id: OrganizationId, started_at: Timestamp) -> ConversationEvaluated {
    ConversationEvaluated {
        organization_id,
        ticket: ticket(started_at),
        evaluation_id: new_id(),
        evaluated_at: started_at.plus_millis(120_000),
        outcome: EvaluationOutcome::Evaluated { evaluation: Box::new(evaluation(started_at)) },
        sequence: 1,
    }
}

/// The same conversation, evaluated again `millis_later`.
pub fn evaluated_again(
    event: &ConversationEvaluated,
    external_id: &str,
    millis_later: i64,
) -> ConversationEvaluated {
    let mut again = event.clone();
    again.evaluation_id = new_id();
    again.evaluated_at = event.evaluated_at.plus_millis(millis_later);
    again.ticket.external_id = external_id.to_owned();
    again
}

/// The same conversation with a changed evaluation.
pub fn changed(
    mut event: ConversationEvaluated,
    change: impl FnOnce(&mut Evaluation),
) -> ConversationEvaluated {
    if let EvaluationOutcome::Evaluated { evaluation } = &mut event.outcome {
        change(evaluation);
    }
    event
}

/// The deletion of a ticket.
pub fn deletion(organization_id: OrganizationId, ticket_id: TicketId) -> DeletedRow {
    DeletedRow { event_id: new_id(), organization_id, ticket_id, deleted_at: now() }
}

fn ticket(started_at: Timestamp) -> TicketFacts {
    TicketFacts {
        id: new_id(),
        external_id: "T-1001".to_owned(),
        source: "zendesk".to_owned(),
        source_account_id: Some("acct, \"one\"".to_owned()),
        subject: Some("=cmd|' /C calc'!A0".to_owned()),
        started_at,
        ended_at: started_at.plus_millis(61_500),
        imported_at: started_at.plus_millis(90_000),
        agents: vec![AgentFacts {
            id: Uuid::from_u128(0x0199_f5a4_3c1e_7c52_9d0a_5b0f_6b8f_3a11).into(),
            external_id: "bot".to_owned(),
            name: "Bot, the \"first\"".to_owned(),
        }],
    }
}

fn evaluation(started_at: Timestamp) -> Evaluation {
    Evaluation {
        external_ticket_id: "T-1001".to_owned(),
        status: EvaluationStatus::Scored,
        schema_version: SCHEMA_VERSION,
        transcript_sha256: "ab".repeat(32),
        language: "en".to_owned(),
        ai_involvement: AiInvolvement::AiAssisted,
        ai_tools: [Some(AiTool::Intercom), None, Some(AiTool::Intercom)].map(ai_tool_use).to_vec(),
        axis: Some(axis()),
        resolution: Resolution {
            status: ResolutionStatus::Resolved,
            resolved_by: ResolvedBy::Human,
            basis: ResolutionBasis::HumanResolved,
            customer_confirmed: true,
            confidence: Confidence::nearest(0.88),
            reason: "A teammate solved it,\nand the customer said so.".to_owned(),
            evidence: vec![1, 0, 1],
        },
        charge: Charge {
            assessment: ChargeAssessment::Disputed,
            reasons: vec![ChargeReason::HumanResolved, ChargeReason::Escalated],
        },
        handoff: Handoff {
            state: HandoffState::Completed,
            requested_by: Some(HandoffRequester::Customer),
            at: Some(started_at.plus_millis(2_000)),
            first_human_reply_at: Some(started_at.plus_millis(60_000)),
        },
        sentiment: Sentiment {
            start: SentimentLevel::Neutral,
            end: SentimentLevel::Positive,
            frustration_signals: 0,
        },
        effort: Effort { customer_turns: 3, repeated_information: 1, clarifications: 1 },
        counts: Counts { customer: 2, ai: 3, human: 1, comment: 4, system: 5, mixed: 0 },
        timeline: timeline(started_at),
        evidence: vec![quote("msg_2", "thanks"), quote("msg_1", "-- \"done\"")],
        flags: vec![Flag::ShortConversation, Flag::MixedAuthors],
        scorer: Scorer {
            kind: ScorerKind::Builtin,
            version: "1.2.3".to_owned(),
            weights_sha256: "cd".repeat(32),
            judge_model: None,
            judge: None,
        },
    }
}

fn axis() -> Axis {
    let signal =
        |evidence: Vec<usize>| Signal { code: "CUSTOMER_CONFIRMED".to_owned(), effect: 0.8, evidence };
    let dimension = |score, confidence, reason: &str, evidence| Dimension {
        score: Score::nearest(score),
        confidence: Confidence::nearest(confidence),
        reason: reason.to_owned(),
        signals: vec![signal(evidence)],
    };
    Axis {
        score: Score::nearest(4.0),
        band: AxisBand::Good,
        excluding_handoff: Score::nearest(3.5),
        dimensions: Dimensions {
            resolution_accuracy: dimension(3.1, 0.82, "It was solved.", vec![0]),
            interaction_effort: dimension(3.9, 0.41, "+1 step", vec![0, 1]),
            handoff_smoothness: HandoffDimension {
                score: Score::nearest(5.0),
                confidence: Confidence::nearest(0.9),
                reason: "It went well.".to_owned(),
                signals: Vec::new(),
                applicable: true,
                basis: "rules".to_owned(),
            },
        },
    }
}

fn ai_tool_use(ai_tool: Option<AiTool>) -> AiToolUse {
    AiToolUse { ai_tool, agent_id: None, agent_external_id: Some("bot".to_owned()), messages: 1 }
}

fn timeline(started_at: Timestamp) -> Timeline {
    Timeline {
        started_at,
        ended_at: started_at.plus_millis(61_500),
        duration_seconds: 61,
        first_response_seconds: Some(1),
        last_ai_message_at: Some(started_at.plus_millis(3_000)),
        last_customer_message_at: Some(started_at.plus_millis(61_500)),
        customer_replied_after_last_ai: Some(true),
        observed_silence_hours: None,
    }
}

fn quote(message: &str, quote: &str) -> Evidence {
    Evidence {
        message_external_id: message.to_owned(),
        author_type: AuthorType::Contact,
        quote: quote.to_owned(),
        start: 0,
        end: quote.len(),
    }
}
