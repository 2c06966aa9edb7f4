//! The phrase lists, compiled so that one pass over a text finds all that count everywhere, and one more those of its
//! language.
//!
//! The lists are data (`lexicon/*.txt`), each group with a line on why it exists, so that a phrase is added without
//! touching code and a language with one line of it (see `languages`).

mod beginnings;
mod characters;
mod format;
mod group;
mod group_set;
mod languages;
mod normalise;
mod phrases;
mod spelling;
mod words;

use sha2::{Digest, Sha256};

pub(crate) use self::characters::{is_ascii_letter_or_digit, is_letter_or_digit, is_unspaced};
pub(crate) use self::group::Group;
pub(crate) use self::group_set::GroupSet;
pub(crate) use self::languages::LanguageNumber;
use self::languages::{LANGUAGE_LISTS, LanguageList};
use self::normalise::Normalised;
use self::phrases::Phrases;
pub(crate) use self::words::{Tally, WORD_WORTH, WordLists, hash_beginning, hash_word};

/// The lists whose phrases count in every language, with their names for errors.
const PHRASE_LISTS: [(&str, &str); 4] = [
    ("customer.txt", include_str!("../../lexicon/customer.txt")),
    ("agent.txt", include_str!("../../lexicon/agent.txt")),
    ("safety.txt", include_str!("../../lexicon/safety.txt")),
    ("records.txt", include_str!("../../lexicon/records.txt")),
];

/// The list of single words.
const WORD_LIST: (&str, &str) = ("words.txt", include_str!("../../lexicon/words.txt"));

/// Why the phrase lists could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LexiconError {
    /// A line breaks the format.
    #[error("{file}, line {line}: {reason}")]
    Format {
        /// Name of the list.
        file: &'static str,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A section that no code knows.
    #[error("{file}: unknown section `{section}`: add the group to the code or correct the name")]
    UnknownSection {
        /// Name of the list.
        file: &'static str,
        /// Name of the section.
        section: String,
    },
    /// A section that no list holds.
    #[error("no list holds the section `{0}`: add it")]
    MissingSection(&'static str),
    /// A language's list lacks a group.
    #[error("{file} lacks the section `{section}`: a language needs every group of the conversation")]
    IncompleteLanguage {
        /// Name of the list.
        file: &'static str,
        /// Name of the section.
        section: &'static str,
    },
    /// More languages than can be told apart.
    #[error("more than {0} languages are listed: raise the limit in the code")]
    TooManyLanguages(usize),
}

/// A phrase found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// What it means.
    pub group: Group,
    /// Byte offset of its beginning.
    pub start: usize,
    /// Byte offset behind its end.
    pub end: usize,
}

/// What must hold around a phrase for it to count.
#[derive(Debug, Clone, Copy)]
struct Pattern {
    group: Group,
    at_sentence_start: bool,
    any_ending: bool,
    /// Whether its first character would continue a word before it.
    begins_word: bool,
    /// Whether its last character would be continued by a word behind it.
    ends_word: bool,
    at_clause_end: bool,
}

/// Phrases that are looked for together.
#[derive(Debug)]
struct PhraseList {
    phrases: Phrases,
    patterns: Vec<Pattern>,
}

/// The compiled phrase lists. What counts everywhere is one list, found in one pass; a language's own phrases are
/// another, so that texts in English do not pay for them.
#[derive(Debug)]
pub(crate) struct Lexicon {
    everywhere: PhraseList,
    /// By the number of the language.
    own: Vec<(LanguageNumber, PhraseList)>,
    /// Stop words and the function words of languages.
    pub words: WordLists,
}

impl Lexicon {
    /// Compiles the lists that ship with the crate.
    pub(crate) fn builtin() -> Result<Self, LexiconError> {
        let mut everywhere = Entries::default();
        let mut seen = Vec::new();
        for (file, text) in PHRASE_LISTS {
            for section in format::sections(file, text)? {
                let group = Group::from_name(section.name)
                    .ok_or_else(|| LexiconError::UnknownSection { file, section: section.name.to_owned() })?;
                seen.push(group);
                everywhere.add_all(group, &section.entries);
            }
        }
        if let Some(missing) =
            Group::LISTED.iter().find(|group| group.is_needed_in_english() && !seen.contains(group))
        {
            return Err(LexiconError::MissingSection(missing.name()));
        }
        let mut words = WordLists::read(WORD_LIST.0, &format::sections(WORD_LIST.0, WORD_LIST.1)?)?;
        let mut own = Vec::with_capacity(LANGUAGE_LISTS.len());
        for (code, file, text) in LANGUAGE_LISTS {
            let list = LanguageList::read(file, text)?;
            let mut entries_of = Entries::default();
            let language = words.add_language(code, list.function_words.into_iter())?;
            for (group, entries) in list.phrases {
                // Text for an evaluator is no part of the conversation, so its language need not be that of it.
                let list = if group == Group::Injection { &mut everywhere } else { &mut entries_of };
                list.add_all(group, &entries);
            }
            own.push((language, entries_of.compile()));
        }
        Ok(Self { everywhere: everywhere.compile(), own, words })
    }

