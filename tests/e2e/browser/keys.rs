//! Key presses, as the protocol describes them.

use anyhow::{Context, Result};
use serde_json::{Value, json};

const SHIFT: u32 = 8;

/// The key-down and key-up events of a key: a named key (`Enter`, `Tab`, `Escape`, `Space`, `ArrowDown`, optionally with the
/// prefix `Shift+`), or a character.
pub fn press_events(key: &str) -> Result<[Value; 2]> {
    let (modifiers, name) = match key.strip_prefix("Shift+") {
        Some(name) => (SHIFT, name),
        None => (0, key),
    };
    let (name, code, virtual_key, text) = match name {
        "Enter" => ("Enter", "Enter".to_owned(), 13, "\r"),
        "Tab" => ("Tab", "Tab".to_owned(), 9, ""),
        "Escape" => ("Escape", "Escape".to_owned(), 27, ""),
        "Space" => (" ", "Space".to_owned(), 32, " "),
        "ArrowDown" => ("ArrowDown", "ArrowDown".to_owned(), 40, ""),
        character => {
            let upper = character.chars().next().context("no key")?.to_ascii_uppercase();
            let code = if upper.is_ascii_alphabetic() { format!("Key{upper}") } else { String::new() };
            (character, code, virtual_key(upper), character)
        }
    };
    let shifted = name.chars().all(|character| character.is_ascii_uppercase() || character == '?');
    let modifiers = if shifted && name.len() == 1 { modifiers | SHIFT } else { modifiers };
    let event = |kind: &str, text: &str| {
        json!({
            "type": kind, "key": name, "code": code, "windowsVirtualKeyCode": virtual_key, "modifiers": modifiers,
            "text": text,
        })
    };
    Ok([event(if text.is_empty() { "rawKeyDown" } else { "keyDown" }, text), event("keyUp", "")])
}

/// The Windows virtual-key code: of a letter or digit its ASCII code, of others the code of the key `/?`.
fn virtual_key(upper: char) -> u32 {
    if upper.is_ascii_alphanumeric() { u32::from(upper) } else { 191 }
}
