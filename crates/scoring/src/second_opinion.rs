//! Another reader's opinion on a conversation, as an LLM judge has one, and what it comes to.
//!
//! A reader that understands language is believed: its scores and its verdict stand, whatever this engine reads. What stays
//! over them is about fact, and about nothing else:
//!
//! - Where a message talks to an evaluator, no score is above the built-in's; nor is a charge supported where the built-in
//!   scorer reads that nothing was solved. A model may follow instructions in what it reads.
//! - Where no human wrote, in public or in a note, no human solved it.
//! - Where no AI wrote, there is nothing to charge.
//! - What buyer and vendor agreed on ([`Policy`](crate::Policy)) holds for every reader.
//! - A charge is not supported where the same opinion says that nothing was solved, or that a human did it.
//!
//! What the opinion leaves out is taken from the built-in evaluation, or follows from the rest of the opinion by the rules
//! that the built-in verdict follows, too. Where the two readers differ the [`Ruling`] says so.

use assay_contracts::conversation::{AuthorType, Conversation, Message};
use assay_contracts::evaluation::{
    Charge, ChargeAssessment, ChargeReason, Confidence, Evaluation, ResolutionBasis, ResolutionStatus,
    ResolvedBy, Score,
};

use crate::Scorer;
use crate::audit::{Verdict, charge};
use crate::evaluate::Findings;

/// Points between two readers' scores up to which they mean the same.
const SAME_SCORE: f64 = 1.0;

/// Confidence at most of a resolution on which the two readers differ. Not calibrated: it says that one of them is wrong.
const DISPUTED: f64 = 0.45;

/// Questions to the customer that hold the words of a demand to an evaluator ("rate this chat").
const SURVEYS: [&str; 9] = [
    "how would you rate",
    "how do you rate",
    "would you like to rate",
    "wie würden sie",
    "wie bewerten sie",
    "cómo calificaría",
    "comment évalueriez-vous",
    "como você avalia",
    "您如何评价",
];

/// What stands before the words of the system in an item of several actors.
const SYSTEM_LABELS: [&str; 4] = ["system:", "sistema:", "système:", "系统："];

/// What another reader found. What it left out is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opinion {
    /// Its resolution accuracy.
    pub resolution_accuracy: Score,
    /// Its interaction effort.
    pub interaction_effort: Score,
    /// Its handoff smoothness.
    pub handoff_smoothness: Option<Score>,
    /// Whether it takes the issue for solved.
    pub status: ResolutionStatus,
    /// What that rests on.
    pub basis: ResolutionBasis,
    /// Who solved it.
    pub resolved_by: Option<ResolvedBy>,
    /// Whether it takes a charge for supported.
    pub charge: Option<ChargeAssessment>,
}

/// What stands of an opinion.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// Resolution accuracy.
    pub resolution_accuracy: Score,
    /// Interaction effort.
    pub interaction_effort: Score,
    /// Handoff smoothness; `None` where the opinion has none and the built-in score stays.
    pub handoff_smoothness: Option<Score>,
    /// The resolution and what it means for a charge.
    pub resolution: RuledResolution,
    /// On what this differs from the built-in evaluation.
    pub difference: Difference,
}

/// An opinion's resolution with what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct RuledResolution {
    /// Was the customer's issue solved.
    pub status: ResolutionStatus,
    /// What that rests on.
    pub basis: ResolutionBasis,
    /// Who solved it.
    pub resolved_by: ResolvedBy,
    /// That of the built-in resolution, low where the two differ.
    pub confidence: Confidence,
    /// Whether a charge is supported, with reasons that go with this resolution.
    pub charge: Charge,
}

/// On what two readers differ, the gravest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// On nothing that matters.
    Nothing,
    /// By more than a point in a score.
    Scores,
    /// On what a charge rests on: status, solver, or the charge itself.
    Charge,
}

