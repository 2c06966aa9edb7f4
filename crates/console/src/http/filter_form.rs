//! The filters of a list as chips, and the form that changes them. The form shows what was typed, also when it was refused.

use assay_contracts::agent::Agent;

use crate::domain::{
    ListState, Pairs, SCORES, ai_tools, closed_filters, filter_label, first_value, format_days, languages,
    parse_day, value_label,
};

/// A filter that is set.
pub(crate) struct Chip {
    pub(crate) label: String,
    pub(crate) value: String,
    /// The address of the list without it.
    pub(crate) without: String,
}

/// The chips of a list: one for the period, and one for each other filter.
pub(crate) fn chips(state: &ListState, agents: &[Agent]) -> Vec<Chip> {
    let chip = |FilterText { name, label, values }| {
        let names = if name == "from" { vec!["from", "to"] } else { vec![name.as_str()] };
        Chip { label, value: values, without: state.address_without(&names) }
    };
    filter_texts(state, agents).into_iter().map(chip).collect()
}

/// A filter in words.
struct FilterText {
    /// Name of the parameter; `from` for the period.
    name: String,
    label: String,
    values: String,
}

fn filter_texts(state: &ListState, agents: &[Agent]) -> Vec<FilterText> {
    let mut texts: Vec<FilterText> = Vec::new();
    if let Some(values) = period_text(state) {
        texts.push(FilterText { name: "from".to_owned(), label: "Time".to_owned(), values });
    }
    for (name, value) in state.filter_pairs() {
        if name == "from" || name == "to" {
            continue;
        }
        let value = value_text(&name, &value, agents);
        match texts.iter_mut().find(|text| text.name == name) {
            Some(text) => text.values = format!("{} or {value}", text.values),
            None => texts.push(FilterText { label: filter_label(&name), name, values: value }),
        }
    }
    texts
}

/// The filter in one line, without labels; empty without a filter.
pub(crate) fn filter_line(state: &ListState, agents: &[Agent]) -> String {
    let texts = filter_texts(state, agents);
    texts.into_iter().map(|text| text.values).collect::<Vec<_>>().join(", ")
}

fn period_text(state: &ListState) -> Option<String> {
    let filters = &state.filters;
    Some(match (filters.from, filters.to) {
        (None, None) => return None,
        (Some(from), Some(to)) => format_days(from, to),
        (Some(from), None) => format!("from {}", format_days(from, from.plus_millis(1))),
        (None, Some(to)) => format!("until {}", format_days(to.plus_millis(-1), to)),
    })
}

fn value_text(name: &str, value: &str, agents: &[Agent]) -> String {
    if name != "agent" {
        return value_label(name, value);
    }
    match agents.iter().find(|agent| agent.id.to_string() == value) {
        Some(agent) => agent.name.clone(),
        None if value == "none" => "none named".to_owned(),
        None => value.to_owned(),
    }
}

pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) is_chosen: bool,
}

pub(crate) struct ChoiceGroup {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) choices: Vec<Choice>,
}

pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) value: String,
}

/// The fields of a filter by text.
pub(crate) struct TextFields {
    pub(crate) name: &'static str,
    pub(crate) label: String,
    /// The values of its fields, at least one. A filter with values that may be repeated has an empty one for one value more.
    pub(crate) values: Vec<String>,
}

pub(crate) struct Range {
    pub(crate) label: &'static str,
    pub(crate) min: Field,
    pub(crate) max: Field,
}

pub(crate) struct FilterForm {
    /// `from` and `to`.
    pub(crate) days: Vec<Field>,
    pub(crate) texts: Vec<TextFields>,
    pub(crate) ranges: Vec<Range>,
    pub(crate) groups: Vec<ChoiceGroup>,
    /// Number of agents that are not among the choices.
    pub(crate) unlisted_agents: usize,
    /// Pairs that no field of the form carries, kept in hidden fields.
    pub(crate) hidden: Pairs,
}

/// Number of agents in the form, beside those that are chosen; the page of agents has links for all.
const MAX_AGENTS: usize = 30;

/// The filters by text, and whether several values may be given.
const TEXTS: [(&str, bool); 4] =
    [("search", false), ("subject", true), ("external_id", true), ("source", true)];

impl FilterForm {
    /// The form for the pairs of a query.
    pub(crate) fn new(pairs: &[(String, String)], agents: &[Agent]) -> Self {
        let value = |name: &str| first_value(pairs, name).unwrap_or_default().to_owned();
        let field =
            |name: &str| Field { value: value(name), label: filter_label(name), name: name.to_owned() };
        let is_chosen = |name: &str, value: &str| pairs.iter().any(|pair| pair.0 == name && pair.1 == value);
        let choice = |name: &str, value: &str| Choice {
            is_chosen: is_chosen(name, value),
            label: value_text(name, value, agents),
            value: value.to_owned(),
        };
        let mut groups: Vec<ChoiceGroup> = closed_filters()
            .into_iter()
            .map(|filter| ChoiceGroup {
                choices: filter.values.iter().map(|value| choice(filter.name, value)).collect(),
                name: filter.name,
                label: filter.label,
            })
            .collect();
        let choices = language_codes(pairs).into_iter().map(|code| choice("language", code)).collect();
        groups.push(ChoiceGroup { name: "language", label: "Language", choices });
        let tools = ai_tools().into_iter().map(|tool| choice("ai_tool", tool)).collect();
        groups.push(ChoiceGroup { name: "ai_tool", label: "AI tool", choices: tools });
        let (first, others) = agents.split_at(agents.len().min(MAX_AGENTS));
        let is_chosen_agent = |agent: &&Agent| is_chosen("agent", &agent.id.to_string());
        let listed: Vec<&Agent> = first.iter().chain(others.iter().filter(is_chosen_agent)).collect();
        let unlisted_agents = agents.len() - listed.len();
        let listed = listed.into_iter().map(|agent| choice("agent", &agent.id.to_string()));
        let listed: Vec<Choice> = listed.chain([choice("agent", "none")]).collect();
        groups.push(ChoiceGroup { name: "agent", label: "Agent", choices: listed });
        let ranges: Vec<Range> = SCORES
            .into_iter()
            .map(|(score, label)| (format!("{score}_min"), format!("{score}_max"), label))
            .chain([("confidence_min".to_owned(), "confidence_max".to_owned(), "Confidence")])
            .map(|(min, max, label)| Range { label, min: field(&min), max: field(&max) })
            .collect();
        let mut form = Self {
            days: ["from", "to"].map(field).into(),
            texts: TEXTS.map(|(name, is_repeatable)| text_fields(name, is_repeatable, pairs)).into(),
            ranges,
            groups,
            unlisted_agents,
            hidden: Vec::new(),
        };
        form.hidden = pairs.iter().filter(|pair| form.needs_hidden_field(pair)).cloned().collect();
        form
    }

