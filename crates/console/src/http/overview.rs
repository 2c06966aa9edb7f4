//! The overview of a period, compared with an earlier one. Every count of conversations is a link to their list.

use actix_web::HttpResponse;
use askama::Template;
use assay_contracts::evaluations::{Coverage, Step, Summary};
use assay_contracts::time::DAY_MILLIS;

use super::error::PageError;
use super::filter_form::FilterForm;
use super::form::{Faults, query_of};
use super::imports;
use super::overview_parts::{
    BandCell, Bar, Cell, ChargeRow, ChargeSegment, GroupRow, MeanChart, ReasonRow, band_cells, bars, cell,
    charge_bar, charge_rows, charts, groups, list_address_with, reasons,
};
use super::overview_selection::{
    BREAKDOWNS, BreakdownChoice, DISTRIBUTIONS, DistributionChoice, PERIOD_PARAMETERS, Selection,
    accepted_pairs, step_of,
};
use super::respond::page;
use super::shell::Shell;
use super::viewer::SessionRequest;
use crate::app::ImportCounts;
use crate::domain::{
    COMPARISONS, PERIODS, Pairs, charge_counts, charge_total, day_of, filter_pairs, first_value,
    format_count, format_days, list_address, with_query,
};

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    title: String,
    compared_period: Option<String>,
    links: Links,
    from: String,
    to: String,
    comparison_name: &'static str,
    /// Hidden fields of the form of the period.
    hidden: Pairs,
    faults: Faults,
    /// `None`: the imports cannot be counted now.
    coverage: Option<CoverageLine>,
    /// Imports that are not evaluated yet: "at least " or nothing, their number, and the address of the page of imports; absent if
    /// there are none.
    pending: Option<(&'static str, String, String)>,
    is_empty: bool,
    /// Whether the organization has no conversation at all.
    is_new: bool,
    /// "days", "weeks" or "quarters": the steps of the trends.
    step_name: &'static str,
    charts: Vec<MeanChart>,
    /// Label of the score whose distribution is shown.
    distribution_of: &'static str,
    scored: Cell,
    bars: Vec<Bar>,
    bands: Vec<BandCell>,
    /// The conversations with a charge.
    charge_total: Cell,
    charge_bar: Vec<ChargeSegment>,
    charges: Vec<ChargeRow>,
    reasons: Vec<ReasonRow>,
    /// Label of the breakdown, within a sentence.
    by: &'static str,
    groups: Vec<GroupRow>,
    all: Option<GroupRow>,
    is_truncated: bool,
}

/// Maximum number of rows of the breakdown, so that the page stays below 100 kB.
const MAX_GROUP_ROWS: usize = 150;

struct Links {
    periods: Vec<Link>,
    breakdowns: Vec<Link>,
    distributions: Vec<Link>,
}

struct Link {
    label: &'static str,
    address: String,
    is_current: bool,
}

/// Imported = scored + not applicable + pending + failed.
struct CoverageLine {
    /// "at least " before the numbers of imported and of pending conversations, if more may be pending; otherwise empty.
    at_least: &'static str,
    imported: String,
    /// Where the number leads: to the list, or to the page of imports while some are pending, which the list does not have.
    all: Option<String>,
    /// "at least " or nothing, the number, its name, and the address of its list.
    parts: Vec<(&'static str, String, &'static str, Option<String>)>,
}

pub(crate) async fn show(request: SessionRequest) -> Result<HttpResponse, PageError> {
    let query = query_of(&request.http);
    let (mut selection, faults) = Selection::read(&query);
    let services = request.services();
    let mut summary = services.summarize(&selection.query()).await?;
    if selection.is_default_period && has_no_imports(&summary) {
        // Nothing was imported in the default period: show everything rather than an empty page.
        selection.select_all();
        summary = services.summarize(&selection.query()).await?;
    }
    if selection.period.days.is_none() && summary.totals.count > 0 {
        // Only now is it known how long the period of everything is; by quarters a short one would have few points.
        let step = step_of(Some(length_in_days(&summary)));
        if step != selection.step {
            selection.step = step;
            summary = services.summarize(&selection.query()).await?;
        }
    }
    let counts = services.count_imports(&selection.filters(), &summary).await;
    let status = faults.status();
    let mut shell = Shell::new(&request, "/console", "Overview");
    shell.has_charts = summary.totals.scored > 0;
    page(&request.http, status, &view(shell, &query, &selection, faults, &summary, counts))
}

fn length_in_days(summary: &Summary) -> i64 {
    summary.period.to.millis_since(summary.period.from) / DAY_MILLIS
}

fn has_no_imports(summary: &Summary) -> bool {
    summary.totals.count == 0 && summary.coverage.is_none_or(|coverage| coverage.imported == 0)
}

