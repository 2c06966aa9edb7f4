//! Converts the HTML of chat messages and mails to text: paragraphs, lists, links and entities. Never fails, whatever the
//! input, and takes linear time.

use std::borrow::Cow;

/// Elements that begin and end a line.
const BLOCKS: [&str; 24] = [
    "address",
    "article",
    "blockquote",
    "dd",
    "div",
    "dl",
    "dt",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];

/// Elements whose content is not displayed.
const HIDDEN: [&str; 4] = ["head", "script", "style", "title"];

const ENTITIES: [(&str, char); 24] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bull", '•'),
    ("middot", '·'),
    ("copy", '©'),
    ("reg", '®'),
    ("trade", '™'),
    ("euro", '€'),
    ("pound", '£'),
];

/// In bytes, including `&` and `;`.
const MAX_REFERENCE_LENGTH: usize = 12;

/// The text as a browser would show it.
pub fn text_of(html: &str) -> String {
    let mut text = Text::default();
    // The open link: its address, and where its text begins in `text.written`. It ends where the next link begins.
    let mut link: Option<(String, usize)> = None;
    // False from the first tag on whose quotes do not close: looking for the closing quotes of every such tag would take quadratic
    // time.
    let mut quotes_close = true;
    let mut rest = html;
    // A `<` after the last `>` begins no tag: without this check every one of them would be searched to the end of the text.
    let last_closing_bracket = html.rfind('>');
    while let Some(at) = rest.find('<') {
        text.add(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let position = html.len() - rest.len();
        let may_be_tag = last_closing_bracket.is_some_and(|last| last > position);
        let Some(tag) = may_be_tag.then(|| Tag::parse(rest, &mut quotes_close)).flatten() else {
            // A lone bracket, as in "a < b".
            text.add("<");
            rest = &rest[1..];
            continue;
        };
        rest = &rest[tag.length..];
        match (tag.name.as_str(), tag.is_end_tag) {
            (name, false) if HIDDEN.contains(&name) => rest = skip_past_end_tag(rest, name),
            ("br", _) => text.break_line(),
            ("a", is_end_tag) => {
                if let Some((address, begin)) = link.take() {
                    text.add_link_target(&address, begin);
                }
                link = (!is_end_tag).then(|| (tag.attribute("href").unwrap_or_default(), text.written.len()));
            }
            ("img", _) => text.add(
                &tag.attribute("alt")
                    .filter(|alt| !alt.is_empty())
                    .map_or_else(|| " [image] ".to_owned(), |alt| format!(" [image: {alt}] ")),
            ),
            ("li", false) => {
                text.begin_line();
                text.add("- ");
            }
            (name, _) if BLOCKS.contains(&name) => text.begin_line(),
            ("td" | "th", true) => text.add(" "),
            _ => {}
        }
    }
    text.add(rest);
    text.finish()
}

/// The text so far, with white space collapsed.
#[derive(Default)]
struct Text {
    written: String,
    /// A space is due before the next word.
    pending_space: bool,
}

impl Text {
    fn add(&mut self, raw: &str) {
        for character in decode_references(raw).chars() {
            if character.is_whitespace() {
                self.pending_space = true;
                continue;
            }
            if self.pending_space && !self.written.is_empty() && !self.written.ends_with(['\n', ' ']) {
                self.written.push(' ');
            }
            self.pending_space = false;
            self.written.push(character);
        }
        // The marker of a list item keeps its space, although no word follows yet.
        if raw == "- " {
            self.written.push(' ');
            self.pending_space = false;
        }
    }

    /// Adds the address of a link, unless the link's text shows it.
    fn add_link_target(&mut self, address: &str, begin: usize) {
        let shown = self.written.get(begin..).unwrap_or_default().trim();
        let bare = address.trim_start_matches("mailto:").trim_end_matches('/');
        let is_shown = shown.contains(bare) || !bare.starts_with("http");
        if !is_shown && !shown.is_empty() {
            self.written.push_str(&format!(" ({address})"));
        }
    }

    fn break_line(&mut self) {
        self.written.push('\n');
        self.pending_space = false;
    }

    /// Does nothing at the beginning of a line.
    fn begin_line(&mut self) {
        if !self.written.is_empty() && !self.written.ends_with('\n') {
            self.break_line();
        }
        self.pending_space = false;
    }

    /// Trims the lines and collapses empty ones.
    fn finish(self) -> String {
        let mut text = String::with_capacity(self.written.len());
        let mut empty_lines = 0;
        for line in self.written.lines().map(str::trim_end) {
            if line.is_empty() {
                empty_lines += 1;
                continue;
            }
            if !text.is_empty() {
                text.push_str(if empty_lines > 0 { "\n\n" } else { "\n" });
            }
            empty_lines = 0;
            text.push_str(line);
        }
        text
    }
}

struct Tag<'a> {
    name: String,
    is_end_tag: bool,
    attributes: &'a str,
    /// In bytes, including both brackets.
    length: usize,
}

