//! The overview of a period beside the one before. Every number that rows add up to is a link to them.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use assay_contracts::evaluations::{Coverage, Dimension, EvaluationFilters, Step, Summary, SummaryQuery};
use assay_platform::runtime::now;

use super::Console;
use super::error::PageError;
use super::filter_form::FilterForm;
use super::form::Faults;
use super::overview_parts::{BandCell, band_cells, charge_bar};
use super::overview_parts::{
    Bar, ChargeRow, GroupRow, MeanChart, ReasonRow, bars, charge_rows, charts, groups, reasons,
};
use super::respond::page;
use super::shell::Shell;
use super::viewer::Viewer;
use crate::app::{self, Services, summarize};
use crate::domain::{
    PERIODS, Pairs, Period, beside, count, day_of, day_text, filter_pairs, list_address, with_query,
};

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    title: String,
    beside: Option<String>,
    periods: Vec<Link>,
    breakdowns: Vec<Link>,
    distributions: Vec<Link>,
    from: String,
    to: String,
    beside_name: String,
    faults: Faults,
    coverage: Option<CoverageLine>,
    is_empty: bool,
    is_new: bool,
    parts_are: &'static str,
    charts: Vec<MeanChart>,
    distribution_of: &'static str,
    scored: String,
    scored_rows: Option<String>,
    bars: Vec<Bar>,
    bands: Vec<BandCell>,
    charge_total: String,
    charge_rows: Option<String>,
    charge_bar: Vec<(&'static str, String, String, String)>,
    charges: Vec<ChargeRow>,
    reasons: Vec<ReasonRow>,
    by: &'static str,
    groups: Vec<GroupRow>,
    all: Option<GroupRow>,
    is_truncated: bool,
}

/// A choice that is a link.
struct Link {
    label: &'static str,
    address: String,
    is_current: bool,
}

/// Imported = scored + not applicable + pending + failed.
struct CoverageLine {
    imported: String,
    /// Absent while some are pending: there are no rows of those.
    all: Option<String>,
    parts: Vec<(String, &'static str, Option<String>)>,
}

/// The choices of the page, as its URL has them.
struct Choices {
    period: Period,
    beside: String,
    by: &'static (&'static str, &'static str, &'static [Dimension]),
    of: &'static (&'static str, &'static str),
    /// The parts of the trends.
    step: Step,
}

