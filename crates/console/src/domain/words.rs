//! Words for codes: `customer_rejected` and `CUSTOMER_REJECTED` are read "customer rejected".

/// Longer names of people, agents, sources and values are shortened; they can have up to 1,024 characters.
pub(crate) const MAX_NAME_CHARACTERS: usize = 100;

/// A code as words in lower case; AI stays in capitals.
pub(crate) fn words(code: &str) -> String {
    let lower = code.to_lowercase();
    let words: Vec<&str> =
        lower.split(['_', '.']).map(|word| if word == "ai" { "AI" } else { word }).collect();
    words.join(" ")
}

pub(crate) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_words() {
        assert_eq!(words("CUSTOMER_REJECTED"), "customer rejected");
        assert_eq!(words("ai_assisted"), "AI assisted");
        assert_eq!(words("NO_AI_MESSAGES"), "no AI messages");
        assert_eq!(capitalized(&words("AGENT_GAVE_STEPS")), "Agent gave steps");
        assert_eq!(capitalized(""), "");
    }
}
