//! The state of the list of conversations, which is kept in its URL alone: filters, order, columns, cursor and first row. Days in
//! the URL are days in UTC, both included (`from=2026-01-01&to=2026-03-31`); a moment that is not at the beginning of a day
//! is written in epoch milliseconds, as in the API.

use assay_contracts::evaluations::{EvaluationFilters, QueryReader, Sort, encode_query};
use assay_contracts::time::Timestamp;
use assay_contracts::validation::FieldError;

use super::dates::{day_of, parse_day, plus_days, start_of_day};

pub(crate) const ROWS_PER_PAGE: u32 = 25;

/// The highest row number that a URL may have; no list is as long.
const MAX_ROW: u64 = 1_000_000_000_000;

pub(crate) type Pairs = Vec<(String, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// The sort key of the list when its heading is clicked; `None`: not sortable.
    pub(crate) sort: Option<&'static str>,
    is_default: bool,
}

const fn column(name: &'static str, label: &'static str, sort: Option<&'static str>) -> Column {
    Column { name, label, sort, is_default: true }
}

/// A column that is shown only when it is chosen.
const fn optional(column: Column) -> Column {
    Column { is_default: false, ..column }
}

/// The columns in their order; the subject is always shown, because it is the link.
pub(crate) const COLUMNS: [Column; 14] = [
    column("time", "Time", Some("started_at")),
    column("subject", "Subject, external id", None),
    column("tool", "AI tool, agent", None),
    column("axis", "AXIS", Some("axis")),
    column("ra", "RA", Some("resolution_accuracy")),
    column("ie", "IE", Some("interaction_effort")),
    column("hs", "HS", Some("handoff_smoothness")),
    column("resolution", "Resolution, basis", None),
    column("charge", "Charge, reasons", Some("charge")),
    optional(column("confidence", "Confidence", Some("confidence"))),
    optional(column("language", "Language", None)),
    optional(column("handoff", "Handoff", None)),
    optional(column("flags", "Flags", None)),
    optional(column("source", "Source", None)),
];

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ListState {
    pub(crate) filters: EvaluationFilters,
    pub(crate) sort: Sort,
    /// Names of the chosen columns; empty: the default ones.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) cursor: Option<String>,
    /// Number of the first row on the page, the parameter `row`; ignored without a cursor.
    pub(crate) first_row: Option<u64>,
}

impl ListState {
    /// Reads the pairs of a query. Fields that a form left empty count as absent.
    ///
    /// # Errors
    /// Every fault, by the name of its parameter.
    pub(crate) fn parse(pairs: &[(String, String)]) -> Result<Self, Vec<FieldError>> {
        let mut query = QueryReader::new(api_pairs(pairs));
        let filters = EvaluationFilters::read(&mut query);
        // If the first day is the one after the last day, both become the same moment: an empty period for the API, a fault here.
        if filters.from.is_some() && filters.from == filters.to && days_are_reversed(pairs) {
            query.add_error("from", "must not be later than `to`");
        }
        let sort = query.parsed("sort", "is not an order of this list", Sort::parse).unwrap_or_default();
        let chosen = query.texts("column");
        if chosen.iter().any(|name| COLUMNS.iter().all(|column| column.name != name)) {
            query.add_error("column", "is not a column of this list");
        }
        let cursor = query.single("cursor");
        let first_row = query.parsed("row", "must be the number of a row", |text| {
            text.parse().ok().filter(|row| (1..=MAX_ROW).contains(row))
        });
        let known = COLUMNS.iter().map(|column| column.name);
        let columns = known.filter(|name| chosen.iter().any(|column| column == name)).collect();
        query.finish(Self { filters, sort, columns, cursor, first_row }).map_err(explain_days)
    }

    pub(crate) fn filter_pairs(&self) -> Pairs {
        filter_pairs(&self.filters)
    }

    /// The pairs for the address of the first page, and for those of its conversations.
    pub(crate) fn pairs_without_cursor(&self) -> Pairs {
        let mut pairs = self.filter_pairs();
        if self.sort != Sort::default() {
            pairs.push(("sort".to_owned(), self.sort.to_string()));
        }
        pairs.extend(self.columns.iter().map(|name| ("column".to_owned(), (*name).to_owned())));
        pairs
    }

