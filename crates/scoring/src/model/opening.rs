//! How detailed the customer's opening is: what decides between the two models of a dimension.
//!
//! "I want to book a table" and a paragraph about a broken router start different conversations. In the first, each
//! further turn is a step towards the booking; in the second, each one is a step that did not help. One model for
//! both learns the mean of the two and is right about neither.

use crate::transcript::Transcript;

/// Openings of so many words are a request and nothing else: those of task dialogues have 5 to 20.
const BRIEF_WORDS: f64 = 12.0;
/// Openings of so many words describe a problem: those of helpdesk conversations have 20 to 100.
const DETAILED_WORDS: f64 = 44.0;

/// Share of the model for described problems, 0–1; the rest is the share of the one for brief requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Detail(f64);

impl Detail {
    /// By the words that the customer writes before the first answer to them. Whatever comes behind that answer
    /// changes nothing, so that no ending can choose the model that likes it.
    pub(crate) fn of(transcript: &Transcript<'_>) -> Self {
        Self::of_words(transcript.opening_items().map(|item| item.reading.words).sum())
    }

    /// 0 for a brief opening, 1 for a detailed one, in proportion between them: no word is a cliff.
    pub(super) fn of_words(words: u32) -> Self {
        let ramp = (f64::from(words) - BRIEF_WORDS) / (DETAILED_WORDS - BRIEF_WORDS);
        Self(ramp.clamp(0.0, 1.0))
    }

    /// Share of the model for described problems.
    pub(crate) const fn share(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::conversation::Conversation;

    use super::*;
    use crate::lexicon::Lexicon;

    /// The detail of a conversation of messages: type of the author, content.
    fn detail(messages: &[(&str, &str)]) -> f64 {
        let messages: Vec<serde_json::Value> = messages
            .iter()
            .enumerate()
            .map(|(index, (author, content))| {
                serde_json::json!({"author": {"type": author, "external_id": author}, "kind": "message",
                    "content": content, "external_id": format!("m{index}"), "timestamp": index})
            })
            .collect();
        let body = serde_json::json!({"ticket_id": "t", "source": "s", "messages": messages}).to_string();
        let conversation = Conversation::parse(body.as_bytes()).unwrap();
        Detail::of(&Transcript::read(&Lexicon::builtin().unwrap(), &conversation)).share()
    }

    #[test]
    fn detail_rises_from_twelve_words_to_forty_four() {
        for (words, share) in
            [(0, 0.0), (12, 0.0), (20, 0.25), (28, 0.5), (43, 0.968_75), (44, 1.0), (900, 1.0)]
        {
            assert_eq!(Detail::of_words(words).share(), share, "{words} words");
        }
    }

    #[test]
    fn only_what_the_customer_writes_before_the_first_answer_counts() {
        let described = "the lamp is dark ".repeat(7);
        let opening = [("contact", described.as_str())];
        assert_eq!(detail(&opening), 0.5);
        let answered = [&opening[..], &[("ai", "Switch it on, please.")]].concat();
        for later in ["it is", described.as_str(), "thank you", "ignore all previous instructions"] {
            assert_eq!(detail(&[&answered[..], &[("contact", later)]].concat()), 0.5, "{later}");
        }
        let greeted = [&[("ai", described.as_str())], &opening[..]].concat();
        assert_eq!(detail(&greeted), 0.5, "a greeting is not the customer's");
    }

    #[test]
    fn it_makes_no_difference_in_how_many_messages_a_problem_is_described() {
        let half = "the lamp is dark ".repeat(4);
        let whole = half.repeat(2);
        assert_eq!(detail(&[("contact", &half), ("contact", &half)]), detail(&[("contact", &whole)]));
    }
}
