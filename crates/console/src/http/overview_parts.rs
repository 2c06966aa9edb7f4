//! The figures of the overview: charts, bars and tables, with links to the conversations that they count within `filters`.

use assay_contracts::evaluation::AxisBand;
use assay_contracts::evaluations::{
    ChargeCounts, DistributionStep, EvaluationFilters, Group, Means, Measures, Period, SeriesPoint, Summary,
};
use assay_contracts::validation::shortened;

use crate::domain::{
    MAX_NAME_CHARACTERS, PageTime, Pairs, Trend, TrendPoint, axis_floor, capitalized, charge_counts,
    charge_total, draw_trend, filter_pairs, format_change, format_count, format_share, format_signed,
    list_address, reason_meaning, score_percent, value_label,
};

/// The address of the list with these filters and more.
pub(crate) fn list_address_with(filters: &[(String, String)], more: &[(&str, &str)]) -> String {
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    list_address(&filters.iter().cloned().chain(more).collect::<Pairs>())
}

/// A count or share of conversations, and the address of their list unless there are none.
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) address: Option<String>,
}

pub(crate) fn cell(number: u64, address: impl FnOnce() -> String) -> Cell {
    Cell { text: format_count(number), address: (number > 0).then(address) }
}

/// The band of a mean, which is not rounded to a score.
fn band_of(mean: f64) -> &'static str {
    match mean {
        mean if mean >= 4.5 => "excellent",
        mean if mean >= 3.5 => "good",
        mean if mean >= 2.5 => "mixed",
        _ => "poor",
    }
}

pub(crate) struct MeanChart {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) short: &'static str,
    pub(crate) mean: String,
    pub(crate) band: &'static str,
    pub(crate) compared: Option<ComparedMean>,
    pub(crate) address: String,
    pub(crate) trend: Trend,
    pub(crate) first_and_last: String,
    pub(crate) table: Vec<PointRow>,
    pub(crate) floor: String,
}

/// The mean of the compared period, and the change since.
pub(crate) struct ComparedMean {
    pub(crate) change: String,
    pub(crate) mean: String,
    pub(crate) address: String,
}

/// A row of the table of a chart: a step of the period, and the same step of the compared one.
pub(crate) struct PointRow {
    pub(crate) from: PageTime,
    pub(crate) from_millis: i64,
    pub(crate) mean: String,
    pub(crate) address: String,
    pub(crate) compared_mean: String,
    pub(crate) compared_address: String,
}