    /// Whether phrases of a language are listed, by its ISO 639-1 code.
    pub(crate) fn has_list_of(code: &str) -> bool {
        LANGUAGE_LISTS.iter().any(|(listed, ..)| *listed == code)
    }

    /// Writes every phrase in a text of `language` (`None` for one without a list) into `hits`, ordered by place, then by
    /// group. What was in there before is gone.
    pub(crate) fn find(&self, text: &str, language: Option<LanguageNumber>, hits: &mut Vec<Hit>) {
        hits.clear();
        match Normalised::of(text) {
            None => self.find_in(text, text, language, |hit| hits.push(hit)),
            Some(normalised) => self.find_in(&normalised.flat, &normalised.kept, language, |hit| {
                let place = normalised.original(hit.start, hit.end, text);
                hits.extend(place.map(|(start, end)| Hit { start, end, ..hit }));
            }),
        }
        if hits.iter().any(|hit| hit.group == Group::Lookalike) {
            let mut lookalikes: Vec<(usize, usize)> = hits
                .iter()
                .filter(|hit| hit.group == Group::Lookalike)
                .map(|hit| (hit.start, hit.end))
                .collect();
            lookalikes.sort_unstable();
            hits.retain(|hit| lookalikes.binary_search(&(hit.start, hit.end)).is_err());
        }
        let place = |hit: &Hit| (hit.start, hit.end, hit.group);
        // One list finds phrases nearly in this order.
        if !hits.is_sorted_by_key(place) {
            hits.sort_unstable_by_key(place);
        }
        // A phrase may stand in the English list and in that of the language.
        hits.dedup();
    }

    /// Searches `flat`; whether a sentence begins is read in `kept`, which differs from it in line breaks only.
    fn find_in(
        &self,
        flat: &str,
        kept: &str,
        language: Option<LanguageNumber>,
        mut found_one: impl FnMut(Hit),
    ) {
        let own = self.own.iter().filter(|(number, _)| Some(*number) == language).map(|(_, list)| list);
        for list in std::iter::once(&self.everywhere).chain(own) {
            list.find(flat, kept, &mut found_one);
        }
    }

    /// SHA-256 of everything that the compiled lists were made from, lower-case hexadecimal.
    pub(crate) fn sha256() -> String {
        let mut hasher = Sha256::new();
        Self::digest(&mut hasher);
        crate::facts::hex(&hasher.finalize())
    }

    /// Feeds everything that the compiled lists were made from into `hasher`.
    pub(crate) fn digest(hasher: &mut Sha256) {
        let languages = LANGUAGE_LISTS.iter().map(|(_, file, text)| (*file, *text));
        for (file, text) in PHRASE_LISTS.into_iter().chain([WORD_LIST]).chain(languages) {
            hasher.update(file.as_bytes());
            hasher.update((text.len() as u64).to_be_bytes());
            hasher.update(text.as_bytes());
        }
    }
}

impl PhraseList {
    fn find(&self, flat: &str, kept: &str, found_one: &mut impl FnMut(Hit)) {
        self.phrases.find(flat, |found| {
            let Some(pattern) = self.patterns.get(found.phrase) else { return };
            let hit = Hit { group: pattern.group, start: found.start, end: found.end };
            if stands_alone(kept, hit, *pattern) {
                found_one(hit);
            }
        });
    }
}

/// Entries in the making: what is looked for, and what it means, side by side.
#[derive(Debug, Default)]
struct Entries {
    patterns: Vec<Pattern>,
    texts: Vec<String>,
}

impl Entries {
    fn compile(self) -> PhraseList {
        PhraseList { phrases: Phrases::of(&self.texts), patterns: self.patterns }
    }

