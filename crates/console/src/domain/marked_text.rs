//! Prepares the text of a message for a page: marks its quotes, cuts a text that is too long, and names the characters that
//! would change how the text around them is displayed. Templates escape the texts; nothing here makes HTML.

use std::ops::Range;

/// A quote in one message: its number on the page, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(crate) number: usize,
    pub(crate) bytes: Range<usize>,
}

/// A segment of a message as a page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Plain(Vec<Run>),
    /// Overlapping quotes are one mark with all their numbers.
    Marked {
        numbers: Vec<usize>,
        text: Vec<Run>,
    },
    /// Characters that are left out here, and the numbers of the quotes among them. Part `from_part` of the message, from 1, has the
    /// first of these characters and the beginnings of these quotes.
    Cut {
        characters: usize,
        numbers: Vec<usize>,
        from_part: usize,
    },
}

/// Text, or a control character that is shown by its name, once for all its repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Run {
    Text(String),
    Control { label: &'static str, name: &'static str, count: usize },
}

/// Characters that reorder the text around them (Unicode Technical Report 36, section 2.5) or are invisible, with their
/// labels and names.
const CONTROLS: [(char, &str, &str); 15] = [
    ('\u{061c}', "ALM", "Arabic letter mark"),
    ('\u{200b}', "ZWSP", "zero width space"),
    ('\u{200e}', "LRM", "left-to-right mark"),
    ('\u{200f}', "RLM", "right-to-left mark"),
    ('\u{202a}', "LRE", "left-to-right embedding"),
    ('\u{202b}', "RLE", "right-to-left embedding"),
    ('\u{202c}', "PDF", "pop directional formatting"),
    ('\u{202d}', "LRO", "left-to-right override"),
    ('\u{202e}', "RLO", "right-to-left override"),
    ('\u{2060}', "WJ", "word joiner"),
    ('\u{2066}', "LRI", "left-to-right isolate"),
    ('\u{2067}', "RLI", "right-to-left isolate"),
    ('\u{2068}', "FSI", "first strong isolate"),
    ('\u{2069}', "PDI", "pop directional isolate"),
    ('\u{feff}', "BOM", "byte order mark"),
];

/// Quotes that overlap, and the bytes that they cover together.
struct Mark {
    numbers: Vec<usize>,
    bytes: Range<usize>,
}

/// Maximum size of a part of a message, in bytes; each part has a page.
pub(crate) const PART_BYTES: usize = 60_000;

/// Text on each side of a quote that is kept when a message is cut, in bytes.
const CONTEXT_BYTES: usize = 160;

/// The segments of a message; a text over `max_bytes` keeps its beginning and the surroundings of its quotes that fit.
pub(crate) fn segments(content: &str, quotes: &[Quote], max_bytes: usize) -> Vec<Segment> {
    let marks = merge_overlapping(content, quotes);
    let mut segments = Vec::new();
    let mut cut_from = 0;
    for kept in kept_ranges(content, &marks, max_bytes) {
        push_cuts(&mut segments, content, cut_from..kept.start, &marks);
        cut_from = kept.end;
        let mut plain_from = kept.start;
        for Mark { numbers, bytes } in &marks {
            let (start, end) = (bytes.start.max(kept.start), bytes.end.min(kept.end));
            if start >= end {
                continue;
            }
            push_plain(&mut segments, &content[plain_from..start]);
            segments.push(Segment::Marked { numbers: numbers.clone(), text: runs(&content[start..end]) });
            plain_from = end;
        }
        push_plain(&mut segments, &content[plain_from..kept.end]);
    }
    push_cuts(&mut segments, content, cut_from..content.len(), &marks);
    segments
}

/// Text with its control characters named.
pub(crate) fn runs(text: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut plain = String::new();
    for character in text.chars() {
        let Some((label, name)) = control(character) else {
            plain.push(character);
            continue;
        };
        if !plain.is_empty() {
            runs.push(Run::Text(std::mem::take(&mut plain)));
        }
        match runs.last_mut() {
            Some(Run::Control { label: last, count, .. }) if *last == label => *count += 1,
            _ => runs.push(Run::Control { label, name, count: 1 }),
        }
    }
    if !plain.is_empty() {
        runs.push(Run::Text(plain));
    }
    runs
}