/// Id on the page, name, short name, and the value.
type Mean = (&'static str, &'static str, &'static str, fn(&Means) -> f64);

const MEANS: [Mean; 4] = [
    ("axis", "AXIS", "", |means| means.axis),
    ("ra", "Resolution accuracy", "RA", |means| means.resolution_accuracy),
    ("ie", "Interaction effort", "IE", |means| means.interaction_effort),
    ("hs", "Handoff smoothness", "HS", |means| means.handoff_smoothness),
];

fn points(series: &[SeriesPoint], value: fn(&Means) -> f64) -> Vec<TrendPoint> {
    series.iter().map(|point| (point.period.from, point.measures.means.as_ref().map(value))).collect()
}

/// The four charts, all with the same axis.
pub(crate) fn charts(summary: &Summary, filters: &[(String, String)]) -> Vec<MeanChart> {
    let Some(means) = &summary.totals.means else { return Vec::new() };
    let series = summary.series.as_deref().unwrap_or_default();
    let compared = summary.compared.as_ref();
    let compared_series = compared.and_then(|compared| compared.series.as_deref()).unwrap_or_default();
    let all_values = MEANS.iter().flat_map(|(_, _, _, value)| {
        let both = series.iter().chain(compared_series);
        both.filter_map(|point| point.measures.means.as_ref()).map(value).collect::<Vec<_>>()
    });
    let floor = axis_floor(all_values);
    MEANS
        .iter()
        .map(|(id, title, short, value)| {
            let (current_points, compared_points) = (points(series, *value), points(compared_series, *value));
            let mean = value(means);
            let compared = compared.and_then(|compared| {
                let compared_mean = value(compared.totals.means.as_ref()?);
                Some(ComparedMean {
                    change: format_signed(mean - compared_mean, 2),
                    mean: format!("{compared_mean:.2}"),
                    address: list_address_of_period(&compared.period, &[("status", "scored")]),
                })
            });
            MeanChart {
                id,
                title,
                short,
                mean: format!("{mean:.2}"),
                band: band_of(mean),
                compared,
                address: list_address_with(filters, &[("status", "scored")]),
                first_and_last: first_and_last(&current_points),
                table: table(series, compared_series, *value),
                trend: draw_trend(&current_points, &compared_points, floor),
                floor: format!("{floor}"),
            }
        })
        .collect()
}

fn first_and_last(points: &[TrendPoint]) -> String {
    let mut values = points.iter().filter_map(|(_, value)| *value);
    match (values.next(), values.next_back()) {
        (Some(first), Some(last)) => format!("{first:.2} at the beginning and {last:.2} at the end"),
        (Some(only), None) => format!("{only:.2}"),
        (None, _) => "nothing scored".to_owned(),
    }
}

fn table(series: &[SeriesPoint], compared: &[SeriesPoint], value: fn(&Means) -> f64) -> Vec<PointRow> {
    let mean = |point: Option<&SeriesPoint>| {
        let means = point.and_then(|point| point.measures.means.as_ref());
        means.map(|means| format!("{:.2}", value(means))).unwrap_or_default()
    };
    let address = |point: Option<&SeriesPoint>| {
        point.map(|point| list_address_of_period(&point.period, &[("status", "scored")])).unwrap_or_default()
    };
    series
        .iter()
        .enumerate()
        .map(|(index, point)| PointRow {
            from: PageTime::day(point.period.from),
            from_millis: point.period.from.as_millis(),
            mean: mean(Some(point)),
            address: address(Some(point)),
            compared_mean: mean(compared.get(index)),
            compared_address: address(compared.get(index)),
        })
        .collect()
}

/// The overview has no filter but the period, so that the period of a step replaces it.
fn list_address_of_period(period: &Period, more: &[(&str, &str)]) -> String {
    let filters =
        EvaluationFilters { from: Some(period.from), to: Some(period.to), ..EvaluationFilters::default() };
    list_address_with(&filter_pairs(&filters), more)
}

/// One step of a distribution.
pub(crate) struct Bar {
    pub(crate) range: String,
    pub(crate) band: &'static str,
    pub(crate) width: String,
    pub(crate) count: Cell,
    pub(crate) share: String,
}

/// The distribution of a score, which is named by the prefix of its filters; the best at the top.
pub(crate) fn bars(summary: &Summary, score: &str, filters: &[(String, String)]) -> Vec<Bar> {
    let distributions = &summary.distributions;
    let steps: &[DistributionStep] = match score {
        "resolution_accuracy" => &distributions.resolution_accuracy,
        "interaction_effort" => &distributions.interaction_effort,
        "handoff_smoothness" => &distributions.handoff_smoothness,
        _ => &distributions.axis,
    };
    let highest = steps.iter().map(|step| step.count).max().unwrap_or(0).max(1);
    let (min, max) = (format!("{score}_min"), format!("{score}_max"));
    steps
        .iter()
        .rev()
        .map(|step| {
            let (low, high) = (step.min.to_string(), step.max.to_string());
            Bar {
                range: format!("{low}–{high}"),
                band: AxisBand::of_score(step.min).as_str(),
                width: format!("{:.1}", step.count as f64 / highest as f64 * 100.0),
                count: cell(step.count, || list_address_with(filters, &[(&min, &low), (&max, &high)])),
                share: format_share(step.count, summary.totals.scored),
            }
        })
        .collect()
}

pub(crate) struct BandCell {
    pub(crate) band: &'static str,
    pub(crate) count: Cell,
    pub(crate) share: String,
    pub(crate) share_change: Option<String>,
}

pub(crate) fn band_cells(summary: &Summary, filters: &[(String, String)]) -> Vec<BandCell> {
    let counts = |measures: &Measures| {
        let bands = measures.bands;
        [("excellent", bands.excellent), ("good", bands.good), ("mixed", bands.mixed), ("poor", bands.poor)]
    };
    let scored = summary.totals.scored;
    let compared =
        summary.compared.as_ref().map(|compared| (counts(&compared.totals), compared.totals.scored));
    counts(&summary.totals)
        .into_iter()
        .enumerate()
        .map(|(index, (band, number))| BandCell {
            band,
            count: cell(number, || list_address_with(filters, &[("band", band)])),
            share: format_share(number, scored),
            share_change: compared
                .map(|(counts, whole)| format_change((number, scored), (counts[index].1, whole))),
        })
        .collect()
}

/// A narrower segment of a charge bar has no text; in percent.
const MIN_WIDTH_WITH_TEXT: f64 = 14.0;

/// A segment of a charge bar: name, x and width in percent, and a text if it fits.
pub(crate) type ChargeSegment = (&'static str, String, String, String);

pub(crate) fn charge_bar(charges: &ChargeCounts) -> Vec<ChargeSegment> {
    let total = charge_total(charges).max(1) as f64;
    let mut x = 0.0;
    let mut bar = Vec::new();
    for (name, number) in charge_counts(charges).into_iter().filter(|(_, number)| *number > 0) {
        let width = number as f64 / total * 100.0;
        let text = if width > MIN_WIDTH_WITH_TEXT { name.to_owned() } else { String::new() };
        bar.push((name, format!("{x:.2}"), format!("{width:.2}"), text));
        x += width;
    }
    bar
}

pub(crate) struct ChargeRow {
    pub(crate) name: &'static str,
    pub(crate) count: Cell,
    pub(crate) share: String,
    pub(crate) compared_share: Option<Cell>,
    pub(crate) share_change: Option<String>,
}

/// The assessments of charges beside those of the compared period.
pub(crate) fn charge_rows(summary: &Summary, filters: &[(String, String)]) -> Vec<ChargeRow> {
    let total = charge_total(&summary.totals.charges);
    let compared = summary.compared.as_ref().map(|compared| {
        let charges = &compared.totals.charges;
        (&compared.period, charge_counts(charges), charge_total(charges))
    });
    charge_counts(&summary.totals.charges)
        .into_iter()
        .enumerate()
        .map(|(index, (name, number))| ChargeRow {
            name,
            count: cell(number, || list_address_with(filters, &[("charge", name)])),
            share: format_share(number, total),
            compared_share: compared.map(|(period, counts, whole)| Cell {
                text: format_share(counts[index].1, whole),
                address: (counts[index].1 > 0).then(|| list_address_of_period(period, &[("charge", name)])),
            }),
            share_change: compared
                .map(|(_, counts, whole)| format_change((number, total), (counts[index].1, whole))),
        })
        .collect()
}

pub(crate) struct ReasonRow {
    pub(crate) code: &'static str,
    pub(crate) meaning: &'static str,
    /// Charges to review, disputed ones, and those with any assessment.
    pub(crate) cells: [Cell; 3],
}

pub(crate) fn reasons(summary: &Summary, filters: &[(String, String)]) -> Vec<ReasonRow> {
    let reasons = summary.charge_reasons.iter().filter(|reason| reason.count > 0);
    reasons
        .map(|found| {
            let code = found.reason.as_str();
            let with = |charge| list_address_with(filters, &[("charge", charge), ("charge_reason", code)]);
            ReasonRow {
                code,
                meaning: reason_meaning(found.reason),
                cells: [
                    cell(found.charges.review, || with("review")),
                    cell(found.charges.disputed, || with("disputed")),
                    cell(found.count, || list_address_with(filters, &[("charge_reason", code)])),
                ],
            }
        })
        .collect()
}

/// A row of the breakdown.
pub(crate) struct GroupRow {
    pub(crate) name: String,
    /// Whether it is a group of the second dimension.
    pub(crate) is_inner: bool,
    pub(crate) address: Option<String>,
    pub(crate) scored: Cell,
    /// AXIS and its parts.
    pub(crate) means: [String; 4],
    pub(crate) axis_width: String,
    pub(crate) scored_address: String,
    pub(crate) charges: [Cell; 3],
    /// Share of the disputed charges.
    pub(crate) disputed: String,
    pub(crate) bar: Vec<ChargeSegment>,
}

impl GroupRow {
    fn new(name: String, measures: &Measures, filters: &[(String, String)]) -> Self {
        let means = measures.means.as_ref();
        let mean = |value: fn(&Means) -> f64| {
            means.map_or_else(|| "–".to_owned(), |means| format!("{:.2}", value(means)))
        };
        let charges = &measures.charges;
        let scored_address = list_address_with(filters, &[("status", "scored")]);
        Self {
            name,
            is_inner: false,
            address: Some(list_address(filters)),
            scored: cell(measures.scored, || scored_address.clone()),
            means: MEANS.map(|(_, _, _, value)| mean(value)),
            // The drawing is 88 wide.
            axis_width: format!("{:.1}", means.map_or(0.0, |means| score_percent(means.axis) * 0.88)),
            charges: charge_counts(charges)
                .map(|(name, number)| cell(number, || list_address_with(filters, &[("charge", name)]))),
            disputed: format_share(charges.disputed, charge_total(charges)),
            bar: charge_bar(charges),
            scored_address,
        }
    }

    /// The whole period.
    pub(crate) fn all(summary: &Summary, filters: &[(String, String)]) -> Self {
        Self::new("All".to_owned(), &summary.totals, filters)
    }
}

/// The rows of the breakdown: each group of the first dimension, followed by its groups of the second one, if there is one.
pub(crate) fn groups(summary: &Summary, filters: &[(String, String)]) -> Vec<GroupRow> {
    let Some(breakdown) = &summary.breakdown else { return Vec::new() };
    let Some(outer) = breakdown.by.first() else { return Vec::new() };
    let inner = breakdown.by.get(1);
    let mut found = Vec::new();
    for group in &breakdown.groups {
        let group_filters = with_filter_of(group, outer.as_str(), filters);
        let mut row = GroupRow::new(name_of(outer.as_str(), group), &group.measures, &group_filters);
        // No filter selects evaluations without a value: these failed, so that their cells count nothing and have no links.
        row.address = row.address.filter(|_| group.value.is_some());
        found.push(row);
        let Some(inner) = inner else { continue };
        for part in &group.groups {
            let part_filters = with_filter_of(part, inner.as_str(), &group_filters);
            let mut row = GroupRow::new(name_of(inner.as_str(), part), &part.measures, &part_filters);
            row.is_inner = true;
            row.address = row.address.filter(|_| group.value.is_some() && part.value.is_some());
            found.push(row);
        }
    }
    found
}

fn with_filter_of(group: &Group, dimension: &str, filters: &[(String, String)]) -> Pairs {
    let value = group.value.iter().map(|value| (dimension.to_owned(), value.clone()));
    filters.iter().cloned().chain(value).collect()
}

fn name_of(dimension: &str, group: &Group) -> String {
    match (&group.label, &group.value) {
        (Some(label), _) => shortened(label, MAX_NAME_CHARACTERS),
        (None, Some(value)) if dimension == "agent" && value == "none" => "No agent named".to_owned(),
        (None, Some(value)) => capitalized(&shortened(&value_label(dimension, value), MAX_NAME_CHARACTERS)),
        (None, None) => "Unknown".to_owned(),
    }
}
