//! What holds for the evaluation of every conversation.
//!
//! The model that ships is slow: it scores about one in [`FULL_MODEL_EVERY`] conversations, and a small model scores the others.
//! About one in [`REPEATED_EVERY`] is scored again.

#[path = "small_model.rs"]
mod small_model;

use std::sync::LazyLock;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;
use assay_scoring::Scorer;

static MODEL: &[u8] = include_bytes!("../../crates/scoring/model/reader.bin");
static FULL: LazyLock<Scorer> = LazyLock::new(|| Scorer::builtin().expect("the model ships with the crate"));
static SMALL: LazyLock<Scorer> =
    LazyLock::new(|| Scorer::with_model(&small_model::small_model(MODEL)).expect("the small model is one"));

const FULL_MODEL_EVERY: usize = 16_384;
/// Divides [`FULL_MODEL_EVERY`]: what the whole model scores is always scored again.
const REPEATED_EVERY: usize = 16;

/// A hash of the texts. What is done with a conversation depends on it alone, so that findings can be repeated.
fn hash(conversation: &Conversation) -> usize {
    let bytes = conversation.messages.iter().flat_map(|message| message.content.bytes());
    bytes.fold(0, |hash: usize, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
}

/// Quotes are exact, and JSON holds the whole evaluation; for about one conversation in [`REPEATED_EVERY`] a second evaluation is the
/// same, and the inputs of weights are finite.
pub fn check_evaluation(conversation: &Conversation) {
    let hash = hash(conversation);
    let scorer: &Scorer = if hash.is_multiple_of(FULL_MODEL_EVERY) { &FULL } else { &SMALL };
    let evaluation = scorer.evaluate(conversation);
    for evidence in &evaluation.evidence {
        let is_exact_quote = conversation.messages.iter().any(|message| {
            message.external_id == evidence.message_external_id
                && message.content.get(evidence.start..evidence.end) == Some(evidence.quote.as_str())
        });
        assert!(is_exact_quote && !evidence.quote.is_empty(), "not quoted exactly: {evidence:?}");
    }
    let json = serde_json::to_string(&evaluation).expect("an evaluation is JSON");
    // Scores and confidences outside of their ranges are refused on the way back.
    let read: Evaluation = serde_json::from_str(&json).expect("an evaluation can be read back");
    assert_eq!(read, evaluation);
    if !hash.is_multiple_of(REPEATED_EVERY) {
        return;
    }
    let again = serde_json::to_string(&scorer.evaluate(conversation)).expect("an evaluation is JSON");
    assert_eq!(again, json, "the same conversation, another evaluation");
    let inputs = scorer.weights_inputs(conversation);
    assert!(inputs.iter().all(|input| input.is_finite()), "{inputs:?}");
}
