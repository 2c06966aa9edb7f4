//! `GET /internal/v1/evaluations` and a ticket's neighbours: pages, cursors, totals and `ETag`s.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use assay_contracts::agent::AgentFacts;
use assay_contracts::evaluations::{
    EvaluationFilters, EvaluationItem, EvaluationPage, Neighbours, OrNone, Sort, SortKey, Summary,
    encode_query,
};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::{AgentId, OrganizationId, TicketId};
use assay_contracts::tenant::Scope;
use assay_contracts::ticket::MAX_SUBJECT_CHARS;
use assay_contracts::time::DAY_MILLIS;
use assay_contracts::validation::shortened;
use assay_export::domain::evaluation_facts::EvaluationFacts;
use assay_platform::auth::Audience;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{execute_on, on_both_databases};
use reqwest::Response;

use crate::copied_facts::copy_facts;
use crate::list_order::{compare, ids};
use crate::random_evaluations::{Random, satisfies};
use crate::samples::{STARTED, deletion, evaluated};
use crate::test_app::{TestApp, claims, header, problem};
use crate::test_database::record;

/// An `ETag` that no response has.
pub const UNKNOWN_ETAG: &str = "\"-\"";

pub async fn get(app: &TestApp, organization: OrganizationId, path: &str, etag: &str) -> Result<Response> {
    let claims = claims(organization, Scope::EvaluationsRead);
    let token = app.tokens.issue(Audience::Export, &claims, now())?;
    let request = app.http.get(format!("{}/internal/v1/evaluations{path}", app.address)).bearer_auth(token);
    Ok(request.header("if-none-match", etag).send().await?)
}

async fn page(app: &TestApp, organization: OrganizationId, query: &str) -> Result<EvaluationPage> {
    Ok(get(app, organization, &format!("?{query}"), UNKNOWN_ETAG).await?.error_for_status()?.json().await?)
}

fn items(events: &[ConversationEvaluated]) -> Vec<EvaluationItem> {
    events.iter().map(|event| EvaluationFacts::of(event).into_item()).collect()
}

fn sorts() -> impl Iterator<Item = Sort> {
    let keys = SortKey::ALL.iter().copied();
    keys.flat_map(|key| [true, false].map(|descending| Sort { key, descending }))
}