    /// The address of the first page.
    pub(crate) fn address(&self) -> String {
        list_address(&self.pairs_without_cursor())
    }

    pub(crate) fn next_address(&self, cursor: &str, first_row: u64) -> String {
        let mut pairs = self.pairs_without_cursor();
        pairs.push(("cursor".to_owned(), cursor.to_owned()));
        pairs.push(("row".to_owned(), first_row.to_string()));
        list_address(&pairs)
    }

    pub(crate) fn address_without(&self, names: &[&str]) -> String {
        let is_kept = |pair: &(String, String)| !names.contains(&pair.0.as_str());
        list_address(&self.pairs_without_cursor().into_iter().filter(is_kept).collect::<Pairs>())
    }

    /// The address with the list sorted by a key: in the other direction when it is sorted by that key already, otherwise
    /// ascending, but descending for time and charge.
    pub(crate) fn address_sorted(&self, key: &str) -> String {
        let is_current = self.sort.key.as_str() == key;
        let is_descending =
            if is_current { !self.sort.descending } else { matches!(key, "started_at" | "charge") };
        let text = if is_descending { format!("-{key}") } else { key.to_owned() };
        let sort = Sort::parse(&text).unwrap_or_default();
        Self { sort, ..self.clone() }.address()
    }

    pub(crate) fn shown_columns(&self) -> impl Iterator<Item = &'static Column> + '_ {
        COLUMNS.iter().filter(|column| self.shows(column))
    }

    pub(crate) fn shows(&self, column: &Column) -> bool {
        if self.columns.is_empty() {
            return column.is_default;
        }
        column.name == "subject" || self.columns.contains(&column.name)
    }
}

/// The pairs of filters; moments at the beginning of a day are written as days.
pub(crate) fn filter_pairs(filters: &EvaluationFilters) -> Pairs {
    let is_day = |at: Timestamp| start_of_day(at) == at;
    let with_days = |(name, value): (&'static str, String)| {
        let value = match (name, filters.from, filters.to) {
            ("from", Some(from), _) if is_day(from) => day_of(from),
            ("to", _, Some(to)) if is_day(to) && to > Timestamp::MIN => day_of(plus_days(to, -1)),
            _ => value,
        };
        (name.to_owned(), value)
    };
    filters.to_pairs().into_iter().map(with_days).collect()
}

/// Whether both ends of the period are days, and the first is later than the last.
fn days_are_reversed(pairs: &[(String, String)]) -> bool {
    let day = |name: &str| first_value(pairs, name).and_then(|value| parse_day(value.trim()));
    day("from").zip(day("to")).is_some_and(|(from, to)| from > to)
}

/// The pairs for the API: those of a form or a link without empty ones, trimmed, and with moments in place of days. A source is not
/// trimmed, because imports may have one with spaces around it.
fn api_pairs(pairs: &[(String, String)]) -> Pairs {
    let mut api_pairs: Pairs = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let value = if name == "source" { value.as_str() } else { value.trim() };
        if value.is_empty() {
            continue;
        }
        let value = match (name.as_str(), parse_day(value)) {
            ("from", Some(day)) => day.as_millis().to_string(),
            ("to", Some(day)) => plus_days(day, 1).as_millis().to_string(),
            _ => value.to_owned(),
        };
        // A repeated value counts once.
        if !api_pairs.iter().any(|(known, other)| known == name && *other == value) {
            api_pairs.push((name.clone(), value));
        }
    }
    api_pairs
}

/// Rewrites faults of `from` and `to` that ask for milliseconds, as the API does: the page asks for days.
fn explain_days(mut faults: Vec<FieldError>) -> Vec<FieldError> {
    for fault in &mut faults {
        let is_day_parameter = matches!(fault.pointer.as_str(), "from" | "to");
        if is_day_parameter && fault.detail.contains("milliseconds") {
            fault.detail = "must be a day, such as 2026-01-31".to_owned();
        }
    }
    faults
}

pub(crate) fn list_address(pairs: &[(String, String)]) -> String {
    with_query("/console/conversations", pairs)
}

