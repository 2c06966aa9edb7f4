//! Benchmark inputs: a corpus, and adversarial texts.

use std::path::Path;
use std::process::Command;

use assay_contracts::conversation::Conversation;

/// Sampling rate of the load corpus: all 5,000 conversations would take minutes.
const ONE_IN: usize = 20;

/// The load corpus, used if it is present beside the checkout; not part of the project.
const LOAD_CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/load_5000.jsonl.gz");
/// The samples of the tests, used without the load corpus.
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples");

/// Messages of a long conversation: the maximum of an import.
const LONG_MESSAGES: usize = 50;
/// Bytes of each long message.
const LONG_MESSAGE_BYTES: usize = 80_000;

/// Conversations to measure.
pub struct Corpus {
    /// Where they come from.
    pub name: &'static str,
    pub conversations: Vec<Conversation>,
}

impl Corpus {
    /// The load corpus if it is present, else the samples of the tests.
    pub fn load() -> Self {
        if Path::new(LOAD_CORPUS).exists() {
            let unpacked =
                Command::new("gzip").args(["-dc", LOAD_CORPUS]).output().expect("gzip can be started");
            assert!(unpacked.status.success(), "{LOAD_CORPUS} can be unpacked");
            let conversations = parse_lines(&unpacked.stdout).into_iter().step_by(ONE_IN).collect();
            return Self { name: "load corpus, one in twenty", conversations };
        }
        let mut conversations = Vec::new();
        for entry in std::fs::read_dir(SAMPLES).expect("the samples are there") {
            let path = entry.expect("the samples can be listed").path();
            if path.extension() != Some("jsonl".as_ref()) {
                continue;
            }
            conversations.extend(parse_lines(&std::fs::read(path).expect("a sample can be read")));
        }
        Self { name: "samples of the tests", conversations }
    }
}

fn parse_lines(lines: &[u8]) -> Vec<Conversation> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Conversation::parse(line).expect("an assess body")).collect()
}

/// A text that is repeated to fill long messages.
pub struct AdversarialText {
    pub name: &'static str,
    text: &'static str,
}

/// Texts that could make a naive pass slow.
pub const ADVERSARIAL_TEXTS: &[AdversarialText] = &[
    AdversarialText {
        name: "prose",
        text: "I ordered a lamp three weeks ago and the tracking page has shown the same place since. ",
    },
    AdversarialText { name: "one letter", text: "a" },
    AdversarialText { name: "words without spaces", text: "thankyouitdidnotworkagain" },
    AdversarialText { name: "quoted lines", text: "> x\n" },
    AdversarialText { name: "empty lines", text: "x\n" },
    AdversarialText { name: "quotation marks", text: "\"" },
    AdversarialText { name: "question marks", text: "?" },
    AdversarialText { name: "spaces", text: " " },
    AdversarialText { name: "phrases", text: "thank you, still not fixed " },
    AdversarialText { name: "negations", text: "not " },
    AdversarialText { name: "negated praise", text: "not great? " },
    AdversarialText { name: "promises in offers", text: "would you like a human will " },
    AdversarialText { name: "cited praise", text: "\"thanks\" \"great\" " },
    AdversarialText { name: "identifiers", text: "a-10423 b@x.org " },
    AdversarialText { name: "digits", text: "7" },
    AdversarialText { name: "cyrillic", text: "Заказ не пришёл вовремя. " },
    AdversarialText { name: "han", text: "我的订单还没有到谢谢" },
    AdversarialText { name: "typographic marks", text: "“it’s” … " },
    AdversarialText { name: "emoji", text: "\u{1F600}\u{1F44D}\u{1F3FD}" },
];

impl AdversarialText {
    /// The customer and an AI agent in turn.
    pub fn conversation(&self) -> Conversation {
        // A blank message would be refused.
        let content = self.text.repeat(LONG_MESSAGE_BYTES / self.text.len()) + "x";
        let authors = [
            serde_json::json!({"type": "contact", "external_id": "c"}),
            serde_json::json!({"type": "ai", "external_id": "a"}),
        ];
        let messages: Vec<serde_json::Value> = (0..LONG_MESSAGES)
            .map(|index| {
                serde_json::json!({
                    "author": authors[index % authors.len()],
                    "content": content,
                    "external_id": format!("m{index}"),
                    "timestamp": index,
                })
            })
            .collect();
        let body = serde_json::json!({"ticket_id": self.name, "messages": messages});
        Conversation::parse(body.to_string().as_bytes()).expect("an assess body")
    }
}
