//! Hostile conversations: markup, scripts, bidirectional controls, very long words, very long messages.

use std::fmt::Write;

use assay_testkit::Rng;
use serde_json::{Value, json};

/// Sets `window.pwned` if the browser runs it.
pub const SCRIPT: &str = "<script>window.pwned = 1</script>";

const MARKUP: [&str; 8] = [
    SCRIPT,
    "<img src=x onerror=\"window.pwned = 1\"><svg onload=\"window.pwned = 1\"></svg>",
    "</div></li></ol></section><h1 id=\"main\">Account suspended</h1><form action=\"https://example.com\"><input name=key>",
    "<mark>a forged quote</mark><a class=\"ref\" id=\"q1\" href=\"https://example.com/\">1</a>",
    "<div hx-get=\"/console/keys\" hx-trigger=\"load\">hx</div><a href=\"javascript:window.pwned = 1\">click</a>",
    "{{ 7 * 7 }} ${7 * 7} %} &lt;b&gt; &#x27; \" ' ` \\u003cscript\\u003e",
    "<style>body { display: none }</style><base href=\"https://example.com/\"><meta http-equiv=refresh content=\"0;url=//example.com\">",
    "]]>--><!-- <plaintext>",
];

/// Bidirectional controls, invisible and combining characters, right-to-left scripts, emoji sequences.
const UNUSUAL_CHARACTERS: [&str; 5] = [
    "The refund is \u{202e}00.001\u{202c} euros, see invoice\u{2066}\u{202e}fdp.exe\u{2069}",
    "\u{202e}\u{202e}\u{202e}never closed",
    "zero\u{200b}width\u{feff}and\u{2060}joiners",
    "مرحبا، أين طلبي رقم 58213؟ שלום, where is order 58213?",
    "Z̸̡̢̛̗̘̙̜̝̞̟̠̣̤̥̦̩̪̫̬̭̮̯a̵̰̱̲̳̹̺̻̼l̶̽̾̿̀́̂̓̈́͆͊͋͌g̷͎͏͐͑͒͗͛ͣͤͥͦͧͨͩͪͫͬͭͮͯo̸ 👩‍👩‍👧‍👦🏳️‍🌈👍🏽🧑🏿‍🚀",
];

/// A conversation with hostile texts in the subject, the ids, the names and the messages.
pub fn conversation(agent: &str) -> Value {
    let word = "a".repeat(10_000);
    let mut texts: Vec<String> =
        MARKUP.iter().chain(&UNUSUAL_CHARACTERS).map(|text| (*text).to_owned()).collect();
    texts.push(word);
    texts.push("Please refund me, I am still waiting, nothing works. <b>This is not solved!</b>".to_owned());
    let messages: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let author = match at % 4 {
                1 => json!({"type": "ai", "external_id": agent, "name": format!("Bot {SCRIPT}")}),
                2 => json!({"type": "teammate", "external_id": "<i>t</i>", "name": "\u{202e}nimda"}),
                3 => json!({"type": "system", "name": "<marquee>system</marquee>"}),
                _ => json!({"type": "contact", "external_id": "x\"><script>window.pwned=1</script>", "name": "w".repeat(1_000)}),
            };
            message(at, author, text)
        })
        .collect();
    json!({
        "ticket_id": format!("hostile-\"'><b>{}", "y".repeat(900)),
        "source": "<script>window.pwned = 1</script>",
        "source_account_id": "</title><script>window.pwned = 1</script>",
        "subject": format!("{SCRIPT}</title>\u{202e}gnirts esrever\u{202c} {}", "long".repeat(500)),
        "messages": messages,
    })
}

/// 50 messages of 80 kB that LZ4, as which they are stored, hardly shortens.
pub fn large(agent: &str) -> Value {
    let mut random = Rng::new(1);
    let mut text = |bytes: usize| {
        let mut text = String::new();
        while text.len() < bytes {
            let _ = write!(text, "{:x} ", random.below(usize::MAX));
        }
        text.truncate(bytes);
        text
    };
    let messages: Vec<Value> = (0..50)
        .map(|at| {
            let author = if at % 2 == 0 {
                json!({"type": "contact", "external_id": "ann"})
            } else {
                json!({"type": "ai", "external_id": agent})
            };
            message(at, author, &text(80_000))
        })
        .collect();
    json!({"ticket_id": "large", "subject": "Fifty long messages", "messages": messages})
}

fn message(at: usize, author: Value, text: &str) -> Value {
    let timestamp = 1_763_600_000_000_u64 + u64::try_from(at).unwrap_or_default() * 60_000;
    json!({"external_id": format!("h-{at}-<u>"), "timestamp": timestamp, "author": author, "content": text})
}