    fn add_all(&mut self, group: Group, entries: &[&str]) {
        for entry in entries {
            let (entry, at_sentence_start) =
                entry.strip_prefix('^').map_or((*entry, false), |rest| (rest, true));
            let (entry, any_ending) = entry.strip_suffix('*').map_or((entry, false), |rest| (rest, true));
            let (entry, at_clause_end) = entry.strip_suffix('$').map_or((entry, false), |rest| (rest, true));
            for spelling in spelling::spellings(entry) {
                self.patterns.push(Pattern {
                    group,
                    at_sentence_start,
                    any_ending,
                    begins_word: spelling.chars().next().is_some_and(joins),
                    ends_word: last_joins(&spelling),
                    at_clause_end,
                });
                self.texts.push(spelling);
            }
        }
    }
}

/// Whether a find is a phrase of its own and not a part of longer words.
fn stands_alone(text: &str, hit: Hit, pattern: Pattern) -> bool {
    let (Some(before), Some(after)) = (text.get(..hit.start), text.get(hit.end..)) else {
        return false;
    };
    let free_before = !pattern.begins_word || !last_joins(before);
    let free_after = pattern.any_ending || !pattern.ends_word || !continues(after);
    free_before
        && free_after
        && (!pattern.at_sentence_start || starts_sentence(before))
        && (!pattern.at_clause_end || !after.chars().next().is_some_and(char::is_alphanumeric))
}

/// Whether the character is part of a word. Scripts without spaces between words are not.
fn joins(character: char) -> bool {
    is_letter_or_digit(character) && !is_unspaced(character)
}

fn last_joins(text: &str) -> bool {
    match text.as_bytes().last() {
        Some(byte) if byte.is_ascii() => is_ascii_letter_or_digit(*byte),
        _ => text.chars().next_back().is_some_and(joins),
    }
}

/// Whether the word goes on: "can" is no word of its own in "can't" and "cannot".
fn continues(after: &str) -> bool {
    let mut characters = after.chars();
    match characters.next() {
        Some('\'' | '\u{2019}') => characters.next() == Some('t'),
        Some(next) => joins(next),
        None => false,
    }
}

/// Whether a sentence starts behind `before`.
fn starts_sentence(before: &str) -> bool {
    let bare = before.trim_end_matches([' ', '\t', '"', '\'', '(', '*', '¡', '¿']);
    bare.is_empty() || bare.ends_with(['.', '!', '?', '\n', '\r', ':', ';', '…', '。', '！', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(lexicon: &Lexicon, text: &str, language: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        lexicon.find(text, lexicon.words.language(language), &mut hits);
        hits
    }

    fn groups(text: &str) -> Vec<Group> {
        hits(&Lexicon::builtin().unwrap(), text, "en").into_iter().map(|hit| hit.group).collect()
    }

    #[test]
    fn a_phrase_counts_only_as_words_of_its_own() {
        assert!(groups("many THANKS!").contains(&Group::Thanks));
        assert!(!groups("the thanksgiving menu").contains(&Group::Thanks));
        assert!(groups("we apologise").contains(&Group::Apology), "a star takes any ending");
        assert!(groups("that\u{2019}s wrong").contains(&Group::Rejection), "typographic apostrophe");
    }

    #[test]
    fn a_phrase_for_the_beginning_of_a_sentence_counts_only_there() {
        assert!(groups("Sure. However it broke").contains(&Group::Disagree));
        assert!(!groups("I know however").contains(&Group::Disagree));
    }

    #[test]
    fn a_phrase_for_the_end_of_a_clause_counts_only_there() {
        let lexicon = Lexicon::builtin().unwrap();
        let says_no = |text: &str| hits(&lexicon, text, "zh").iter().any(|hit| hit.group == Group::PlainNo);
        assert!(says_no("没有，谢谢") && says_no("没有"));
        assert!(!says_no("没有收到邮件"), "the beginning of a longer word or sentence");
    }

    #[test]
    fn hits_carry_exact_byte_offsets() {
        let text = "¡Perfecto, ya funciona!";
        let lexicon = Lexicon::builtin().unwrap();
        let mut hits = hits(&lexicon, text, "es");
        hits.retain(|hit| matches!(hit.group, Group::Praise | Group::Confirmation));
        let quotes: Vec<&str> = hits.iter().map(|hit| &text[hit.start..hit.end]).collect();
        assert_eq!(quotes, ["Perfecto", "ya funciona"]);
    }
}
