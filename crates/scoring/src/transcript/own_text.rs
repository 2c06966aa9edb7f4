//! Quoted replies and signatures in a message: they are not the author's own text. Evidence quotes them only if a message has
//! nothing else.

use super::words::nfc;

/// Prefixes of lines that an e-mail client puts above the quoted message, in lower case.
const REPLY_SEPARATORS: [&str; 9] = [
    "-----original message",
    "-----mensaje original",
    "-----ursprüngliche nachricht",
    "-----message d'origine",
    "-----mensagem original",
    "-----原始邮件",
    "________________________________",
    "---------- forwarded",
    "begin forwarded message",
];

/// Prefix and suffix of reply headers ("On Monday, Support wrote:").
const REPLY_HEADERS: [(&str, &str); 6] = [
    ("on ", "wrote:"),
    ("el ", "escribió:"),
    ("am ", "schrieb:"),
    ("le ", "a écrit :"),
    ("em ", "escreveu:"),
    ("在", "写道："),
];

/// Sign-offs: a name, a telephone number or a legal notice follows.
const SIGN_OFFS: [&str; 22] = [
    "--",
    "regards",
    "kind regards",
    "best regards",
    "warm regards",
    "with kind regards",
    "many regards",
    "sincerely",
    "yours sincerely",
    "yours faithfully",
    "yours truly",
    "best wishes",
    "sent from ",
    "sent via ",
    "get outlook for",
    "mit freundlichen grüßen",
    "viele grüße",
    "cordialement",
    "saludos",
    "un saludo",
    "atenciosamente",
    "此致",
];
/// Whether a line that starts with the byte can be a sign-off; non-ASCII blanks may precede it.
const MAY_START_SIGN_OFF: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < SIGN_OFFS.len() {
        let first = SIGN_OFFS[at].as_bytes()[0];
        table[first.to_ascii_lowercase() as usize] = true;
        table[first.to_ascii_uppercase() as usize] = true;
        at += 1;
    }
    let mut byte = 0x80;
    while byte < table.len() {
        table[byte] = true;
        byte += 1;
    }
    table
};
/// Maximum bytes of a line with a sign-off.
const MAX_SIGN_OFF_BYTES: usize = 40;
/// Maximum bytes of whitespace around it.
const MAX_BLANK_BYTES: usize = 20;

/// Byte ranges of `text` that are quoted earlier messages or signatures, in order.
pub(crate) fn quoted_replies_and_signatures(text: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = text.get(start..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| start + at + 1);
        match classify_line(text.get(start..end).unwrap_or("")) {
            LineKind::Own => {}
            LineKind::Quoted => add_range(&mut ranges, start, end),
            LineKind::SignOff if start == 0 => {}
            // The quoted lines after this separator begin with `>`, so a line without it is the author's own answer.
            LineKind::Separator if next_line_is_quoted(text.get(end..).unwrap_or_default()) => {
                add_range(&mut ranges, start, end);
            }
            LineKind::Separator | LineKind::SignOff => {
                add_range(&mut ranges, start, text.len());
                return ranges;
            }
        }
        start = end;
    }
    ranges
}

/// Whether the first line with text is marked as quoted.
fn next_line_is_quoted(text: &str) -> bool {
    text.trim_start().starts_with('>')
}

/// Kind of a line.
enum LineKind {
    Own,
    Quoted,
    /// The header of an earlier message: everything from here on is quoted, unless the lines below are marked as quoted.
    Separator,
    /// Everything from here on is a signature, unless it is the first line.
    SignOff,
}

fn classify_line(line: &str) -> LineKind {
    let first = line.trim_ascii_start().as_bytes().first().copied().unwrap_or(b' ');
    // Fast path: the first byte or the length shows that most lines are the author's own. The bytes below are those that `>` and
    // the entries of `REPLY_SEPARATORS` and `REPLY_HEADERS` begin with, in either case, and U+000B, which is white space for
    // `trim` but not for `trim_ascii_start`.
    let may_separate = matches!(
        first,
        b'>' | b'-'
            | b'_'
            | b'A'
            | b'B'
            | b'E'
            | b'L'
            | b'O'
            | b'a'
            | b'b'
            | b'e'
            | b'l'
            | b'o'
            | 0x0B
            | 0x80..
    );
    let may_sign_off =
        line.len() <= MAX_SIGN_OFF_BYTES + MAX_BLANK_BYTES && MAY_START_SIGN_OFF[usize::from(first)];
    if !may_separate && !may_sign_off {
        return LineKind::Own;
    }
    let bare = line.trim();
    match bare {
        _ if bare.starts_with('>') => LineKind::Quoted,
        _ if may_separate && is_separator(bare) => LineKind::Separator,
        _ if bare.len() <= MAX_SIGN_OFF_BYTES && is_sign_off(&nfc(bare)) => LineKind::SignOff,
        _ => LineKind::Own,
    }
}

