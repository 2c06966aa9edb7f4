//! `GET /internal/v1/exports`.

use anyhow::{Context as _, Result};
use assay_contracts::export::Export;
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::page::Page;
use assay_platform::runtime::new_id;
use assay_testkit::{execute_on, on_both_databases};

use crate::test_app::{TestApp, problem};

async fn page(app: &TestApp, organization: OrganizationId, query: &str) -> Result<Page<Export>> {
    Ok(app.get(organization, query).await?.error_for_status()?.json().await?)
}

async fn create(app: &TestApp, organization: OrganizationId, count: usize) -> Result<Vec<ExportId>> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(app.create(organization).await?.id);
    }
    Ok(ids)
}

fn ids(page: &Page<Export>) -> Vec<ExportId> {
    page.data.iter().map(|export| export.id).collect()
}

async fn page_contains_the_newest_20_exports_by_default(app: TestApp) -> Result<()> {
    let organization = new_id();
    let mut created = create(&app, organization, 21).await?;
    created.reverse();
    let first = page(&app, organization, "").await?;
    assert_eq!(ids(&first), created[..20]);
    assert_eq!((first.page_info.limit, first.page_info.has_next_page), (20, true));
    assert!(first.page_info.next_cursor.is_some());
    for query in ["?limit=21", "?limit=100", "?limit=100&unknown=1"] {
        let whole = page(&app, organization, query).await?;
        assert_eq!(ids(&whole), created);
        assert!(!whole.page_info.has_next_page && whole.page_info.next_cursor.is_none());
    }
    let text = app.get(organization, "?limit=100").await?.text().await?;
    assert!(!text.contains("next_cursor") && text.contains(r#""limit":100"#), "{text}");
    Ok(())
}

async fn pages_neither_skip_nor_repeat_while_exports_are_created(app: TestApp) -> Result<()> {
    let organization = new_id();
    let mut created = create(&app, organization, 7).await?;
    // Equal timestamps: the ids decide.
    execute_on(&app.test_database.database, "UPDATE exports SET created_at = 1795158000000").await?;
    created.sort_unstable();
    created.reverse();
    let mut seen = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = page(&app, organization, &query).await?;
        seen.extend(ids(&page));
        create(&app, organization, 1).await?;
        let info = page.page_info;
        assert!(page.data.len() <= 2, "{} exports on a page of 2", page.data.len());
        assert_eq!((info.limit, info.has_next_page), (2, info.next_cursor.is_some()));
        match info.next_cursor {
            Some(cursor) => query = format!("?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, created);
    Ok(())
}

async fn parameter_out_of_range_is_reported(app: TestApp) -> Result<()> {
    let cases = [
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?limit=-1", "limit"),
        ("?limit=", "limit"),
        ("?limit=ten", "limit"),
        ("?limit=1.5", "limit"),
        ("?limit=1e1", "limit"),
        ("?limit=%20", "limit"),
        ("?limit=%2B5", "limit"),
        ("?limit=99999999999999999999", "limit"),
        ("?limit=5&limit=6", "limit"),
        ("?cursor=", "cursor"),
    ];
    for (query, name) in cases {
        let problem = problem(app.get(new_id(), query).await?, 400, "invalid-request").await?;
        assert_eq!(problem.errors[0].pointer, name, "{query}");
    }
    Ok(())
}

async fn cursors_are_valid_only_for_their_organization(app: TestApp) -> Result<()> {
    let organization = new_id();
    create(&app, organization, 2).await?;
    let first = page(&app, organization, "?limit=1").await?;
    let cursor = first.page_info.next_cursor.context("no cursor")?;
    for query in [format!("?limit=1&cursor={cursor}"), format!("?cursor={cursor}&limit=100")] {
        assert_eq!(page(&app, organization, &query).await?.data.len(), 1, "{query}");
    }
    let foreign = app.get(new_id(), &format!("?cursor={cursor}")).await?;
    problem(foreign, 400, "invalid-cursor").await?;
    // The creation time comes first; its leading zero bytes are `A`s.
    let altered = cursor.replacen('A', "B", 1);
    assert_ne!(altered, cursor);
    let other_end =
        format!("{}{}", &cursor[..cursor.len() - 1], if cursor.ends_with('A') { "B" } else { "A" });
    for text in [
        "x",
        "a.b.c",
        "%00",
        "%F0%9F%98%80",
        &cursor[1..],
        &altered,
        &other_end,
        &format!("{cursor}A"),
        &"A".repeat(cursor.len()),
        &"x".repeat(4_000),
    ] {
        problem(app.get(organization, &format!("?cursor={text}")).await?, 400, "invalid-cursor").await?;
    }
    Ok(())
}

async fn organization_lists_only_its_own_exports(app: TestApp) -> Result<()> {
    let [one, other] = [new_id(), new_id()];
    let own = create(&app, one, 1).await?;
    create(&app, other, 1).await?;
    assert_eq!(ids(&page(&app, one, "").await?), own);
    let empty = page(&app, new_id(), "").await?;
    assert_eq!((empty.data.len(), empty.page_info.has_next_page), (0, false));
    Ok(())
}

on_both_databases! { TestApp {
    page_contains_the_newest_20_exports_by_default,
    pages_neither_skip_nor_repeat_while_exports_are_created,
    parameter_out_of_range_is_reported,
    cursors_are_valid_only_for_their_organization,
    organization_lists_only_its_own_exports,
} }
