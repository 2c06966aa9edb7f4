//! The verdict on a conversation: scores, reasons and signals, with the quotes that they point to.

use assay_contracts::evaluation::{
    Axis, Charge, Confidence, Dimension, Evaluation, HandoffState, Resolution, Score, Signal,
};

use crate::domain::{
    PageTime, capitalized, format_duration, format_signed, reason_meaning, resolution_words, score_percent,
    words,
};

/// What the page shows beside the transcript.
pub(crate) struct Verdict {
    pub(crate) axis: Option<AxisPart>,
    pub(crate) charge: ChargePart,
    pub(crate) resolution: ResolutionPart,
    pub(crate) parts: Vec<ScorePart>,
    /// HTML, because it contains a `<time>`; it contains no text from outside and needs no escaping.
    pub(crate) handoff: String,
    /// Name and text.
    pub(crate) details: Vec<(&'static str, String)>,
    pub(crate) scorer: Fingerprinted,
    pub(crate) transcript: Fingerprinted,
}

pub(crate) struct AxisPart {
    pub(crate) score: Score,
    pub(crate) band: &'static str,
    pub(crate) without_handoff: Score,
    /// Position on the scale, in percent.
    pub(crate) position: String,
}

pub(crate) struct ChargePart {
    pub(crate) code: &'static str,
    pub(crate) text: String,
    /// Code and meaning.
    pub(crate) reasons: Vec<(&'static str, &'static str)>,
}

pub(crate) struct ResolutionPart {
    pub(crate) text: String,
    pub(crate) reason: String,
    pub(crate) quotes: Vec<usize>,
    pub(crate) confidence: String,
    pub(crate) basis: String,
}

/// One of the three parts of AXIS.
pub(crate) struct ScorePart {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// `None` if the part is not applicable: the handoff of a conversation without one.
    pub(crate) band: Option<&'static str>,
    /// Counts in AXIS even if the part is not applicable.
    pub(crate) score: Score,
    pub(crate) reason: String,
    pub(crate) confidence: String,
    pub(crate) signals: Vec<SignalRow>,
}

pub(crate) struct SignalRow {
    pub(crate) id: String,
    pub(crate) code: String,
    pub(crate) text: String,
    pub(crate) effect: String,
    pub(crate) quotes: Vec<usize>,
}

/// A text, and a hash of which the page shows the beginning.
pub(crate) struct Fingerprinted {
    pub(crate) text: String,
    pub(crate) sha256: String,
}

impl Fingerprinted {
    pub(crate) fn short_hash(&self) -> &str {
        self.sha256.get(..12).unwrap_or(&self.sha256)
    }
}

/// A reason that points to quotes.
pub(crate) struct Reason {
    pub(crate) anchor: String,
    pub(crate) text: String,
    /// Indices into the evaluation's evidence.
    pub(crate) evidence: Vec<usize>,
}

/// Id of the part of the handoff on the page.
const HANDOFF: &str = "h";

/// The three parts of AXIS: id on the page, short name, title, dimension.
fn dimensions(axis: &Axis) -> [(&'static str, &'static str, &'static str, Dimension); 3] {
    let dimensions = &axis.dimensions;
    let handoff = &dimensions.handoff_smoothness;
    let handoff = Dimension {
        score: handoff.score,
        confidence: handoff.confidence,
        reason: handoff.reason.clone(),
        signals: handoff.signals.clone(),
    };
    [
        ("r", "RA", "Resolution accuracy", dimensions.resolution_accuracy.clone()),
        ("i", "IE", "Interaction effort", dimensions.interaction_effort.clone()),
        (HANDOFF, "HS", "Handoff smoothness", handoff),
    ]
}

fn anchor(id: &str, index: usize, signal: &Signal) -> String {
    let letters = |code: &str| code.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    format!("s-{id}-{index}-{}", letters(&signal.code.to_lowercase()))
}

/// All reasons in the order of the page.
pub(crate) fn reasons(evaluation: &Evaluation) -> Vec<Reason> {
    let mut reasons = vec![Reason {
        anchor: "s-resolution".to_owned(),
        text: "resolution".to_owned(),
        evidence: evaluation.resolution.evidence.clone(),
    }];
    for (id, short, _, dimension) in evaluation.axis.iter().flat_map(dimensions) {
        reasons.extend(dimension.signals.iter().enumerate().map(|(index, signal)| Reason {
            anchor: anchor(id, index, signal),
            text: format!("{short} {}", words(&signal.code)),
            evidence: signal.evidence.clone(),
        }));
    }
    reasons
}

/// The verdict; `number_of` maps an index in the evidence to the number of its quote on the page.
pub(crate) fn verdict(evaluation: &Evaluation, number_of: &dyn Fn(usize) -> Option<usize>) -> Verdict {
    let numbers = |evidence: &[usize]| {
        let mut numbers: Vec<usize> = evidence.iter().filter_map(|index| number_of(*index)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let has_handoff = |axis: &Axis| axis.dimensions.handoff_smoothness.applicable;
    let is_applicable = |id: &str| id != HANDOFF || evaluation.axis.as_ref().is_some_and(has_handoff);
    let parts = evaluation.axis.iter().flat_map(dimensions).map(|(id, _, title, dimension)| ScorePart {
        id,
        title,
        band: is_applicable(id).then(|| band_of(dimension.score)),
        score: dimension.score,
        reason: dimension.reason,
        confidence: confidence(dimension.confidence),
        signals: dimension
            .signals
            .iter()
            .enumerate()
            .map(|(index, signal)| SignalRow {
                id: anchor(id, index, signal),
                code: signal.code.clone(),
                text: capitalized(&words(&signal.code)),
                effect: format_signed(signal.effect, 2),
                quotes: numbers(&signal.evidence),
            })
            .collect(),
    });
    Verdict {
        axis: evaluation.axis.as_ref().map(|axis| AxisPart {
            score: axis.score,
            band: axis.band.as_str(),
            without_handoff: axis.excluding_handoff,
            position: format!("{:.2}", score_percent(axis.score.value())),
        }),
        charge: charge(&evaluation.charge),
        resolution: resolution(&evaluation.resolution, numbers(&evaluation.resolution.evidence)),
        parts: parts.collect(),
        handoff: handoff(evaluation),
        details: details(evaluation),
        scorer: Fingerprinted { text: scorer(evaluation), sha256: evaluation.scorer.weights_sha256.clone() },
        transcript: Fingerprinted {
            text: "SHA-256".to_owned(),
            sha256: evaluation.transcript_sha256.clone(),
        },
    }
}

fn charge(charge: &Charge) -> ChargePart {
    ChargePart {
        code: charge.assessment.as_str(),
        text: words(charge.assessment.as_str()),
        reasons: charge.reasons.iter().map(|reason| (reason.as_str(), reason_meaning(*reason))).collect(),
    }
}

fn resolution(resolution: &Resolution, quotes: Vec<usize>) -> ResolutionPart {
    let confirmed = if resolution.customer_confirmed {
        "confirmed by the customer"
    } else {
        "not confirmed by the customer"
    };
    ResolutionPart {
        text: resolution_words(resolution.status, resolution.resolved_by),
        reason: resolution.reason.clone(),
        quotes,
        confidence: confidence(resolution.confidence),
        basis: format!("{}; {confirmed}", words(resolution.basis.as_str())),
    }
}

fn details(evaluation: &Evaluation) -> Vec<(&'static str, String)> {
    let timeline = &evaluation.timeline;
    let counts = &evaluation.counts;
    let counted = [
        ("customer", counts.customer),
        ("AI", counts.ai),
        ("teammate", counts.human),
        ("comment", counts.comment),
        ("event", counts.system),
        ("mixed", counts.mixed),
    ];
    let counted: Vec<String> = counted
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| format!("{name} {number}"))
        .collect();
    let flags: Vec<String> = evaluation.flags.iter().map(|flag| words(flag.as_str())).collect();
    let effort = &evaluation.effort;
    let sentiment = &evaluation.sentiment;
    vec![
        (
            "First response",
            timeline.first_response_seconds.map_or_else(|| "none".to_owned(), format_duration),
        ),
        ("Duration", format_duration(timeline.duration_seconds)),
        ("Messages", counted.join(", ")),
        (
            "Effort",
            format!(
                "customer wrote {} times, repeated {}, was asked back {}",
                effort.customer_turns, effort.repeated_information, effort.clarifications
            ),
        ),
        (
            "Sentiment",
            format!(
                "{} at the start, {} at the end",
                words(sentiment.start.as_str()),
                words(sentiment.end.as_str())
            ),
        ),
        ("Flags", if flags.is_empty() { "none".to_owned() } else { flags.join(", ") }),
    ]
}

fn handoff(evaluation: &Evaluation) -> String {
    let handoff = &evaluation.handoff;
    if handoff.state == HandoffState::None {
        return "none".to_owned();
    }
    let mut text = words(handoff.state.as_str());
    if let Some(by) = handoff.requested_by {
        text = format!("{text}, asked for by the {}", words(by.as_str()));
    }
    if let Some(at) = handoff.at {
        text = format!("{text}, {}", PageTime::short(at));
    }
    if let Some((at, reply)) = handoff.at.zip(handoff.first_human_reply_at) {
        text = format!("{text}; first human reply after {}", format_duration(reply.millis_since(at) / 1_000));
    }
    text
}

fn scorer(evaluation: &Evaluation) -> String {
    let scorer = &evaluation.scorer;
    match &scorer.judge_model {
        Some(model) => format!("{} {}, judge {model}", scorer.kind.as_str(), scorer.version),
        None => format!("{} {}", scorer.kind.as_str(), scorer.version),
    }
}

fn confidence(confidence: Confidence) -> String {
    let word = match confidence.value() {
        value if value >= 0.8 => "high",
        value if value >= 0.5 => "medium",
        _ => "low",
    };
    format!("{word} {confidence}")
}

fn band_of(score: Score) -> &'static str {
    assay_contracts::evaluation::AxisBand::of_score(score).as_str()
}