/// The decoded pairs of a query, or of the body of a form.
pub(crate) fn parse_pairs(encoded: impl AsRef<[u8]>) -> Pairs {
    url::form_urlencoded::parse(encoded.as_ref()).into_owned().collect()
}

/// The first value of a parameter or field.
pub(crate) fn first_value<'p>(pairs: &'p [(String, String)], name: &str) -> Option<&'p str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// A path with a query, if there is one.
pub(crate) fn with_query<N: AsRef<str>>(path: &str, pairs: &[(N, String)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", encode_query(pairs.iter().map(|(name, value)| (name, value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_state_round_trips() {
        let queries = [
            "",
            "?charge=review&charge=disputed",
            "?from=2026-01-01&to=2026-03-31&ai_tool=intercom&sort=-axis",
            "?search=refund%20%26%20late&axis_max=2.5&column=time&column=axis&column=flags",
            "?from=1767225600001&language=de&language=und",
        ];
        for query in queries {
            let state = ListState::parse(&parse_pairs(query.trim_start_matches('?'))).unwrap();
            assert_eq!(state.address(), format!("/console/conversations{query}"));
        }
    }

    #[test]
    fn days_of_the_url_are_both_included() {
        let state = ListState::parse(&parse_pairs("from=2026-01-01&to=2026-01-01")).unwrap();
        let (from, to) = (state.filters.from.unwrap(), state.filters.to.unwrap());
        assert_eq!(to.millis_since(from), 86_400_000);
    }

    #[test]
    fn unknown_column_is_refused() {
        let faults = ListState::parse(&parse_pairs("column=time&column=nonsense")).unwrap_err();
        assert_eq!(faults.iter().map(|fault| fault.pointer.as_str()).collect::<Vec<_>>(), ["column"]);
    }

    #[test]
    fn reversed_days_are_refused() {
        for query in ["from=2026-02-01&to=2026-01-31", "from=2026-02-02&to=2026-01-31"] {
            let faults = ListState::parse(&parse_pairs(query)).unwrap_err();
            assert_eq!(faults[0].pointer, "from", "{query}");
        }
        // The same moment is an empty period, as in the API.
        for query in ["from=1767225600001&to=1767225600001", "from=2026-01-01&to=1767225600000"] {
            assert!(ListState::parse(&parse_pairs(query)).is_ok(), "{query}");
        }
    }

    #[test]
    fn source_is_taken_with_its_spaces() {
        let state = ListState::parse(&parse_pairs("source=+x&source=+&external_id=+T-1+")).unwrap();
        assert_eq!(state.filters.source, [" ", " x"]);
        assert_eq!(state.filters.external_id, ["T-1"]);
    }

    #[test]
    fn empty_fields_of_forms_are_left_out_and_repeated_values_count_once() {
        let state =
            ListState::parse(&parse_pairs("subject=&axis_min=+&charge=review&charge=review")).unwrap();
        assert_eq!(state.address(), "/console/conversations?charge=review");
    }

    #[test]
    fn faults_are_named_by_field() {
        let faults = ListState::parse(&parse_pairs("from=yesterday&axis_min=9&bad=1&charge=maybe&sort=x"))
            .unwrap_err();
        let mut names: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["axis_min", "bad", "charge", "from", "sort"]);
    }

    #[test]
    fn number_of_the_first_row_is_positive_and_bounded() {
        for row in ["0", "-1", "1000000000001", "18446744073709551615", "99999999999999999999"] {
            let faults = ListState::parse(&parse_pairs(format!("cursor=x&row={row}"))).unwrap_err();
            assert_eq!(faults[0].pointer, "row", "{row}");
        }
        assert_eq!(ListState::parse(&parse_pairs("cursor=x&row=26")).unwrap().first_row, Some(26));
    }

    #[test]
    fn click_on_a_sorted_column_reverses_its_order() {
        let state = ListState::default();
        assert_eq!(state.address_sorted("started_at"), "/console/conversations?sort=started_at");
        let state = ListState { sort: Sort::parse("started_at").unwrap(), ..state };
        assert_eq!(state.address_sorted("started_at"), "/console/conversations");
        assert_eq!(state.address_sorted("axis"), "/console/conversations?sort=axis");
    }
}