impl<'a> Tag<'a> {
    /// `quotes_close` becomes false at a tag whose quotes do not close; brackets in quotes end tags from there on.
    fn parse(html: &'a str, quotes_close: &mut bool) -> Option<Self> {
        let inside = html.strip_prefix('<')?;
        let is_end_tag = inside.starts_with('/');
        let named = if is_end_tag { &inside[1..] } else { inside };
        if !named.starts_with(|first: char| first.is_ascii_alphabetic() || first == '!' || first == '?') {
            return None;
        }
        let length_by_quotes = quotes_close.then(|| tag_length(html)).flatten();
        *quotes_close &= length_by_quotes.is_some();
        let length = length_by_quotes.or_else(|| html.find('>').map(|at| at + 1))?;
        let name_position = html.len() - named.len();
        let content = &html[name_position..length - 1];
        let name_length = content.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(content.len());
        let (name, attributes) = content.split_at(name_length);
        Some(Self { name: name.to_ascii_lowercase(), is_end_tag, attributes, length })
    }

    fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((before, after)) = rest.split_once('=') {
            let name = before.split_whitespace().next_back().unwrap_or_default();
            let after = after.trim_start();
            let (value, next) = match after.chars().next() {
                Some(quote @ ('"' | '\'')) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
                _ => after.split_once(char::is_whitespace).unwrap_or((after, "")),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decode_references(value).trim().to_owned());
            }
            rest = next;
        }
        None
    }
}

/// In bytes. Brackets in quoted attributes do not end the tag; `None` if a quote does not close.
fn tag_length(html: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in html.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

fn skip_past_end_tag<'a>(html: &'a str, name: &str) -> &'a str {
    let end = format!("</{name}");
    let at =
        html.as_bytes().windows(end.len()).position(|window| window.eq_ignore_ascii_case(end.as_bytes()));
    // The end tag starts with an ASCII character, so this is a character boundary.
    at.and_then(|at| html[at..].split_once('>')).map_or("", |(_, after)| after)
}

/// Unknown character references are kept.
fn decode_references(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        // Bounded search: a text may hold many `&` and no `;`.
        let end = rest.bytes().take(MAX_REFERENCE_LENGTH).position(|byte| byte == b';');
        let reference = end.map(|end| &rest[1..end]);
        match reference.and_then(|name| Some((referenced_character(name)?, name.len() + "&;".len()))) {
            Some((character, length)) => {
                decoded.push(character);
                rest = &rest[length..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

fn referenced_character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, character)| *character);
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
        None => number.parse().ok()?,
    };
    // NUL cannot be stored.
    char::from_u32(code).filter(|character| *character != '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_converted_to_text() {
        let cases = [
            ("", ""),
            ("plain", "plain"),
            ("<p>Hi  there,</p>\n<p>all\n good &amp; well?</p>", "Hi there,\nall good & well?"),
            ("one<br>two<br/>three", "one\ntwo\nthree"),
            ("one<br><br>two", "one\n\ntwo"),
            ("<ul><li>first</li><li>second</li></ul>end", "- first\n- second\nend"),
            (
                "see <a href=\"https://x.example/a?b=1&amp;c=2\">our page</a>.",
                "see our page (https://x.example/a?b=1&c=2).",
            ),
            ("<a href='https://x.example/'>https://x.example</a>", "https://x.example"),
            ("<a href=\"mailto:a@x.example\">a@x.example</a>", "a@x.example"),
            ("<img src=\"x\" alt=\"A > B\"> below", "[image: A > B] below"),
            (
                "<a href=http://x.example>one<a href=http://y.example>two</a></a>",
                "one (http://x.example)two (http://y.example)",
            ),
            ("<b title=\"open>still</b> <i title='A > B'>shown</i>", "still B'>shown"),
            ("<img src=x>", "[image]"),
            ("a < b and 3<4 & 5 &unknown; &#65;&#x42;&#0;", "a < b and 3<4 & 5 &unknown; AB&#0;"),
            ("<style>p { color: red }</style><p>x</p><SCRIPT>alert(1)</Script>y", "x\ny"),
            ("<!-- not shown --><b>bold</b>ly", "boldly"),
            ("<div class=\"zd-comment\"><p dir=\"auto\">Done.&nbsp;</p></div>", "Done."),
            ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
            ("unfinished <a href=\"x", "unfinished <a href=\"x"),
            ("über <em>Straße</em> ß", "über Straße ß"),
        ];
        for (html, text) in cases {
            assert_eq!(text_of(html), text, "{html}");
        }
    }

    #[test]
    fn malformed_html_does_not_panic() {
        let pieces = [
            "<", ">", "<p", "</", "&", "&#", ";", "\"", "'", "=", " ", "ä", "<a href", "<!--", "-->",
            "<script", "x",
        ];
        for one in pieces {
            for two in pieces {
                for three in pieces {
                    for four in pieces {
                        text_of(&format!("{one}{two}{three}{four}"));
                    }
                }
            }
        }
    }

    #[test]
    fn adversarial_html_takes_linear_time() {
        for piece in [
            "<",
            "<a",
            "<a \"",
            "<a \"> \"",
            "<a b=\"> \"",
            "&",
            "<style></style>",
            "<!--",
            "<a href=http://x>",
            "</a>",
            "<p>",
            "<li>",
            "\"'",
        ] {
            for end in ["", ">", "-->"] {
                // Quadratic time would take minutes each.
                text_of(&(piece.repeat(1_000_000 / piece.len()) + end));
            }
        }
        text_of(&("<a href=http://x>y".repeat(30_000) + &"</a>".repeat(30_000)));
    }
}