fn query(filters: &EvaluationFilters, sort: Sort, more: &[(&'static str, &str)]) -> String {
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    encode_query(filters.to_pairs().into_iter().chain([("sort", sort.to_string())]).chain(more))
}

/// The parameters of a page; `cursor` is that of the page before it.
fn page_query(filters: &EvaluationFilters, sort: Sort, limit: &str, cursor: Option<&str>) -> String {
    let parameters = [("limit", limit)].into_iter().chain(cursor.map(|cursor| ("cursor", cursor)));
    query(filters, sort, &parameters.collect::<Vec<_>>())
}

async fn pages_of_any_order_hold_every_row_once(app: TestApp) -> Result<()> {
    let (organization, mut random) = (new_id(), Random::new(3));
    let events: Vec<_> = (0..60).map(|_| random.event(organization)).collect();
    record(&app.exports, &events).await?;
    let rows = items(&events);
    let all = EvaluationFilters::default();
    let words = EvaluationFilters { search: Some("late".to_owned()), ..EvaluationFilters::default() };
    let french = EvaluationFilters { language: vec!["fr".to_owned()], ..EvaluationFilters::default() };
    for (sort, filters) in sorts().flat_map(|sort| [&all, &words, &french].map(|filters| (sort, filters))) {
        let mut expected: Vec<EvaluationItem> =
            rows.iter().filter(|row| satisfies(row, filters)).cloned().collect();
        expected.sort_by(|one, other| compare(one, other, sort));
        let (mut found, mut cursor): (Vec<EvaluationItem>, _) = (Vec::new(), None::<String>);
        loop {
            let query = page_query(filters, sort, "7", cursor.as_deref());
            let page = page(&app, organization, &query).await?;
            assert_eq!((page.total.count, page.total.exact), (expected.len() as u64, true), "{sort}");
            assert_eq!(page.page_info.has_next_page, page.page_info.next_cursor.is_some());
            found.extend(page.data);
            cursor = page.page_info.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids(&found), ids(&expected), "{sort} {}", filters.to_query());
        assert_eq!(found, expected, "{sort}");
    }
    Ok(())
}

async fn agent_filter_compares_ids_only(app: TestApp) -> Result<()> {
    let (organization, mut random) = (new_id(), Random::new(5));
    let mut event = random.event(organization);
    let [own, other]: [AgentId; 2] = [new_id(), new_id()];
    event.ticket.agents =
        vec![AgentFacts { id: own, external_id: other.to_string(), name: format!("\"id\":\"{other}\"") }];
    record(&app.exports, &[event]).await?;
    for (agent, count) in [(own, 1), (other, 0)] {
        let agent = vec![OrNone::Value(agent)];
        let filters = EvaluationFilters { agent, ..EvaluationFilters::default() };
        let page = page(&app, organization, &query(&filters, Sort::default(), &[])).await?;
        assert_eq!((page.data.len(), page.total.count), (count, count as u64), "{}", filters.to_query());
    }
    Ok(())
}

/// Events have subjects of at most 1,000 characters and the mark.
async fn cut_subject_keeps_its_mark(app: TestApp) -> Result<()> {
    let organization = new_id();
    let mut event = evaluated(organization, STARTED);
    let cut = shortened(&"é".repeat(1_001), MAX_SUBJECT_CHARS);
    event.ticket.subject = Some(cut.clone());
    record(&app.exports, &[event]).await?;
    let page = page(&app, organization, "").await?;
    assert!(cut.ends_with('…'));
    assert_eq!(page.data[0].ticket.subject, cut);
    Ok(())
}

/// More than 1,000 conversations match, so candidates are ranked by the columns of days. Conversations with an AXIS score below 1.4
/// never match: in the order by ascending AXIS the first candidates hold few matches, and more must be ranked.
async fn pages_of_a_search_with_many_hits_keep_their_order(app: TestApp) -> Result<()> {
    let (organization, mut random) = (new_id(), Random::new(31));
    let events: Vec<_> = (0..1_800)
        .map(|number| {
            let mut event = random.event(organization);
            event.ticket.subject = Some("late delivery".to_owned());
            let low =
                |row: &EvaluationItem| row.evaluation.scores.is_some_and(|scores| scores.axis.tenths() < 14);
            if number % 4 == 0 || low(&EvaluationFacts::of(&event).into_item()) {
                event.ticket.subject = Some("other".to_owned());
            }
            event
        })
        .collect();
    for batch in events.chunks(300) {
        record(&app.exports, batch).await?;
    }
    let filters = EvaluationFilters { search: Some("late".to_owned()), ..EvaluationFilters::default() };
    for sort in sorts() {
        let mut expected: Vec<EvaluationItem> =
            items(&events).into_iter().filter(|row| satisfies(row, &filters)).collect();
        assert!(expected.len() > 1_000, "{}", expected.len());
        expected.sort_by(|one, other| compare(one, other, sort));
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..6 {
            let limit = if found.is_empty() { "3" } else { "90" };
            let query = page_query(&filters, sort, limit, cursor.as_deref());
            let page = page(&app, organization, &query).await?;
            assert_eq!((page.total.count, page.total.exact), (expected.len() as u64, true));
            found.extend(ids(&page.data));
            cursor = page.page_info.next_cursor;
        }
        // A page of 3 and five pages of 90.
        assert_eq!(found, ids(&expected)[..453], "{sort}");
    }
    Ok(())
}

async fn pages_neither_skip_nor_repeat_while_rows_change(app: TestApp) -> Result<()> {
    let mut random = Random::new(11);
    for sort in sorts() {
        let organization = new_id();
        let events: Vec<_> = (0..40).map(|_| random.event(organization)).collect();
        record(&app.exports, &events).await?;
        let mut kept: BTreeMap<TicketId, EvaluationItem> =
            items(&events).into_iter().map(|row| (row.ticket.id, row)).collect();
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let query = page_query(&EvaluationFilters::default(), sort, "6", cursor.as_deref());
            let page = page(&app, organization, &query).await?;
            assert_eq!(page.total.count, 40, "as counted for the first page");
            seen.extend(ids(&page.data));
            cursor = page.page_info.next_cursor;
            if cursor.is_none() {
                break;
            }
            let new = random.event(organization);
            record(&app.exports, &[new]).await?;
            let gone = random.choose(&kept.keys().copied().collect::<Vec<_>>());
            kept.remove(&gone);
            app.exports.delete_rows(vec![deletion(organization, gone)], now()).await?;
        }
        let distinct: BTreeSet<TicketId> = seen.iter().copied().collect();
        assert_eq!(distinct.len(), seen.len(), "{sort}: a row twice");
        let mut expected: Vec<EvaluationItem> = kept.values().cloned().collect();
        expected.sort_by(|one, other| compare(one, other, sort));
        seen.retain(|id| kept.contains_key(id));
        assert_eq!(seen, ids(&expected), "{sort}: rows that were neither added nor deleted");
    }
    Ok(())
}

async fn cursor_of_another_list_is_refused(app: TestApp) -> Result<()> {
    let (organization, other, mut random) = (new_id(), new_id(), Random::new(5));
    let events: Vec<_> = (0..9).map(|_| random.event(organization)).collect();
    record(&app.exports, &events).await?;
    let first = page(&app, organization, "limit=2&sort=axis").await?;
    let cursor = first.page_info.next_cursor.unwrap_or_default();
    assert_eq!(page(&app, organization, &format!("limit=2&sort=axis&cursor={cursor}")).await?.data.len(), 2);
    let mut altered = cursor.clone().into_bytes();
    altered[3] = if altered[3] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered)?;
    let cases = [
        (other, format!("sort=axis&cursor={cursor}")),
        (organization, format!("sort=-axis&cursor={cursor}")),
        (organization, format!("sort=confidence&cursor={cursor}")),
        (organization, format!("cursor={cursor}")),
        (organization, format!("sort=axis&language=fr&cursor={cursor}")),
        (organization, format!("sort=axis&cursor={altered}")),
        (organization, format!("sort=axis&cursor={}", &cursor[1..])),
        (organization, "sort=axis&cursor=%00".to_owned()),
    ];
    for (organization, query) in cases {
        let response = get(&app, organization, &format!("?{query}"), UNKNOWN_ETAG).await?;
        problem(response, 400, "invalid-cursor").await?;
    }
    // The size of a page is not part of the list.
    assert_eq!(page(&app, organization, &format!("limit=50&sort=axis&cursor={cursor}")).await?.data.len(), 7);
    Ok(())
}

