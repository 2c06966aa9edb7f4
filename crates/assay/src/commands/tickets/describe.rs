//! Formats an evaluation for a terminal: scores, reasons and quotes.

use assay_contracts::conversation::AuthorType;
use assay_contracts::evaluation::{
    Axis, Confidence, Evaluation, Evidence, HandoffState, Score, Signal, TicketEvaluation, UnscoredStatus,
};
use assay_contracts::ticket::Ticket;

use crate::terminal::one_line;

/// Upper limit of quotes shown with a score, the strongest first.
const MAX_QUOTES: usize = 3;

pub fn ticket_text(ticket: &Ticket) -> String {
    let mut page = Page::default();
    page.field("Ticket", &format!("{} ({})", ticket.id, one_line(&ticket.external_id)));
    page.field("Subject", if ticket.subject.is_empty() { "none" } else { &ticket.subject });
    page.field("Imported", &ticket.created_at.to_string());
    page.text
}

pub fn evaluation_text(evaluation: &TicketEvaluation) -> String {
    let mut page = Page::default();
    match evaluation {
        TicketEvaluation::Done { id, created_at, evaluation, .. } => {
            page.field("Evaluation", &format!("{id}, {created_at}"));
            page.evaluation(evaluation);
        }
        TicketEvaluation::Unscored { status: UnscoredStatus::Pending, .. } => {
            page.field("Evaluation", "pending: it comes within seconds, ask again");
        }
        TicketEvaluation::Unscored { status: UnscoredStatus::Failed, error_message, .. } => {
            let message = error_message.as_deref().unwrap_or("without an explanation");
            page.field("Evaluation", &format!("failed: {message}"));
        }
    }
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// Removes control characters: all untrusted text must be written by this method.
    fn line(&mut self, indent: usize, text: &str) {
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(one_line(text).trim_end());
        self.text.push('\n');
    }

    fn field(&mut self, name: &str, value: &str) {
        self.line(0, &format!("{name:12} {value}"));
    }

    fn evaluation(&mut self, evaluation: &Evaluation) {
        self.conversation(evaluation);
        self.text.push('\n');
        match &evaluation.axis {
            Some(axis) => self.axis(axis, &evaluation.evidence),
            None => self.field("AXIS", "not applicable: no AI message, or no customer message"),
        }
        self.text.push('\n');
        self.audit(evaluation);
        self.text.push('\n');
        let flags: Vec<&str> = evaluation.flags.iter().map(|flag| flag.as_str()).collect();
        self.field("Flags", if flags.is_empty() { "none".to_owned() } else { flags.join(", ") }.as_str());
        let scorer = &evaluation.scorer;
        let model = scorer.judge_model.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
        self.field("Scorer", &format!("{} {}{model}", scorer.kind.as_str(), scorer.version));
    }

    fn conversation(&mut self, evaluation: &Evaluation) {
        let (timeline, counts) = (&evaluation.timeline, &evaluation.counts);
        self.field("Conversation", &format!("{} to {}", timeline.started_at, timeline.ended_at));
        if let Some(seconds) = timeline.first_response_seconds {
            self.field("First answer", &format!("after {}", duration_text(seconds)));
        }
        let items = [
            (counts.customer, "customer"),
            (counts.ai, "AI"),
            (counts.human, "human"),
            (counts.comment, "internal"),
            (counts.system, "system"),
            (counts.mixed, "mixed"),
        ];
        let items: Vec<String> = items
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        self.field("Messages", &items.join(", "));
        let agents: Vec<String> = evaluation
            .ai_tools
            .iter()
            .map(|tool| {
                let agent =
                    tool.agent_external_id.as_deref().or(tool.agent_id.as_deref()).unwrap_or("unknown");
                tool.ai_tool.map_or_else(|| agent.to_owned(), |label| format!("{agent} ({})", label.as_str()))
            })
            .collect();
        let involved = evaluation.ai_involvement.as_str();
        let agents = if agents.is_empty() { String::new() } else { format!(": {}", agents.join(", ")) };
        self.field("AI", &format!("{involved}{agents}"));
    }

    fn axis(&mut self, axis: &Axis, evidence: &[Evidence]) {
        self.field(
            "AXIS",
            &format!("{} {}, {} without handoff", axis.score, axis.band.as_str(), axis.excluding_handoff),
        );
        let dimensions = &axis.dimensions;
        let accuracy = &dimensions.resolution_accuracy;
        self.dimension("Resolution accuracy", accuracy.score, accuracy.confidence, &accuracy.reason);
        self.quotes(evidence_of(&accuracy.signals), evidence);
        let effort = &dimensions.interaction_effort;
        self.dimension("Interaction effort", effort.score, effort.confidence, &effort.reason);
        self.quotes(evidence_of(&effort.signals), evidence);
        let handoff = &dimensions.handoff_smoothness;
        self.dimension("Handoff smoothness", handoff.score, handoff.confidence, &handoff.reason);
        self.quotes(evidence_of(&handoff.signals), evidence);
    }

    fn dimension(&mut self, name: &str, score: Score, confidence: Confidence, reason: &str) {
        self.line(2, &format!("{name:20} {score}  confidence {:.2}", confidence.value()));
        self.line(4, reason);
    }

    fn audit(&mut self, evaluation: &Evaluation) {
        let resolution = &evaluation.resolution;
        self.field(
            "Resolution",
            &format!(
                "{} by {}, {}, confidence {:.2}",
                resolution.status.as_str(),
                resolution.resolved_by.as_str(),
                resolution.basis.as_str(),
                resolution.confidence.value()
            ),
        );
        self.line(4, &resolution.reason);
        self.quotes(resolution.evidence.clone(), &evaluation.evidence);
        let reasons: Vec<&str> = evaluation.charge.reasons.iter().map(|reason| reason.as_str()).collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
        self.field("Charge", &format!("{}{reasons}", evaluation.charge.assessment.as_str()));
        let handoff = &evaluation.handoff;
        let by = handoff.requested_by.filter(|_| handoff.state != HandoffState::None);
        let by = by.map(|by| format!(", asked for by {}", by.as_str())).unwrap_or_default();
        self.field("Handoff", &format!("{}{by}", handoff.state.as_str()));
        let sentiment = &evaluation.sentiment;
        self.field(
            "Sentiment",
            &format!("{} at first, {} at the end", sentiment.start.as_str(), sentiment.end.as_str()),
        );
    }

    fn quotes(&mut self, indices: Vec<usize>, evidence: &[Evidence]) {
        for quote in indices.iter().filter_map(|index| evidence.get(*index)).take(MAX_QUOTES) {
            let author = match quote.author_type {
                AuthorType::Contact => "customer",
                AuthorType::Teammate => "human",
                AuthorType::Ai => "AI",
                AuthorType::System => "system",
                AuthorType::Mixed => "mixed",
            };
            self.line(4, &format!("> {} ({author}, {})", quote.quote, quote.message_external_id));
        }
    }
}