impl Scorer {
    /// What another reader's opinion comes to. `builtin` is this scorer's evaluation of the same conversation.
    pub fn rule_on(&self, conversation: &Conversation, builtin: &Evaluation, opinion: Opinion) -> Ruling {
        let subject_talks = self.transcript(conversation).subject() != conversation.subject.as_deref();
        let is_talked_to = subject_talks || self.talks_to_evaluator(conversation).contains(&true);
        let dimensions = builtin.axis.as_ref().map(|axis| &axis.dimensions);
        let own = dimensions.filter(|_| is_talked_to);
        let at_most = |given: Score, own: Option<Score>| own.map_or(given, |own| given.min(own));
        let handoff = own.map(|own| own.handoff_smoothness.score);
        let mut ruling = Ruling {
            resolution_accuracy: at_most(
                opinion.resolution_accuracy,
                own.map(|own| own.resolution_accuracy.score),
            ),
            interaction_effort: at_most(
                opinion.interaction_effort,
                own.map(|own| own.interaction_effort.score),
            ),
            handoff_smoothness: opinion.handoff_smoothness.map(|given| at_most(given, handoff)),
            resolution: self.resolution(conversation, builtin, opinion),
            difference: Difference::Nothing,
        };
        if is_talked_to && builtin.resolution.status == ResolutionStatus::NotResolved {
            review_if_supported(&mut ruling.resolution.charge);
        }
        ruling.difference = difference(builtin, &ruling);
        ruling
    }

    /// For each message of the conversation, whether it talks to an evaluator: then nothing in it is evidence.
    pub fn talks_to_evaluator(&self, conversation: &Conversation) -> Vec<bool> {
        let flagged = self.flagged(conversation);
        if !flagged.contains(&true) {
            return flagged;
        }
        let mut plain = conversation.clone();
        for (message, _) in plain.messages.iter_mut().zip(&flagged).filter(|(_, flagged)| **flagged) {
            message.content = without_harmless_words(message);
        }
        let still_flagged = self.flagged(&plain);
        flagged.into_iter().zip(still_flagged).map(|(before, after)| before && after).collect()
    }

    fn flagged(&self, conversation: &Conversation) -> Vec<bool> {
        self.transcript(conversation).items.iter().map(|item| item.is_injected).collect()
    }

    fn resolution(
        &self,
        conversation: &Conversation,
        builtin: &Evaluation,
        opinion: Opinion,
    ) -> RuledResolution {
        let findings = Findings::of(self, conversation);
        let Findings { course, handoff, doubts, .. } = &findings;
        let by_rules = findings.verdict_of(opinion.status, opinion.basis).under(self.policy, handoff);
        let invents_human = opinion.invents_human(conversation);
        let verdict = opinion.verdict(by_rules, invents_human);
        let involvement = builtin.ai_involvement;
        let derived = charge(involvement, &verdict, course, handoff, doubts, self.policy);
        // An assessment of another verdict than the one that stands is none.
        let is_about_it = opinion.status == verdict.status && !invents_human;
        let has_charge = derived.assessment != ChargeAssessment::NotApplicable;
        let given = opinion.charge.filter(|given| *given != ChargeAssessment::NotApplicable);
        let mut charge = match given.filter(|_| is_about_it && has_charge) {
            Some(given) => assessed(derived, given),
            None => derived,
        };
        if verdict.status == ResolutionStatus::NotResolved || verdict.resolved_by == ResolvedBy::Human {
            review_if_supported(&mut charge);
        }
        let confidence = confidence(builtin, &verdict);
        RuledResolution {
            status: verdict.status,
            basis: verdict.basis,
            resolved_by: verdict.resolved_by,
            confidence,
            charge,
        }
    }
}

impl Opinion {
    /// Whether the opinion says that a human solved the issue where no human wrote: neither to the customer nor in a note,
    /// neither alone nor among several actors.
    pub fn invents_human(&self, conversation: &Conversation) -> bool {
        let is_human = |message: &Message| {
            matches!(message.author.author_type(), AuthorType::Teammate | AuthorType::Mixed)
        };
        self.names_human() && !conversation.messages.iter().any(is_human)
    }