    /// Whether no other field carries the pair. Cursor and row are dropped, because the list changes.
    fn needs_hidden_field(&self, (name, value): &(String, String)) -> bool {
        let is_in = |field: &Field| field.name == *name && field.value == *value;
        let is_chosen_in = |group: &ChoiceGroup| {
            group.name == name
                && group.choices.iter().any(|choice| choice.is_chosen && choice.value == *value)
        };
        let has_field = self.days.iter().any(is_in)
            || self.texts.iter().any(|text| text.name == name && text.values.contains(value))
            || self.ranges.iter().any(|range| is_in(&range.min) || is_in(&range.max))
            || self.groups.iter().any(is_chosen_in);
        !has_field && !matches!(name.as_str(), "cursor" | "row")
    }

    /// Whether a date field can show the value; it would lose any other text.
    pub(crate) fn is_day(value: &str) -> bool {
        value.is_empty() || parse_day(value).is_some()
    }
}

/// The languages with a name, and those of the query that have none.
fn language_codes(pairs: &[(String, String)]) -> Vec<&str> {
    let mut codes: Vec<&str> = languages();
    for (name, code) in pairs {
        if name == "language" && !code.is_empty() && !codes.contains(&code.as_str()) {
            codes.push(code);
        }
    }
    codes
}

/// One field for each value that was typed, and an empty one where there is none or another may be added.
fn text_fields(name: &'static str, is_repeatable: bool, pairs: &[(String, String)]) -> TextFields {
    let typed = pairs.iter().filter(|pair| pair.0 == name && !pair.1.is_empty());
    let mut values: Vec<String> = typed.map(|pair| pair.1.clone()).collect();
    if values.is_empty() || is_repeatable {
        values.push(String::new());
    }
    TextFields { name, label: filter_label(name), values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::parse_pairs;

    #[test]
    fn form_loses_nothing_that_was_typed() {
        let typed = parse_pairs(
            "charge=maybe&charge=review&axis_min=9,5&from=yesterday&unknown=1&subject=a&subject=b&source=c&source=d\
             &sort=axis&cursor=x",
        );
        let form = FilterForm::new(&typed, &[]);
        assert_eq!(form.days[0].value, "yesterday");
        assert_eq!(form.ranges[0].min.value, "9,5");
        let hidden: Vec<&str> = form.hidden.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(hidden, ["maybe", "1", "axis"]);
        let values = |name: &str| form.texts.iter().find(|text| text.name == name).unwrap().values.clone();
        assert_eq!(values("subject"), ["a", "b", ""]);
        assert_eq!(values("source"), ["c", "d", ""]);
        let charge = form.groups.iter().find(|group| group.name == "charge").unwrap();
        let chosen = charge.choices.iter().filter(|choice| choice.is_chosen);
        assert_eq!(chosen.map(|choice| choice.value.as_str()).collect::<Vec<_>>(), ["review"]);
    }

    #[test]
    fn languages_are_chosen_by_name() {
        let form = FilterForm::new(&parse_pairs("language=de&language=xx&language=xx"), &[]);
        let group = form.groups.iter().find(|group| group.name == "language").unwrap();
        let chosen = group.choices.iter().filter(|choice| choice.is_chosen);
        let chosen: Vec<(&str, &str)> =
            chosen.map(|choice| (choice.value.as_str(), choice.label.as_str())).collect();
        assert_eq!(chosen, [("de", "German"), ("xx", "xx")]);
        assert!(form.hidden.is_empty(), "{:?}", form.hidden);
    }

    #[test]
    fn chips_name_filters_and_lead_to_the_list_without_them() {
        let state =
            ListState::parse(&parse_pairs("from=2026-01-01&to=2026-03-31&charge=disputed&charge=review"))
                .unwrap();
        let chips = chips(&state, &[]);
        let texts: Vec<String> = chips.iter().map(|chip| format!("{}: {}", chip.label, chip.value)).collect();
        assert_eq!(texts, ["Time: 1 January – 31 March 2026", "Charge: review or disputed"]);
        assert_eq!(chips[0].without, "/console/conversations?charge=review&charge=disputed");
        assert_eq!(chips[1].without, "/console/conversations?from=2026-01-01&to=2026-03-31");
    }
}