/// Indices of the evidence for the signals, without duplicates, in order.
fn evidence_of(signals: &[Signal]) -> Vec<usize> {
    let mut indices = Vec::new();
    for index in signals.iter().flat_map(|signal| &signal.evidence) {
        if !indices.contains(index) {
            indices.push(*index);
        }
    }
    indices
}

/// A duration in its two largest units.
fn duration_text(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::conversation::Conversation;
    use assay_contracts::time::Timestamp;
    use assay_platform::runtime::new_id;
    use assay_scoring::Scorer;
    use serde_json::{Value, json};

    use super::*;

    fn text_with_answer_by(author: &Value) -> String {
        let message = |number: i64, author: &Value, content: &str| json!({"external_id": format!("m-{number}"), "timestamp": number * 90_000, "author": author, "content": content});
        let ann = json!({"type": "contact", "external_id": "ann"});
        let body = json!({"ticket_id": "T-1", "messages": [
            message(0, &ann, "Can I still change my\u{1b}[2J delivery address?"),
            message(1, author, "Yes. I have changed it to 12 Mill Lane, as in your account."),
            message(2, &ann, "Perfect, that solved it, thank you!"),
        ]});
        let conversation = Conversation::parse(body.to_string().as_bytes()).unwrap();
        let evaluation = Box::new(Scorer::builtin().unwrap().evaluate(&conversation));
        let (id, ticket_id, created_at) = (new_id(), new_id(), Timestamp::MIN);
        evaluation_text(&TicketEvaluation::Done { id, ticket_id, created_at, evaluation })
    }

    #[test]
    fn scores_are_shown_with_reasons_and_quotes() {
        let text = text_with_answer_by(&json!({"type": "ai", "external_id": "bot"}));
        for part in [
            "First answer after 1 min 30 s\n",
            "Messages     2 customer, 1 AI\n",
            "AI           ai_only: bot\n",
            "\n  Resolution accuracy  ",
            "> Perfect, that solved it, thank you! (customer, m-2)\n",
            "Resolution   resolved by ai, customer_confirmed, confidence ",
            "Charge       supported\n",
            "Scorer       builtin ",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "control character:\n{text}");
    }

    #[test]
    fn conversation_without_ai_has_audit_but_no_axis() {
        let text = text_with_answer_by(&json!({"type": "teammate", "external_id": "bob"}));
        assert!(text.contains("AXIS         not applicable"), "{text}");
        assert!(text.contains("Charge       not_applicable"), "{text}");
    }

    #[test]
    fn unscored_ticket_shows_reason() {
        let unscored =
            |status, error_message| TicketEvaluation::Unscored { ticket_id: new_id(), status, error_message };
        let pending = evaluation_text(&unscored(UnscoredStatus::Pending, None));
        assert!(pending.contains("pending"), "{pending}");
        let failed = evaluation_text(&unscored(UnscoredStatus::Failed, Some("too late".to_owned())));
        assert!(failed.contains("failed: too late"), "{failed}");
    }
}