/// A sign-off fills the line except for punctuation; "sent from" and the like may name a device.
fn is_sign_off(line: &str) -> bool {
    let first = line.as_bytes().first().copied().unwrap_or(b' ').to_ascii_lowercase();
    SIGN_OFFS.iter().filter(|sign_off| sign_off.as_bytes().first() == Some(&first)).any(|sign_off| {
        let may_continue = sign_off.ends_with(' ') || sign_off.ends_with("for");
        let rest = line.get(sign_off.len()..).unwrap_or_default();
        // "--" stands alone (RFC 3676, section 4.3): "---" is a rule between parts of a text, or a row of a table.
        let is_filled =
            if *sign_off == "--" { rest.is_empty() } else { !rest.contains(char::is_alphanumeric) };
        begins_with(line, sign_off) && (may_continue || is_filled)
    })
}

fn is_separator(line: &str) -> bool {
    REPLY_SEPARATORS.into_iter().any(|separator| begins_with(line, separator))
        || REPLY_HEADERS.iter().any(|(start, end)| line.ends_with(end) && begins_with(line, start))
}

/// Whether the line begins like this, in either case of ASCII letters.
fn begins_with(line: &str, beginning: &str) -> bool {
    let found = line.as_bytes().get(..beginning.len());
    found.is_some_and(|found| found.eq_ignore_ascii_case(beginning.as_bytes()))
}

/// Adds a range; one that follows directly on the last becomes part of it.
fn add_range(ranges: &mut Vec<(usize, usize)>, start: usize, end: usize) {
    match ranges.last_mut() {
        Some(last) if last.1 == start => last.1 = end,
        _ => ranges.push((start, end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_lines_and_text_after_reply_header_are_excluded() {
        let text = "still broken\n> Thanks, it works\nbye\nOn Monday, Support wrote:\nGreat!";
        let parts: Vec<&str> =
            quoted_replies_and_signatures(text).into_iter().map(|(start, end)| &text[start..end]).collect();
        assert_eq!(parts, ["> Thanks, it works\n", "On Monday, Support wrote:\nGreat!"]);
    }

    #[test]
    fn answer_below_a_quoted_message_is_own_text() {
        let text = "On Monday, Support wrote:\n\n> Does it work?\n\nNo, it does not.";
        let parts: Vec<&str> =
            quoted_replies_and_signatures(text).into_iter().map(|(start, end)| &text[start..end]).collect();
        assert_eq!(parts, ["On Monday, Support wrote:\n", "> Does it work?\n"]);
    }

    #[test]
    fn horizontal_rule_is_own_text() {
        let text = "**Step 1**: open the menu.\n\n---\n\n**Step 2**: save.";
        assert_eq!(quoted_replies_and_signatures(text), []);
        let signed = "It works now.\n-- \nAnn";
        assert_eq!(quoted_replies_and_signatures(signed), [(14, signed.len())]);
    }

    #[test]
    fn reply_headers_are_known_in_all_languages() {
        for header in [
            "El lunes, Soporte escribió:",
            "Am 3. März um 10:15 Uhr Support <a@example.com> schrieb:",
            "Le lundi, Support a écrit :",
            "Em segunda, Suporte escreveu:",
            "在星期一，客服写道：",
            "-----Ursprüngliche Nachricht-----",
        ] {
            let text = format!("x\n{header}\n123");
            assert_eq!(quoted_replies_and_signatures(&text), [(2, text.len())], "{header}");
        }
    }

    #[test]
    fn signatures_are_excluded() {
        let text = "It works now.\n\nKind regards,\nDr. Ann Bad, Helpful Ltd.";
        assert_eq!(quoted_replies_and_signatures(text), [(15, text.len())]);
        for own in [
            "Regards to the team, it still fails",
            "Kind regards",
            "Sent from the wrong address again and again and again",
        ] {
            assert_eq!(quoted_replies_and_signatures(own), [], "{own}");
        }
        let sent = "No luck\nSent from my phone";
        assert_eq!(quoted_replies_and_signatures(sent), [(8, sent.len())]);
    }
}