type Breakdown = (&'static str, &'static str, &'static [Dimension]);

const BREAKDOWNS: [Breakdown; 4] = [
    ("tool", "AI tool, agent", &[Dimension::AiTool, Dimension::Agent]),
    ("agent", "Agent", &[Dimension::Agent]),
    ("involvement", "Involvement", &[Dimension::Involvement]),
    ("language", "Language", &[Dimension::Language]),
];

const DISTRIBUTIONS: [(&str, &str); 4] = [
    ("axis", "AXIS"),
    ("resolution_accuracy", "RA"),
    ("interaction_effort", "IE"),
    ("handoff_smoothness", "HS"),
];

/// Above this many days the parts of a series are weeks.
const MAX_DAYS: i64 = 31;

pub(crate) async fn show(request: HttpRequest, console: Data<Console>) -> Result<HttpResponse, PageError> {
    let viewer = Viewer::of(&request, &console).await?;
    let query: Pairs = url::form_urlencoded::parse(request.query_string().as_bytes()).into_owned().collect();
    let (mut choices, is_default, faults) = read_choices(&query);
    let services = &console.services;
    let mut summary = summarize(services, &viewer.claims, &query_of(&choices)).await?;
    if is_default && is_nothing(&summary) {
        // A first look at conversations of last year should not be an empty page.
        choices.period = Period { name: Some("all"), days: None };
        choices.step = step_of(&choices.period);
        summary = summarize(services, &viewer.claims, &query_of(&choices)).await?;
    }
    if choices.period.days.is_none() && is_short(&summary) {
        // Weeks of some days would be one point.
        let query = SummaryQuery { step: Some(Step::Day), ..query_of(&choices) };
        summary = summarize(services, &viewer.claims, &query).await?;
        choices.step = Step::Day;
    }
    let coverage = coverage(services, &viewer, &choices, &summary).await?;
    let status = if faults.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let mut shell = Shell::new(&request, &console, &viewer, "/console", "Overview");
    shell.has_charts = summary.totals.scored > 0;
    page(&request, status, &view(shell, &query, &choices, faults, &summary, coverage))
}

/// Whether everything lies within some weeks.
fn is_short(summary: &Summary) -> bool {
    let days = summary.period.to.millis_since(summary.period.from) / 86_400_000;
    summary.totals.count > 0 && days <= MAX_DAYS
}

fn is_nothing(summary: &Summary) -> bool {
    summary.totals.count == 0 && summary.coverage.is_none_or(|coverage| coverage.imported == 0)
}

fn read_choices(query: &[(String, String)]) -> (Choices, bool, Faults) {
    let get = |name: &str| query.iter().find(|pair| pair.0 == name).map_or("", |pair| pair.1.trim());
    let mut faults = Faults::default();
    let (period, is_default) = match (get("period"), get("from"), get("to")) {
        ("", "", "") => (None, true),
        ("", from, to) => match Period::of_days(from, to) {
            Ok(period) => (Some(period), false),
            Err((field, text)) => {
                faults.add(field, text);
                (None, false)
            }
        },
        (name, ..) => {
            let period = Period::named(name, now());
            if period.is_none() {
                faults.add("period", "is not the name of a period");
            }
            (period, false)
        }
    };
    let fallback = || Period::named("28d", now()).unwrap_or(Period { name: Some("all"), days: None });
    let period = period.unwrap_or_else(fallback);
    let choices = Choices {
        step: step_of(&period),
        period,
        beside: get("beside").to_owned(),
        by: BREAKDOWNS.iter().find(|(name, ..)| *name == get("by")).unwrap_or(&BREAKDOWNS[0]),
        of: DISTRIBUTIONS.iter().find(|(name, _)| *name == get("of")).unwrap_or(&DISTRIBUTIONS[0]),
    };
    (choices, is_default, faults)
}

fn step_of(period: &Period) -> Step {
    if period.length().is_some_and(|days| days <= MAX_DAYS) { Step::Day } else { Step::Week }
}

fn filters_of(period: &Period) -> EvaluationFilters {
    let (from, to) = (period.days.map(|days| days.0), period.days.map(|days| days.1));
    EvaluationFilters { from, to, ..EvaluationFilters::default() }
}

fn query_of(choices: &Choices) -> SummaryQuery {
    SummaryQuery {
        filters: filters_of(&choices.period),
        by: choices.by.2.to_vec(),
        step: Some(choices.step),
        compare: choices.period.days.and_then(|_| beside(&choices.beside)),
    }
}

/// What became of the imports. Those that wait are known to ingest alone.
async fn coverage(
    services: &Services,
    viewer: &Viewer,
    choices: &Choices,
    summary: &Summary,
) -> Result<Option<CoverageLine>, PageError> {
    let Some(coverage) =
        app::coverage(services, &viewer.claims, &filters_of(&choices.period), summary).await?
    else {
        return Ok(None);
    };
    let base = filter_pairs(&filters_of(&choices.period));
    let rows = |status: &str| {
        let mut pairs = base.clone();
        pairs.push(("status".to_owned(), status.to_owned()));
        Some(list_address(&pairs))
    };
    let Coverage { imported, scored, not_applicable, failed, pending } = coverage;
    Ok(Some(CoverageLine {
        imported: count(imported),
        all: (pending == 0 && imported > 0).then(|| list_address(&base)),
        parts: vec![
            (count(scored), "scored", rows("scored").filter(|_| scored > 0)),
            (count(not_applicable), "not applicable", rows("not_applicable").filter(|_| not_applicable > 0)),
            (count(pending), "pending", None),
            (count(failed), "failed", rows("failed").filter(|_| failed > 0)),
        ],
    }))
}

fn view(
    shell: Shell,
    query: &[(String, String)],
    choices: &Choices,
    faults: Faults,
    summary: &Summary,
    coverage: Option<CoverageLine>,
) -> OverviewPage {
    let base = filter_pairs(&filters_of(&choices.period));
    let period = choices.period.days.unwrap_or((summary.period.from, summary.period.to));
    let typed = |name: &str, otherwise: String| {
        let found = query.iter().find(|pair| pair.0 == name).map(|pair| pair.1.clone());
        found.filter(|_| !faults.is_empty()).unwrap_or(otherwise)
    };
    let with = |name: &'static str, value: &str| {
        let mut pairs: Pairs = query.iter().filter(|pair| pair.0 != name).cloned().collect();
        pairs.push((name.to_owned(), value.to_owned()));
        with_query("/console", &pairs)
    };
    let period_link = |name: &'static str, label| {
        let mut pairs: Pairs = query
            .iter()
            .filter(|pair| !matches!(pair.0.as_str(), "period" | "from" | "to"))
            .cloned()
            .collect();
        pairs.push(("period".to_owned(), name.to_owned()));
        let is_current = choices.period.name == Some(name);
        Link { label, address: with_query("/console", &pairs), is_current }
    };
    let rows = |more: &[(&str, &str)]| {
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        list_address(&base.iter().cloned().chain(more).collect::<Pairs>())
    };
    let compared = summary.compared.as_ref();
    let charge_counts = &summary.totals.charges;
    let charge_total = charge_counts.supported + charge_counts.review + charge_counts.disputed;
    let is_empty = summary.totals.count == 0;
    OverviewPage {
        title: if is_empty && choices.period.days.is_none() {
            "Overview".to_owned()
        } else {
            day_text(period.0, period.1)
        },
        beside: compared.map(|compared| day_text(compared.period.from, compared.period.to)),
        periods: PERIODS
            .into_iter()
            .map(|(name, label, _)| period_link(name, label))
            .chain([period_link("all", "All")])
            .collect(),
        breakdowns: BREAKDOWNS
            .iter()
            .map(|(name, label, _)| Link {
                label,
                address: with("by", name) + "#h-by",
                is_current: *name == choices.by.0,
            })
            .collect(),
        distributions: DISTRIBUTIONS
            .iter()
            .map(|(name, label)| Link {
                label,
                address: with("of", name) + "#h-distribution",
                is_current: *name == choices.of.0,
            })
            .collect(),
        from: typed("from", day_of(period.0)),
        to: typed("to", day_of(period.1.plus_millis(-1))),
        beside_name: choices.beside.clone(),
        is_new: is_empty && choices.period.days.is_none(),
        is_empty,
        parts_are: if choices.step == Step::Day { "days" } else { "weeks" },
        charts: charts(summary, &base),
        distribution_of: choices.of.1,
        scored: count(summary.totals.scored),
        scored_rows: (summary.totals.scored > 0).then(|| rows(&[("status", "scored")])),
        bars: bars(summary, choices.of.0, &base),
        bands: band_cells(summary, &base),
        charge_total: count(charge_total),
        charge_rows: (charge_total > 0)
            .then(|| rows(&["supported", "review", "disputed"].map(|charge| ("charge", charge)))),
        charge_bar: charge_bar(charge_counts),
        charges: charge_rows(summary, &base),
        reasons: reasons(summary, &base),
        by: choices.by.1,
        groups: groups(summary, &base),
        all: (!is_empty).then(|| GroupRow::all(summary, &base)),
        is_truncated: summary.breakdown.as_ref().is_some_and(|breakdown| breakdown.truncated),
        coverage,
        faults,
        shell,
    }
}