/// Text with its control characters named in brackets ("[RLO]"), for places without markup, such as attributes.
pub(crate) fn plain_text(text: &str) -> String {
    let plain = runs(text).into_iter().map(|run| match run {
        Run::Text(text) => text,
        Run::Control { label, count: 1, .. } => format!("[{label}]"),
        Run::Control { label, count, .. } => format!("[{label} ×{count}]"),
    });
    plain.collect()
}

/// JSON with the control characters of its strings written as escapes.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match control(character) {
            Some(_) => escaped.push_str(&format!("\\u{:04x}", u32::from(character))),
            None => escaped.push(character),
        }
    }
    escaped
}

/// Label and name of a control character.
fn control(character: char) -> Option<(&'static str, &'static str)> {
    if let Some((_, label, name)) = CONTROLS.iter().find(|(known, ..)| *known == character) {
        return Some((label, name));
    }
    let is_other = character.is_control() && !matches!(character, '\n' | '\t' | '\r');
    is_other.then_some(("CTRL", "control character"))
}

/// Overlapping quotes become one mark, with the numbers in order. A quote is clipped to the text and widened to whole
/// characters; an empty one is dropped.
fn merge_overlapping(content: &str, quotes: &[Quote]) -> Vec<Mark> {
    let mut sorted: Vec<Quote> = quotes
        .iter()
        .map(|quote| Quote { number: quote.number, bytes: whole_characters(content, &quote.bytes) })
        .filter(|quote| !quote.bytes.is_empty())
        .collect();
    sorted.sort_by_key(|quote| (quote.bytes.start, quote.number));
    let mut marks: Vec<Mark> = Vec::new();
    for Quote { number, bytes } in sorted {
        match marks.last_mut() {
            Some(last) if bytes.start < last.bytes.end => {
                last.numbers.push(number);
                last.bytes.end = last.bytes.end.max(bytes.end);
            }
            _ => marks.push(Mark { numbers: vec![number], bytes }),
        }
    }
    for Mark { numbers, .. } in &mut marks {
        numbers.sort_unstable();
        numbers.dedup();
    }
    marks
}

fn whole_characters(content: &str, bytes: &Range<usize>) -> Range<usize> {
    content.floor_char_boundary(bytes.start)..content.ceil_char_boundary(bytes.end)
}

/// The ranges of a text that are kept, in order and without overlap.
fn kept_ranges(content: &str, marks: &[Mark], max_bytes: usize) -> Vec<Range<usize>> {
    if content.len() <= max_bytes {
        return std::iter::once(0..content.len()).collect();
    }
    // One half is for the beginning of the text, the other for the surroundings of its quotes in order, until it is used up.
    let beginning = 0..content.floor_char_boundary(max_bytes / 2);
    let mut wanted: Vec<Range<usize>> = std::iter::once(beginning).collect();
    let mut remaining = max_bytes / 2;
    for Mark { bytes, .. } in marks {
        let start = bytes.start.saturating_sub(CONTEXT_BYTES);
        let end = bytes.end.saturating_add(CONTEXT_BYTES).min(start + remaining);
        remaining -= end - start;
        wanted.push(whole_characters(content, &(start..end)));
    }
    wanted.sort_by_key(|range| range.start);
    let mut kept: Vec<Range<usize>> = Vec::new();
    for range in wanted.into_iter().filter(|range| !range.is_empty()) {
        match kept.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => kept.push(range),
        }
    }
    kept
}

fn push_plain(segments: &mut Vec<Segment>, text: &str) {
    if !text.is_empty() {
        segments.push(Segment::Plain(runs(text)));
    }
}