    fn names_human(&self) -> bool {
        self.resolved_by == Some(ResolvedBy::Human) || self.basis == ResolutionBasis::HumanResolved
    }

    /// The verdict by the rules with the opinion's solver in it, as far as it can have been the one.
    fn verdict(&self, by_rules: Verdict, invents_human: bool) -> Verdict {
        let resolved_by = match self.resolved_by {
            _ if self.status == ResolutionStatus::NotResolved || invents_human => by_rules.resolved_by,
            None if self.names_human() => ResolvedBy::Human,
            None => by_rules.resolved_by,
            // Somebody solved what is solved.
            Some(ResolvedBy::None) if self.status == ResolutionStatus::Resolved => by_rules.resolved_by,
            Some(given) => given,
        };
        let by_human = resolved_by == ResolvedBy::Human;
        let basis = match self.basis {
            _ if by_human && by_rules.status == ResolutionStatus::Resolved => ResolutionBasis::HumanResolved,
            ResolutionBasis::HumanResolved if !by_human => ResolutionBasis::AnswerGiven,
            given => given,
        };
        let by_somebody_else = matches!(resolved_by, ResolvedBy::None | ResolvedBy::Customer);
        let human_work_in_notes = by_rules.human_work_in_notes && !by_somebody_else;
        Verdict { resolved_by, basis, human_work_in_notes, ..by_rules }
    }
}

/// The message in lower case without words that look like talk to an evaluator and are none.
fn without_harmless_words(message: &Message) -> String {
    let text = message.content.to_lowercase();
    let harmless: &[&str] = match message.author.author_type() {
        AuthorType::Mixed => &SYSTEM_LABELS,
        AuthorType::Ai | AuthorType::Teammate => &SURVEYS,
        AuthorType::Contact | AuthorType::System => &[],
    };
    harmless.iter().fold(text, |text, words| text.replace(words, ""))
}

/// The charge as the opinion assesses it. Whoever supports one against the rules does not share what the rules have against
/// it, but for what the verdict itself says.
fn assessed(derived: Charge, given: ChargeAssessment) -> Charge {
    let against_rules =
        given == ChargeAssessment::Supported && derived.assessment != ChargeAssessment::Supported;
    let mut reasons = derived.reasons;
    if against_rules {
        reasons.retain(|reason| matches!(reason, ChargeReason::SilenceOnly | ChargeReason::Partial));
    }
    Charge { assessment: given, reasons }
}

/// A person should look before the charge counts as supported.
fn review_if_supported(charge: &mut Charge) {
    if charge.assessment == ChargeAssessment::Supported {
        charge.assessment = ChargeAssessment::Review;
    }
}

fn confidence(builtin: &Evaluation, verdict: &Verdict) -> Confidence {
    let Evaluation { resolution, .. } = builtin;
    if verdict.status == resolution.status && verdict.resolved_by == resolution.resolved_by {
        resolution.confidence
    } else {
        resolution.confidence.min(Confidence::nearest(DISPUTED))
    }
}

fn difference(builtin: &Evaluation, ruling: &Ruling) -> Difference {
    let RuledResolution { status, resolved_by, charge, .. } = &ruling.resolution;
    let same_charge = *status == builtin.resolution.status
        && *resolved_by == builtin.resolution.resolved_by
        && charge.assessment == builtin.charge.assessment;
    if !same_charge {
        return Difference::Charge;
    }
    let Some(own) = builtin.axis.as_ref().map(|axis| &axis.dimensions) else { return Difference::Nothing };
    let handoff = ruling.handoff_smoothness.unwrap_or(own.handoff_smoothness.score);
    let pairs = [
        (ruling.resolution_accuracy, own.resolution_accuracy.score),
        (ruling.interaction_effort, own.interaction_effort.score),
        (handoff, own.handoff_smoothness.score),
    ];
    let far = |(one, other): &(Score, Score)| (one.value() - other.value()).abs() > SAME_SCORE + f64::EPSILON;
    if pairs.iter().any(far) { Difference::Scores } else { Difference::Nothing }
}
