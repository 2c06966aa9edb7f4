//! Queries: filters of each kind, in each order, and summaries of different periods.

use assay_contracts::evaluations::encode_query;

use super::stored::PERIOD;

type Filter = &'static [(&'static str, &'static str)];

/// One filter of each kind, and combinations; rare values, too.
pub const FILTERS: &[Filter] = &[
    &[],
    &[("charge", "disputed")],
    &[("charge", "disputed"), ("charge", "review"), ("ai_tool", "front")],
    &[("charge_reason", "REOPENED")],
    &[("involvement", "no_ai")],
    &[("resolution", "not_resolved"), ("resolved_by", "none")],
    &[("basis", "silence_only"), ("band", "good")],
    &[("handoff", "requested_not_completed"), ("band", "poor")],
    &[("axis_max", "1.4")],
    &[("axis_min", "4.5"), ("charge", "disputed")],
    &[("resolution_accuracy_band", "poor"), ("interaction_effort_band", "excellent")],
    &[("handoff_smoothness_max", "1.2"), ("language", "de")],
    &[("confidence_max", "0.3")],
    &[("flag", "POSSIBLE_PROMPT_INJECTION")],
    &[("flag", "SHORT_CONVERSATION"), ("scorer", "builtin")],
    &[("ai_tool", "none")],
    &[("agent", "none"), ("language", "en")],
    // Several agents: ids of the stored ones.
    &[
        ("agent", "00000000-0000-0000-0000-000000000001"),
        ("agent", "00000000-0000-0000-0000-000000000005"),
        ("agent", "00000000-0000-0000-0000-000000000009"),
    ],
    &[("agent", "00000000-0000-0000-0000-000000000003"), ("charge", "review"), ("language", "fr")],
    &[("source", "rare"), ("charge", "disputed")],
    &[("status", "failed")],
    &[("external_id", "stored-4711")],
    &[("subject", "refund")],
    &[("subject", "refund word17")],
    &[("search", "word23")],
    &[("search", "delivery"), ("charge", "disputed"), ("language", "de")],
    &[("from", "1790000000000"), ("to", "1790604800000"), ("charge", "disputed")],
    &[("from", "1790000000000"), ("to", "1790086400000")],
];

/// Every order.
pub const SORTS: [&str; 14] = [
    "-started_at",
    "axis",
    "-confidence",
    "charge",
    "started_at",
    "-axis",
    "confidence",
    "-charge",
    "resolution_accuracy",
    "-interaction_effort",
    "handoff_smoothness",
    "-resolution_accuracy",
    "interaction_effort",
    "-handoff_smoothness",
];

/// Orders per filter. They differ from filter to filter, so that all orders occur.
const SORTS_PER_FILTER: usize = 4;

/// Lists that are read page by page.
const DEEP: [Filter; 5] = [
    &[],
    &[("charge", "disputed")],
    &[("axis_max", "2.9"), ("language", "en")],
    &[("search", "refund")],
    &[("agent", "00000000-0000-0000-0000-000000000001"), ("agent", "00000000-0000-0000-0000-000000000002")],
];

fn list(filter: Filter, sort: &str, limit: &str) -> String {
    let pairs = filter.iter().copied().chain([("sort", sort), ("limit", limit)]);
    format!("/v1/evaluations?{}", encode_query(pairs))
}

/// First pages.
pub fn list_paths() -> Vec<String> {
    let paths_of_filter = |(number, filter): (usize, &Filter)| {
        let sorts =
            (0..SORTS_PER_FILTER).map(move |place| SORTS[(number * SORTS_PER_FILTER + place) % SORTS.len()]);
        let filter = *filter;
        sorts.map(move |sort| list(filter, sort, "50")).collect::<Vec<_>>()
    };
    FILTERS.iter().enumerate().flat_map(paths_of_filter).collect()
}

/// First pages of lists whose later pages follow by cursors.
pub fn deep_paths() -> Vec<String> {
    DEEP.iter()
        .flat_map(|filter| ["-started_at", "-axis", "charge"].map(|sort| list(filter, sort, "100")))
        .collect()
}

/// For each filter without a period of its own: the overview of a week, four weeks, a quarter and a year.
pub fn summary_paths() -> Vec<String> {
    let path = |filter: Filter, days: i64| {
        let (from, to) = ((PERIOD.1 - days * 86_400_000).to_string(), PERIOD.1.to_string());
        let shown = [("by", "ai_tool"), ("by", "agent"), ("step", "week"), ("compare", "previous")];
        let period = [("from", from.as_str()), ("to", to.as_str())];
        let pairs: Vec<(&str, &str)> = filter.iter().copied().chain(period).chain(shown).collect();
        format!("/v1/evaluations/summary?{}", encode_query(pairs))
    };
    let filters = FILTERS.iter().filter(|filter| filter.iter().all(|(name, _)| *name != "from"));
    filters.flat_map(|filter| [7, 28, 91, 365].map(|days| path(filter, days))).collect()
}