/// Pushes the bytes `omitted` as cuts: one at their beginning, and one for each further part of the message in which omitted quotes
/// begin, because the link of a cut leads to one part.
fn push_cuts(segments: &mut Vec<Segment>, content: &str, omitted: Range<usize>, marks: &[Mark]) {
    if omitted.is_empty() {
        return;
    }
    let parts = part_ranges(content, PART_BYTES);
    let index_of = |byte: usize| parts.partition_point(|part| part.end <= byte);
    let is_omitted = |bytes: &Range<usize>| omitted.start <= bytes.start && bytes.end <= omitted.end;
    let mut cuts: Vec<(usize, Vec<usize>)> = vec![(omitted.start, Vec::new())];
    for Mark { numbers, bytes } in marks.iter().filter(|mark| is_omitted(&mark.bytes)) {
        let part = parts.get(index_of(bytes.start));
        let start = part.map_or(omitted.start, |part| part.start.max(omitted.start));
        match cuts.last_mut() {
            Some((last, quotes)) if start <= *last => quotes.extend(numbers),
            _ => cuts.push((start, numbers.clone())),
        }
    }
    let ends: Vec<usize> = cuts.iter().skip(1).map(|(start, _)| *start).chain([omitted.end]).collect();
    segments.extend(cuts.into_iter().zip(ends).map(|((start, numbers), end)| Segment::Cut {
        characters: content[start..end].chars().count(),
        numbers,
        from_part: index_of(start) + 1,
    }));
}

/// The ranges of the parts of a text, each of at most `max_bytes` and of whole characters; one for an empty text.
pub(crate) fn part_ranges(text: &str, max_bytes: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    loop {
        let end = text.floor_char_boundary(start + max_bytes);
        parts.push(start..end);
        let is_next_character_too_long = end == start;
        if end == text.len() || is_next_character_too_long {
            return parts;
        }
        start = end;
    }
}

