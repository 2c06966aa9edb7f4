//! How one phrase is written: with straight or typographic apostrophes, with accents or without, in capitals.
//!
//! A list holds the proper spelling once. ASCII case is the automaton's business; what it cannot do is made here.

/// Every spelling under which `phrase` is looked for, the given one first, none twice.
pub(super) fn spellings(phrase: &str) -> Vec<String> {
    let mut spellings = vec![phrase.to_owned()];
    if phrase.contains(is_accented) {
        spellings.push(without_accents(phrase));
        spellings.push(phrase.chars().map(capital).collect());
        spellings.push(with_capital_beginning(phrase));
    }
    let typographic: Vec<String> = spellings
        .iter()
        .filter(|spelling| spelling.contains('\''))
        .map(|spelling| spelling.replace('\'', "\u{2019}"))
        .collect();
    spellings.extend(typographic);
    let mut unique: Vec<String> = Vec::with_capacity(spellings.len());
    for spelling in spellings {
        if !unique.contains(&spelling) {
            unique.push(spelling);
        }
    }
    unique
}

/// The phrase as it is typed on a keyboard without accents: "não" is "nao", "gelöst" is "geloest".
pub(super) fn without_accents(phrase: &str) -> String {
    let mut plain = String::with_capacity(phrase.len());
    for character in phrase.chars() {
        match character {
            'á' | 'à' | 'â' | 'ã' => plain.push('a'),
            'é' | 'è' | 'ê' | 'ë' => plain.push('e'),
            'í' | 'ì' | 'î' | 'ï' => plain.push('i'),
            'ó' | 'ò' | 'ô' | 'õ' => plain.push('o'),
            'ú' | 'ù' | 'û' => plain.push('u'),
            'ç' => plain.push('c'),
            'ñ' => plain.push('n'),
            'œ' => plain.push_str("oe"),
            'ä' => plain.push_str("ae"),
            'ö' => plain.push_str("oe"),
            'ü' => plain.push_str("ue"),
            'ß' => plain.push_str("ss"),
            other => plain.push(other),
        }
    }
    plain
}

/// Whether the character is a Latin letter with a mark, in lower case.
fn is_accented(character: char) -> bool {
    matches!(character, 'ß'..='ÿ' | 'œ')
}

/// The capital of an accented letter; the automaton ignores the case of all others.
fn capital(character: char) -> char {
    let mut capitals = character.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(only), None) if is_accented(character) => only,
        _ => character,
    }
}

fn with_capital_beginning(phrase: &str) -> String {
    let mut characters = phrase.chars();
    characters.next().map(capital).into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_found_however_it_is_typed() {
        assert_eq!(spellings("thanks"), ["thanks"]);
        assert_eq!(spellings("that's"), ["that's", "that\u{2019}s"]);
        assert_eq!(spellings("não é"), ["não é", "nao e", "nÃo É"]);
        assert_eq!(spellings("ça ne va"), ["ça ne va", "ca ne va", "Ça ne va"]);
        assert_eq!(spellings("gelöst"), ["gelöst", "geloest", "gelÖst"]);
        assert_eq!(spellings("谢谢"), ["谢谢"]);
    }
}
