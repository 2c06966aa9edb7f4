//! The resolution audit: whether the issue was solved, by whom, and whether a vendor's charge is supported.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::score::Confidence;
use crate::named_enum::named_enum;
use crate::time::Timestamp;

/// Whether the customer's issue was solved, and by whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resolution {
    /// Was the customer's issue solved.
    pub status: ResolutionStatus,
    /// Who solved it.
    pub resolved_by: ResolvedBy,
    /// Basis of the verdict.
    pub basis: ResolutionBasis,
    /// Whether the customer said that the issue is solved.
    pub customer_confirmed: bool,
    /// 0–1.
    #[schema(value_type = f64, minimum = 0.0, maximum = 1.0)]
    pub confidence: Confidence,
    /// One or two plain sentences.
    pub reason: String,
    /// Indices into the evaluation's `evidence`.
    pub evidence: Vec<usize>,
}

named_enum!(
    /// Was the customer's issue solved.
    ResolutionStatus {
        /// Yes.
        Resolved = "resolved",
        /// In part, or without confirmation.
        Partial = "partial",
        /// No.
        NotResolved = "not_resolved",
    }
);

named_enum!(
    /// Who solved the issue.
    ResolvedBy {
        /// An AI agent.
        Ai = "ai",
        /// A human teammate.
        Human = "human",
        /// The customer alone, without the given answers.
        Customer = "customer",
        /// The issue was not solved.
        None = "none",
        /// It cannot be determined.
        Unknown = "unknown",
    }
);

named_enum!(
    /// Basis of a resolution verdict.
    ResolutionBasis {
        /// The customer said so.
        CustomerConfirmed = "customer_confirmed",
        /// The requested action was carried out.
        ActionCompleted = "action_completed",
        /// A substantive answer was given, and the verdict has no stronger basis.
        AnswerGiven = "answer_given",
        /// The customer did not write again after a substantive answer.
        SilenceOnly = "silence_only",
        /// A human teammate solved it.
        HumanResolved = "human_resolved",
        /// A handoff to a human was made or promised, and the transcript shows no solution.
        Escalated = "escalated",
        /// The customer ended in doubt, rejection, repetition or a request for a human, or gave up.
        CustomerRejected = "customer_rejected",
        /// No substantive answer was given.
        NoAnswer = "no_answer",
    }
);

/// Whether an AI vendor's charge for the conversation is supported by the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Charge {
    /// The assessment.
    pub assessment: ChargeAssessment,
    /// Reasons of the assessment.
    pub reasons: Vec<ChargeReason>,
}

named_enum!(
    /// Whether a charge is supported.
    ChargeAssessment {
        /// The transcript supports a charge.
        Supported = "supported",
        /// A person should review the charge.
        Review = "review",
        /// The transcript contradicts a charge.
        Disputed = "disputed",
        /// No AI took part: nothing to charge.
        NotApplicable = "not_applicable",
    }
);

named_enum!(
    /// A finding that speaks against a charge.
    ChargeReason {
        /// A human teammate solved the issue.
        HumanResolved = "HUMAN_RESOLVED",
        /// The conversation was passed on to a human, or that was promised.
        Escalated = "ESCALATED",
        /// The customer ended in doubt, rejection, repetition or a request for a human, or gave up.
        CustomerRejected = "CUSTOMER_REJECTED",
        /// An answer was given, and the customer did not confirm that it helped.
        SilenceOnly = "SILENCE_ONLY",
        /// The AI gave no substantive answer.
        NoSubstantiveAnswer = "NO_SUBSTANTIVE_ANSWER",
        /// The customer asked for a human and got none.
        HumanRequestIgnored = "HUMAN_REQUEST_IGNORED",
        /// The customer came back with the same issue.
        Reopened = "REOPENED",
        /// Solved in part, or accepted without a statement that the answer helped.
        Partial = "PARTIAL",
        /// A human took over without being asked for or announced, and the customer was not unhappy.
        PlannedHandoff = "PLANNED_HANDOFF",
        /// A human wrote internal comments and nothing that the customer saw: the work may have been theirs.
        HumanWorkInNotes = "HUMAN_WORK_IN_NOTES",
    }
);

/// The handoff from AI to human.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Handoff {
    /// Outcome of the handoff.
    pub state: HandoffState,
    /// Who first asked for a handoff.
    pub requested_by: Option<HandoffRequester>,
    /// When a handoff was first asked for, promised or made.
    #[schema(value_type = Option<i64>)]
    pub at: Option<Timestamp>,
    /// When a human first wrote to the customer after an AI message.
    #[schema(value_type = Option<i64>)]
    pub first_human_reply_at: Option<Timestamp>,
}

named_enum!(
    /// Outcome of a handoff.
    HandoffState {
        /// None was asked for, offered or made.
        None = "none",
        /// A human took over.
        Completed = "completed",
        /// The customer asked for a human, or one was promised, and none came.
        RequestedNotCompleted = "requested_not_completed",
        /// The AI offered a human and the customer did not want one.
        OfferedNotTaken = "offered_not_taken",
    }
);

named_enum!(
    /// Who asked for a handoff.
    HandoffRequester {
        /// The customer.
        Customer = "customer",
        /// The AI agent.
        Ai = "ai",
        /// A system event or a human.
        System = "system",
    }
);

/// The customer's sentiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sentiment {
    /// In the first third of the customer's messages.
    pub start: SentimentLevel,
    /// At the end.
    pub end: SentimentLevel,
    /// Messages of the customer that show frustration.
    pub frustration_signals: u32,
}

named_enum!(
    /// Level of a sentiment.
    SentimentLevel {
        /// Friendly or content.
        Positive = "positive",
        /// Matter of fact.
        Neutral = "neutral",
        /// Annoyed or angry.
        Negative = "negative",
    }
);

named_enum!(
    /// A warning about the transcript or the evaluation.
    Flag {
        /// A message or the subject addresses an evaluator; the built-in scorer does not read that text.
        PossiblePromptInjection = "POSSIBLE_PROMPT_INJECTION",
        /// The corpus has no conversations in the customer's language.
        UnsupportedLanguage = "UNSUPPORTED_LANGUAGE",
        /// Too little customer text for a reliable evaluation.
        ShortConversation = "SHORT_CONVERSATION",
        /// The transcript holds items with several unresolved actors.
        MixedAuthors = "MIXED_AUTHORS",
        /// The transcript seems to begin or end in the middle.
        TruncatedTranscript = "TRUNCATED_TRANSCRIPT",
        /// No AI agent wrote to the customer.
        NoAiMessages = "NO_AI_MESSAGES",
        /// The customer did not write.
        NoCustomerMessages = "NO_CUSTOMER_MESSAGES",
        /// The judge and the built-in scorer differ on status, solver or charge, or by more than a point in a score.
        JudgeDisagrees = "JUDGE_DISAGREES",
    }
);
