//! `GET /internal/v1/exports`.

use anyhow::{Context as _, Result};
use assay_contracts::export::Export;
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::page::Page;
use assay_platform::runtime::new_id;
use assay_testkit::on_both_databases;

use crate::place::execute;
use crate::stage::{Stage, problem};

async fn page(stage: &Stage, organization: OrganizationId, query: &str) -> Result<Page<Export>> {
    Ok(stage.get(organization, query).await?.error_for_status()?.json().await?)
}

async fn create(stage: &Stage, organization: OrganizationId, count: usize) -> Result<Vec<ExportId>> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(stage.create(organization).await?.id);
    }
    Ok(ids)
}

fn ids(page: &Page<Export>) -> Vec<ExportId> {
    page.data.iter().map(|export| export.id).collect()
}

async fn a_page_holds_the_newest_20_exports_unless_asked_otherwise(stage: Stage) -> Result<()> {
    let organization = new_id();
    let mut created = create(&stage, organization, 21).await?;
    created.reverse();
    let first = page(&stage, organization, "").await?;
    assert_eq!(ids(&first), created[..20]);
    assert_eq!((first.page_info.limit, first.page_info.has_next_page), (20, true));
    assert!(first.page_info.next_cursor.is_some());
    for limit in ["?limit=21", "?limit=100"] {
        let whole = page(&stage, organization, limit).await?;
        assert_eq!(ids(&whole), created);
        assert!(!whole.page_info.has_next_page && whole.page_info.next_cursor.is_none());
    }
    let text = stage.get(organization, "?limit=100").await?.text().await?;
    assert!(!text.contains("next_cursor") && text.contains(r#""limit":100"#), "{text}");
    Ok(())
}

async fn pages_neither_skip_nor_repeat_while_exports_are_created(stage: Stage) -> Result<()> {
    let organization = new_id();
    let mut created = create(&stage, organization, 7).await?;
    // Several of the same moment: their ids decide.
    execute(&stage.located.database, "UPDATE exports SET created_at = 1795158000000").await?;
    created.sort_unstable();
    created.reverse();
    let mut seen = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = page(&stage, organization, &query).await?;
        seen.extend(ids(&page));
        create(&stage, organization, 1).await?;
        match page.page_info.next_cursor {
            Some(cursor) => query = format!("?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, created);
    Ok(())
}

async fn a_parameter_out_of_range_is_named(stage: Stage) -> Result<()> {
    let cases = [
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?limit=-1", "limit"),
        ("?limit=", "limit"),
        ("?limit=ten", "limit"),
        ("?limit=1.5", "limit"),
        ("?limit=99999999999999999999", "limit"),
        ("?limit=5&limit=6", "limit"),
        ("?cursor=", "cursor"),
    ];
    for (query, name) in cases {
        let problem = problem(stage.get(new_id(), query).await?, 400, "invalid-request").await?;
        assert_eq!(problem.errors[0].pointer, name, "{query}");
    }
    Ok(())
}

async fn only_our_own_cursors_of_the_same_organization_are_taken(stage: Stage) -> Result<()> {
    let organization = new_id();
    create(&stage, organization, 2).await?;
    let first = page(&stage, organization, "?limit=1").await?;
    let cursor = first.page_info.next_cursor.context("no cursor")?;
    assert_eq!(page(&stage, organization, &format!("?limit=1&cursor={cursor}")).await?.data.len(), 1);
    let foreign = stage.get(new_id(), &format!("?cursor={cursor}")).await?;
    problem(foreign, 400, "invalid-cursor").await?;
    // The organization comes first, and its id begins with the zeros of the time.
    let altered = cursor.replacen('A', "B", 1);
    assert_ne!(altered, cursor);
    for text in ["x", "a.b.c", &cursor[1..], &altered, "%00", "%F0%9F%98%80"] {
        problem(stage.get(organization, &format!("?cursor={text}")).await?, 400, "invalid-cursor").await?;
    }
    Ok(())
}

async fn an_organization_sees_its_own_exports_only(stage: Stage) -> Result<()> {
    let [one, other] = [new_id(), new_id()];
    let own = create(&stage, one, 1).await?;
    create(&stage, other, 1).await?;
    assert_eq!(ids(&page(&stage, one, "").await?), own);
    let nobody = page(&stage, new_id(), "").await?;
    assert_eq!((nobody.data.len(), nobody.page_info.has_next_page), (0, false));
    Ok(())
}

on_both_databases! { Stage {
    a_page_holds_the_newest_20_exports_unless_asked_otherwise,
    pages_neither_skip_nor_repeat_while_exports_are_created,
    a_parameter_out_of_range_is_named,
    only_our_own_cursors_of_the_same_organization_are_taken,
    an_organization_sees_its_own_exports_only,
} }
