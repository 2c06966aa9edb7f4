//! Any bytes as a request body: what is accepted can be evaluated.

#![no_main]

#[path = "checks.rs"]
mod checks;

use assay_contracts::conversation::Conversation;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    match Conversation::parse(data) {
        Ok(conversation) => {
            checks::evaluate(&conversation);
            Corpus::Keep
        }
        // Almost bodies are the way to other bodies, so they are kept, too.
        Err(_) => Corpus::Keep,
    }
});
