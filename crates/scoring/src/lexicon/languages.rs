//! The lists of further languages.
//!
//! **Which phrases count.** English phrases count in every text, because customers mix English in ("ok thanks").
//! The phrases of another language count only in a text of that language: French "pas", German "die" and
//! Portuguese "sim" mean something else elsewhere. A text is of the language that its own function words or its
//! script show; where they show none ("ok!"), of the language that its side of the conversation writes. Only text
//! for an evaluator is looked for in every language at once. Where an English phrase is another word of the
//! language (German "bad" is a bathroom), the language's list says so under `[lookalike]`.

use super::group::Group;
use super::words::FUNCTION_WORDS;
use super::{LexiconError, format};

/// A list: ISO 639-1 code of the language, name for errors, text. A further language is one more line.
pub(super) const LANGUAGE_LISTS: [(&str, &str, &str); 5] = [
    ("es", "es.txt", include_str!("../../lexicon/es.txt")),
    ("de", "de.txt", include_str!("../../lexicon/de.txt")),
    ("fr", "fr.txt", include_str!("../../lexicon/fr.txt")),
    ("pt", "pt.txt", include_str!("../../lexicon/pt.txt")),
    ("zh", "zh.txt", include_str!("../../lexicon/zh.txt")),
];

/// Number of a language that can be told, in the order of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LanguageNumber(pub(super) u8);

impl LanguageNumber {
    /// As an index of a [`super::Tally`].
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a language's list holds.
#[derive(Debug)]
pub(super) struct LanguageList<'a> {
    /// Words that tell the language; none where its script does.
    pub function_words: Vec<&'a str>,
    /// Groups with their phrases.
    pub phrases: Vec<(Group, Vec<&'a str>)>,
}

impl<'a> LanguageList<'a> {
    /// Reads a list. It must hold every group that a conversation in the language needs: what is covered in part
    /// would be scored as if the rest had not been said.
    pub(super) fn read(file: &'static str, text: &'a str) -> Result<Self, LexiconError> {
        let mut list = Self { function_words: Vec::new(), phrases: Vec::new() };
        for section in format::sections(file, text)? {
            if section.name == FUNCTION_WORDS {
                list.function_words = section.words().collect();
                continue;
            }
            let group = Group::from_name(section.name)
                .ok_or_else(|| LexiconError::UnknownSection { file, section: section.name.to_owned() })?;
            list.phrases.push((group, section.entries));
        }
        let holds = |group: &Group| list.phrases.iter().any(|(held, _)| held == group);
        match Group::LISTED.iter().find(|group| group.is_needed_in_every_language() && !holds(group)) {
            Some(missing) => Err(LexiconError::IncompleteLanguage { file, section: missing.name() }),
            None => Ok(list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_lacks_a_group_is_refused() {
        let error = LanguageList::read("xx.txt", "[thanks]\nwhy: w\ntak\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "xx.txt lacks the section `close`: a language needs every group of the conversation"
        );
    }

    #[test]
    fn every_group_of_every_language_holds_phrases() {
        for (_, file, text) in LANGUAGE_LISTS {
            for (group, phrases) in LanguageList::read(file, text).unwrap().phrases {
                assert!(!phrases.is_empty(), "{file}: {}", group.name());
            }
        }
    }
}