/// The imports by status, each with the address of its list.
fn coverage_line(counts: ImportCounts, filters: &[(String, String)]) -> CoverageLine {
    let Coverage { imported, scored, not_applicable, failed, pending } = counts.coverage;
    let at_least = counts.at_least();
    let page_of_imports = with_query(imports::ADDRESS, filters);
    let all = if pending == 0 { list_address(filters) } else { page_of_imports.clone() };
    let address_of =
        |status: &str, number: u64| (number > 0).then(|| list_address_with(filters, &[("status", status)]));
    CoverageLine {
        at_least,
        imported: format_count(imported),
        all: (imported > 0).then_some(all),
        parts: vec![
            ("", format_count(scored), "scored", address_of("scored", scored)),
            (
                "",
                format_count(not_applicable),
                "not applicable",
                address_of("not_applicable", not_applicable),
            ),
            (at_least, format_count(pending), "pending", (pending > 0).then_some(page_of_imports)),
            ("", format_count(failed), "failed", address_of("failed", failed)),
        ],
    }
}

/// The links keep the accepted parameters of the query, each with another value of its own one.
fn links(query: &[(String, String)], selection: &Selection, faults: &Faults) -> Links {
    let accepted = accepted_pairs(query, faults);
    let address_with = |name: &str, value: &str, replaced: &[&str]| {
        let kept = accepted.iter().filter(|pair| !replaced.contains(&pair.0.as_str())).cloned();
        with_query("/console", &kept.chain([(name.to_owned(), value.to_owned())]).collect::<Pairs>())
    };
    let period = |name: &'static str, label| Link {
        label,
        address: address_with("period", name, &PERIOD_PARAMETERS),
        is_current: selection.period.name == Some(name),
    };
    let breakdown = |choice: &BreakdownChoice| Link {
        label: choice.label,
        address: address_with("by", choice.name, &["by"]) + "#h-by",
        is_current: choice.name == selection.breakdown.name,
    };
    let distribution = |choice: &DistributionChoice| Link {
        label: choice.label,
        address: address_with("of", choice.score, &["of"]) + "#h-distribution",
        is_current: choice.score == selection.distribution.score,
    };
    let periods = PERIODS.into_iter().map(|(name, label, _)| period(name, label));
    Links {
        periods: periods.chain([period("all", "All")]).collect(),
        breakdowns: BREAKDOWNS.iter().map(breakdown).collect(),
        distributions: DISTRIBUTIONS.iter().map(distribution).collect(),
    }
}

fn view(
    shell: Shell,
    query: &[(String, String)],
    selection: &Selection,
    faults: Faults,
    summary: &Summary,
    counts: Option<ImportCounts>,
) -> OverviewPage {
    let filters = filter_pairs(&selection.filters());
    let (from, to) = selection.period.days.unwrap_or((summary.period.from, summary.period.to));
    // A refused form keeps what was typed.
    let typed = |name: &str, otherwise: String| {
        let found = first_value(query, name).filter(|_| !faults.is_empty());
        found.map_or(otherwise, str::to_owned)
    };
    let mut groups = groups(summary, &filters);
    let is_truncated = groups.len() > MAX_GROUP_ROWS
        || summary.breakdown.as_ref().is_some_and(|breakdown| breakdown.truncated);
    groups.truncate(MAX_GROUP_ROWS);
    let compared = summary.compared.as_ref();
    let charges = &summary.totals.charges;
    let is_empty = summary.totals.count == 0;
    OverviewPage {
        title: if is_empty && selection.period.days.is_none() {
            "Overview".to_owned()
        } else {
            format_days(from, to)
        },
        compared_period: compared.map(|compared| format_days(compared.period.from, compared.period.to)),
        links: links(query, selection, &faults),
        from: typed("from", day_of(from)),
        to: typed("to", day_of(to.plus_millis(-1))),
        comparison_name: selection.comparison_name,
        hidden: selection.hidden_fields(),
        pending: counts.filter(|counts| counts.coverage.pending > 0).map(|counts| {
            let number = format_count(counts.coverage.pending);
            (counts.at_least(), number, with_query(imports::ADDRESS, &filters))
        }),
        // Of all time, and the imports could be counted: `is_empty` includes that there are none.
        is_new: is_empty && selection.period.days.is_none() && counts.is_some(),
        is_empty,
        step_name: match selection.step {
            Step::Day => "days",
            Step::Week => "weeks",
            Step::Quarter => "quarters",
        },
        charts: charts(summary, &filters),
        distribution_of: selection.distribution.label,
        scored: cell(summary.totals.scored, || list_address_with(&filters, &[("status", "scored")])),
        bars: bars(summary, selection.distribution.score, &filters),
        bands: band_cells(summary, &filters),
        charge_total: cell(charge_total(charges), || {
            list_address_with(&filters, &charge_counts(charges).map(|(name, _)| ("charge", name)))
        }),
        charge_bar: charge_bar(charges),
        charges: charge_rows(summary, &filters),
        reasons: reasons(summary, &filters),
        by: selection.breakdown.label,
        groups,
        all: (!is_empty).then(|| GroupRow::all(summary, &filters)),
        is_truncated,
        coverage: counts.map(|counts| coverage_line(counts, &filters)),
        faults,
        shell,
    }
}