async fn neighbours_are_those_of_the_list(app: TestApp) -> Result<()> {
    let (organization, mut random) = (new_id(), Random::new(17));
    let events: Vec<_> = (0..20).map(|_| random.event(organization)).collect();
    record(&app.exports, &events).await?;
    let rows = items(&events);
    let filters = EvaluationFilters { language: vec!["en".to_owned()], ..EvaluationFilters::default() };
    let path = |id: TicketId, sort: Sort| format!("/{id}/neighbours?{}", query(&filters, sort, &[]));
    for sort in sorts() {
        let mut list: Vec<&EvaluationItem> = rows.iter().filter(|row| satisfies(row, &filters)).collect();
        assert!(list.len() > 2 && list.len() < rows.len());
        list.sort_by(|one, other| compare(one, other, sort));
        for row in &rows {
            let response = get(&app, organization, &path(row.ticket.id, sort), UNKNOWN_ETAG).await?;
            let found: Neighbours = response.error_for_status()?.json().await?;
            let before = list.iter().filter(|other| compare(other, row, sort).is_lt()).count();
            let included = satisfies(row, &filters);
            let after = before + usize::from(included);
            let id = |index: usize| list.get(index).map(|row| row.ticket.id);
            assert_eq!(found.previous, before.checked_sub(1).and_then(id), "{sort}");
            assert_eq!((found.next, found.included), (id(after), included), "{sort}");
            assert_eq!(found.position, included.then_some(before as u64 + 1), "{sort}");
            assert_eq!((found.total.count, found.total.exact), (list.len() as u64, true));
        }
    }
    let of_another = get(&app, new_id(), &path(rows[0].ticket.id, Sort::default()), UNKNOWN_ETAG).await?;
    problem(of_another, 404, "ticket-not-found").await?;
    Ok(())
}

