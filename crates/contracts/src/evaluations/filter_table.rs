//! The table of the filters: the parameter of each, in the order of documentation, how it is read and how it is written.

use super::filters::EvaluationFilters;
use super::query::QueryReader;
use super::render::{Pairs, push_moment, push_names, push_texts};

macro_rules! filters {
    ($($name:ident: $read:ident, $push:ident;)*) => {
        /// The names of all filters.
        pub const FILTER_NAMES: [&str; 34] = [$(stringify!($name),)*];

        impl EvaluationFilters {
            /// Takes the filters from a query reader, without the rules about filters that contradict each other.
            pub(super) fn take(query: &mut QueryReader) -> Self {
                Self { $($name: query.$read(stringify!($name)),)* }
            }

            /// The parameters that parse to these filters.
            pub fn to_pairs(&self) -> Pairs {
                let mut pairs = Pairs::new();
                $($push(&mut pairs, stringify!($name), &self.$name);)*
                pairs
            }
        }
    };
}

filters! {
    from: moment, push_moment;
    to: moment, push_moment;
    external_id: texts, push_texts;
    subject: words, push_texts;
    search: one_text_with_words, push_texts;
    source: texts, push_texts;
    ai_tool: parsed_list, push_texts;
    agent: parsed_list, push_texts;
    involvement: named, push_names;
    resolution: named, push_names;
    resolved_by: named, push_names;
    basis: named, push_names;
    charge: named, push_names;
    charge_reason: named, push_names;
    handoff: named, push_names;
    band: named, push_names;
    axis_band: named, push_names;
    axis_min: score, push_texts;
    axis_max: score, push_texts;
    resolution_accuracy_band: named, push_names;
    resolution_accuracy_min: score, push_texts;
    resolution_accuracy_max: score, push_texts;
    interaction_effort_band: named, push_names;
    interaction_effort_min: score, push_texts;
    interaction_effort_max: score, push_texts;
    handoff_smoothness_band: named, push_names;
    handoff_smoothness_min: score, push_texts;
    handoff_smoothness_max: score, push_texts;
    confidence_min: confidence, push_texts;
    confidence_max: confidence, push_texts;
    language: languages, push_texts;
    flag: named, push_names;
    scorer: named, push_names;
    status: named, push_names;
}