/// The limit for each text, in bytes, with which all texts together stay within `budget`: short texts stay whole, long ones
/// get equal shares. `usize::MAX` when all of them fit.
pub(crate) fn max_bytes_per_text(lengths: &[usize], budget: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut remaining = budget;
    for (index, length) in sorted.iter().enumerate() {
        let share = remaining / (sorted.len() - index);
        if *length > share {
            return share;
        }
        remaining -= length;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quote(number: usize, bytes: Range<usize>) -> Quote {
        Quote { number, bytes }
    }

    fn text(runs: &[Run]) -> String {
        runs.iter()
            .map(|run| match run {
                Run::Text(text) => text.as_str(),
                Run::Control { .. } => "",
            })
            .collect()
    }

    #[test]
    fn overlapping_quotes_are_one_mark_with_all_numbers() {
        let quotes = [quote(2, 7..17), quote(1, 10..18), quote(3, 19..22)];
        let marks: Vec<(Vec<usize>, String)> = segments("Hello, I am sorry. Bye", &quotes, 100)
            .iter()
            .filter_map(|segment| match segment {
                Segment::Marked { numbers, text: runs } => Some((numbers.clone(), text(runs))),
                _ => None,
            })
            .collect();
        assert_eq!(marks, [(vec![1, 2], "I am sorry.".to_owned()), (vec![3], "Bye".to_owned())]);
    }

    #[test]
    fn parts_cover_a_text_and_split_no_character() {
        let bounds =
            |text: &str| part_ranges(text, 4).iter().map(|part| (part.start, part.end)).collect::<Vec<_>>();
        assert_eq!(bounds(""), [(0, 0)]);
        assert_eq!(bounds("abcd"), [(0, 4)]);
        assert_eq!(bounds("aé日本"), [(0, 3), (3, 6), (6, 9)]);
    }

    #[test]
    fn control_characters_are_named() {
        let runs = runs("a\u{202e}b\u{7}\nc");
        assert_eq!(
            runs,
            [
                Run::Text("a".to_owned()),
                Run::Control { label: "RLO", name: "right-to-left override", count: 1 },
                Run::Text("b".to_owned()),
                Run::Control { label: "CTRL", name: "control character", count: 1 },
                Run::Text("\nc".to_owned()),
            ]
        );
    }

    #[test]
    fn repeated_controls_are_one_run() {
        let repeated = runs(&"\u{7f}".repeat(4_000_000));
        assert_eq!(repeated, [Run::Control { label: "CTRL", name: "control character", count: 4_000_000 }]);
        assert_eq!(plain_text("\u{7f}\u{80}\u{202e}"), "[CTRL ×2][RLO]");
    }

    #[test]
    fn controls_in_attributes_and_json_are_named() {
        assert_eq!(plain_text("a\u{202e}b\u{2060}"), "a[RLO]b[WJ]");
        let json = serde_json::json!({ "a": "x\u{202e}\"\u{2060}" });
        let escaped = escaped_json(&serde_json::to_string_pretty(&json).unwrap());
        assert!(escaped.contains("x\\u202e\\\"\\u2060"), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), json);
    }

    #[test]
    fn long_text_keeps_its_beginning_and_its_quotes() {
        let content = format!("{}THE QUOTE{}", "a".repeat(40_000), "b".repeat(40_000));
        let segments = segments(&content, &[quote(1, 40_000..40_009)], 2_000);
        assert!(matches!(&segments[0], Segment::Plain(runs) if text(runs).len() == 1_000));
        assert!(matches!(segments[1], Segment::Cut { .. }));
        let is_quote = |segment: &Segment| matches!(segment, Segment::Marked { text: runs, .. } if text(runs) == "THE QUOTE");
        assert!(segments.iter().any(is_quote));
        assert!(matches!(segments.last(), Some(Segment::Cut { .. })));
    }

    #[test]
    fn cut_leads_to_the_part_with_its_quotes() {
        let at = |part: usize| (part - 1) * PART_BYTES + 10;
        // The first quote uses up what is kept of quotes.
        let quotes = [quote(1, 5_000..7_000), quote(2, at(2)..at(2) + 5), quote(3, at(3)..at(3) + 5)];
        let segments = segments(&"a".repeat(3 * PART_BYTES), &quotes, 2_000);
        let cut = |segment: &Segment| match segment {
            Segment::Cut { characters, numbers, from_part } => {
                Some((*characters, numbers.clone(), *from_part))
            }
            _ => None,
        };
        let cuts: Vec<(usize, Vec<usize>, usize)> = segments.iter().filter_map(cut).collect();
        assert_eq!(cuts[..2], [(3_840, vec![], 1), (54_160, vec![], 1)]);
        assert_eq!(cuts[2..], [(PART_BYTES, vec![2], 2), (PART_BYTES, vec![3], 3)]);
    }

    #[test]
    fn short_texts_stay_whole_and_long_ones_share() {
        assert_eq!(max_bytes_per_text(&[10, 20, 30], 100), usize::MAX);
        assert_eq!(max_bytes_per_text(&[10, 80_000, 80_000], 60_010), 30_000);
        assert_eq!(max_bytes_per_text(&[80_000; 50], 60_000), 1_200);
        assert_eq!(max_bytes_per_text(&[], 10), usize::MAX);
    }

    proptest! {
        #[test]
        fn segments_cover_the_whole_text(
            content in "\\PC{0,60}",
            quotes in proptest::collection::vec((0_usize..80, 0_usize..80), 0..6),
            max in 0_usize..80,
        ) {
            let quotes: Vec<Quote> =
                quotes.iter().enumerate().map(|(number, (start, length))| quote(number, *start..start + length)).collect();
            let characters: usize = segments(&content, &quotes, max)
                .iter()
                .map(|segment| match segment {
                    Segment::Plain(runs) | Segment::Marked { text: runs, .. } => runs
                        .iter()
                        .map(|run| match run {
                            Run::Text(text) => text.chars().count(),
                            Run::Control { count, .. } => *count,
                        })
                        .sum(),
                    Segment::Cut { characters, .. } => *characters,
                })
                .sum();
            prop_assert_eq!(characters, content.chars().count());
        }
    }
}