async fn list_is_not_sent_again_while_it_is_unchanged(app: TestApp) -> Result<()> {
    let (organization, mut random) = (new_id(), Random::new(23));
    record(&app.exports, &[random.event(organization)]).await?;
    for path in ["?sort=axis", "/summary?by=language"] {
        let first = get(&app, organization, path, UNKNOWN_ETAG).await?;
        let etag = header(&first, "etag").unwrap_or_default();
        assert_eq!((first.status().as_u16(), etag.is_empty()), (200, false));
        assert_eq!(header(&first, "cache-control").as_deref(), Some("private, no-cache"));
        for known in [etag.clone(), format!("\"other\", {etag}"), format!("W/{etag}"), "*".to_owned()] {
            let again = get(&app, organization, path, &known).await?;
            assert_eq!(
                (again.status().as_u16(), header(&again, "etag")),
                (304, Some(etag.clone())),
                "{known}"
            );
            assert_eq!((header(&again, "content-type"), again.text().await?), (None, String::new()));
        }
        // The same path of another organization is another list.
        assert_eq!(get(&app, new_id(), path, &etag).await?.status(), 200);
        record(&app.exports, &[random.event(organization)]).await?;
        let changed = get(&app, organization, path, &etag).await?;
        assert_eq!(changed.status(), 200, "{path}");
        assert_ne!(header(&changed, "etag"), Some(etag));
    }
    Ok(())
}

/// While years are imported, a list does not read all of their rows for its total; a summary does.
async fn total_is_a_bound_while_many_rows_change(app: TestApp) -> Result<()> {
    let organization: OrganizationId = new_id();
    let [changing, unchanged] =
        [evaluated(organization, STARTED), evaluated(organization, STARTED.plus_millis(-900_000_000))];
    record(&app.exports, &[changing.clone(), unchanged]).await?;
    let database = &app.test_database.database;
    let stale_days = "SELECT count(*) FROM stale_days";
    app.test_database.number_becomes("the columns of both days", stale_days, 0).await?;
    copy_facts(database, changing.ticket.id, 12_000).await?;
    let day = STARTED.as_millis() / DAY_MILLIS;
    // Stale columns that are not refreshed for an hour, with more rows than a list reads of stale days: 20,000.
    let refreshed_at = now().plus_millis(3_600_000).as_millis();
    let is_day = format!("organization_id = '{organization}' AND day = {day}");
    execute_on(database, format!("DELETE FROM evaluation_days WHERE {is_day}")).await?;
    execute_on(
        database,
        format!(
            "INSERT INTO evaluation_days (organization_id, day, version, refreshed_at, rows, packed)
                 VALUES ('{organization}', {day}, '{organization}', {refreshed_at}, 25000, '')"
        ),
    )
    .await?;
    execute_on(database, format!("INSERT INTO stale_days VALUES ('{organization}', {day}, 0)")).await?;
    for sort in ["started_at", "-axis", "confidence"] {
        let first = page(&app, organization, &format!("sort={sort}")).await?;
        assert_eq!((first.total.count, first.total.exact, first.data.len()), (2_000, false, 20), "{sort}");
    }
    // Few rows are counted exactly.
    let period = format!("from={}", (day + 1) * DAY_MILLIS);
    let total = page(&app, organization, &period).await?.total;
    assert_eq!((total.count, total.exact), (0, true));
    let rare = page(&app, organization, "external_id=nothing").await?.total;
    assert_eq!((rare.count, rare.exact), (0, true));
    let summary: Summary = get(&app, organization, "/summary", UNKNOWN_ETAG).await?.json().await?;
    assert_eq!(summary.totals.count, 12_002);
    // So few rows of stale days are read.
    execute_on(database, format!("UPDATE evaluation_days SET rows = 15000 WHERE {is_day}")).await?;
    let total = page(&app, organization, "").await?.total;
    assert_eq!((total.count, total.exact), (12_002, true));
    Ok(())
}

on_both_databases! { TestApp {
    agent_filter_compares_ids_only,
    pages_of_any_order_hold_every_row_once,
    cut_subject_keeps_its_mark,
    pages_of_a_search_with_many_hits_keep_their_order,
    pages_neither_skip_nor_repeat_while_rows_change,
    cursor_of_another_list_is_refused,
    neighbours_are_those_of_the_list,
    list_is_not_sent_again_while_it_is_unchanged,
    total_is_a_bound_while_many_rows_change,
} }
