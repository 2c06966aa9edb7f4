//! What holds for the evaluation of every conversation.

use std::sync::LazyLock;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;
use assay_scoring::Scorer;

static SCORER: LazyLock<Scorer> = LazyLock::new(|| Scorer::builtin().expect("the model ships with the crate"));

/// Evaluates a conversation twice and checks what came out.
pub fn evaluate(conversation: &Conversation) {
    let evaluation = SCORER.evaluate(conversation);
    for evidence in &evaluation.evidence {
        let quoted = conversation.messages.iter().any(|message| {
            message.external_id == evidence.message_external_id
                && message.content.get(evidence.start..evidence.end) == Some(evidence.quote.as_str())
        });
        assert!(quoted && !evidence.quote.is_empty(), "not quoted exactly: {evidence:?}");
    }
    let json = serde_json::to_string(&evaluation).expect("an evaluation is JSON");
    // Scores and confidences outside of their ranges are refused on the way back.
    let read: Evaluation = serde_json::from_str(&json).expect("an evaluation can be read back");
    assert_eq!(read, evaluation);
    let again = serde_json::to_string(&SCORER.evaluate(conversation)).expect("an evaluation is JSON");
    assert_eq!(again, json, "the same conversation, another evaluation");
    let inputs = SCORER.adjustment_inputs(conversation);
    assert!(inputs.iter().all(|input| input.is_finite()), "{inputs:?}");
}
