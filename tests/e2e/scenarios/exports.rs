//! Specification, "Evaluation export" and its four operations.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Stack};

const EXPORTS: &str = "/v1/evaluations/exports";
const LATEST: i64 = 253_402_300_799_999;

/// Creation, reading, listing.
pub async fn run(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    cases.check("created", created(&stack.api()?).await);
    cases.check("filters", filters(&stack.api()?).await);
    cases.check("refused bodies", refused(&stack.api()?).await);
    cases.check("unknown ids", unknown_ids(&stack.api()?).await);
    cases.check("an empty list", empty_list(&stack.api_of("empty").await?).await);
    cases.check("pages", pages(&stack.api_of("pages").await?).await);
    cases.check("page parameters", page_parameters(&stack.api_of("pages").await?).await);
    cases.check("all are completed", completed(&stack.api_of("pages").await?).await);
    cases.finish()
}

async fn created(api: &Api) -> Result<()> {
    for kind in ["axis", "resolution_audit"] {
        let reply = api.post(EXPORTS, &json!({"kind": kind})).await?;
        let export = reply.expect(201)?;
        let id = export["id"].as_str().context("no id")?;
        let created_at = export["created_at"].as_i64().context("created_at")?;
        let expected = json!({"id": id, "kind": kind, "format": "csv", "status": "pending", "filters": {},
            "created_at": created_at, "updated_at": created_at});
        ensure!(export == expected, "{export}");
        ensure!(
            reply.header("location") == format!("{EXPORTS}/{id}"),
            "Location: {:?}",
            reply.header("location")
        );
        let complete = api.complete(id).await?;
        ensure!(complete["created_at"] == created_at, "created_at moved: {complete}");
        ensure!(complete["updated_at"].as_i64() >= Some(created_at), "updated_at: {complete}");
        let members: BTreeSet<&str> =
            complete.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let documented = [
            "id",
            "kind",
            "format",
            "status",
            "filters",
            "created_at",
            "updated_at",
            "download_url",
            "file_status",
            "file_expires_at",
            "evaluations_complete",
            "missing_evaluations",
        ];
        ensure!(members == BTreeSet::from(documented), "members: {members:?}");
    }
    Ok(())
}

/// Echoed as sent, in later reads too.
async fn filters(api: &Api) -> Result<()> {
    for filters in [
        json!({}),
        json!({"from": 0}),
        json!({"to": LATEST}),
        json!({"from": 1_700_000_000_000_i64, "to": 1_700_000_000_001_i64}),
        json!({"from": 5, "to": 5}),
    ] {
        let export = api
            .post(EXPORTS, &json!({"kind": "axis", "format": "csv", "filters": filters}))
            .await?
            .expect(201)?;
        ensure!(export["filters"] == filters, "{export}");
        let read =
            api.get(&format!("{EXPORTS}/{}", export["id"].as_str().context("id")?)).await?.expect(200)?;
        ensure!(read["filters"] == filters, "{read}");
    }
    Ok(())
}

async fn refused(api: &Api) -> Result<()> {
    let mut table = vec![
        (json!({}), "/kind"),
        (json!([]), ""),
        (json!({"kind": "axis", "format": "xlsx"}), "/format"),
        (json!({"kind": "axis", "format": "CSV"}), "/format"),
        (json!({"kind": "axis", "filters": {"from": 2, "to": 1}}), "/filters/from"),
    ];
    for kind in [json!(""), json!("Axis"), json!("audit"), json!(null), json!(1), json!(["axis"])] {
        table.push((json!({"kind": kind}), "/kind"));
    }
    for filters in [json!("all"), json!([]), json!(7)] {
        table.push((json!({"kind": "axis", "filters": filters}), "/filters"));
    }
    for moment in [json!(-1), json!(LATEST + 1), json!(1.5), json!("1"), json!("2025-11-20"), json!(1e30)] {
        table.push((json!({"kind": "axis", "filters": {"from": moment}}), "/filters/from"));
        table.push((json!({"kind": "axis", "filters": {"to": moment}}), "/filters/to"));
    }
    let mut cases = Cases::default();
    for (body, pointer) in table {
        let reply = api.post(EXPORTS, &body).await?;
        cases.check(body, reply.error_at(pointer).map(drop));
    }
    cases.finish()
}

async fn unknown_ids(api: &Api) -> Result<()> {
    for id in ["0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11", "1", "x", "%00", "%FF"] {
        api.get(&format!("{EXPORTS}/{id}")).await?.problem(404, "export-not-found")?;
        api.get(&format!("{EXPORTS}/{id}/download")).await?.problem(404, "export-not-found")?;
    }
    Ok(())
}

async fn empty_list(api: &Api) -> Result<()> {
    let page = api.get(EXPORTS).await?.expect(200)?;
    let expected = json!({"data": [], "page_info": {"has_next_page": false, "limit": 20}});
    ensure!(page == expected, "{page}");
    Ok(())
}

/// Newest first; pagination neither skips nor repeats items while exports are created.
async fn pages(api: &Api) -> Result<()> {
    let mut created = Vec::new();
    for _ in 0..25 {
        created.push(create(api).await?);
    }
    created.reverse();
    let first = api.get(EXPORTS).await?.expect(200)?;
    ensure!(ids(&first)? == created[..20], "the first page is not the newest twenty, newest first");
    ensure!(
        first["page_info"]["limit"] == 20 && first["page_info"]["has_next_page"] == true,
        "{}",
        first["page_info"]
    );
    for limit in [1, 4, 7, 24, 25, 100] {
        let walked = walk(api, limit).await?;
        // Items that existed at the start, in order; newer ones sort before them.
        ensure!(walked.ends_with(&created), "limit {limit}: {walked:?} instead of {created:?}");
        let newest_first = are_newest_first(&walked);
        ensure!(newest_first, "limit {limit}: not newest first: {walked:?}");
        created = walk_without_inserts(api).await?;
    }
    Ok(())
}

/// Whether the ids descend: ids of version 7 ascend with their creation.
fn are_newest_first(ids: &[String]) -> bool {
    ids.windows(2).all(|pair| pair[0] > pair[1])
}

/// Reads page after page, and creates an export between any two of them.
async fn walk(api: &Api, limit: usize) -> Result<Vec<String>> {
    let mut walked = Vec::new();
    let mut path = format!("{EXPORTS}?limit={limit}");
    loop {
        let page = api.get(&path).await?.expect(200)?;
        let info = &page["page_info"];
        ensure!(info["limit"] == limit, "{info}");
        let found = ids(&page)?;
        ensure!(found.len() <= limit, "{} items on a page of {limit}", found.len());
        walked.extend(found);
        let cursor = info["next_cursor"].as_str();
        ensure!(info["has_next_page"] == cursor.is_some(), "{info}");
        let Some(cursor) = cursor else { return Ok(walked) };
        ensure!(walked.len() < 1_000, "the walk does not end");
        path = format!("{EXPORTS}?limit={limit}&cursor={cursor}");
        create(api).await?;
    }
}

async fn walk_without_inserts(api: &Api) -> Result<Vec<String>> {
    let page = api.get(&format!("{EXPORTS}?limit=100")).await?.expect(200)?;
    ensure!(page["page_info"].get("next_cursor").is_none(), "{}", page["page_info"]);
    ids(&page)
}

async fn create(api: &Api) -> Result<String> {
    let export = api.post(EXPORTS, &json!({"kind": "axis"})).await?.expect(201)?;
    Ok(export["id"].as_str().context("no id")?.to_owned())
}

fn ids(page: &Value) -> Result<Vec<String>> {
    let data = page["data"].as_array().with_context(|| format!("no data: {page}"))?;
    data.iter().map(|export| Ok(export["id"].as_str().context("no id")?.to_owned())).collect()
}

async fn page_parameters(api: &Api) -> Result<()> {
    let page = api.get(&format!("{EXPORTS}?limit=2")).await?.expect(200)?;
    let cursor = page["page_info"]["next_cursor"].as_str().context("no cursor")?.to_owned();
    let mut cases = Cases::default();
    for limit in ["0", "101", "-1", "abc", "", "1.5", "1e1", "99999999999999999999", "%20", "%2B5"] {
        let reply = api.get(&format!("{EXPORTS}?limit={limit}")).await?;
        cases.check(format!("limit={limit}"), reply.error_at("limit").map(drop));
    }
    cases.check("empty cursor", api.get(&format!("{EXPORTS}?cursor=")).await?.error_at("cursor").map(drop));
    let altered = format!("{}{}", &cursor[..cursor.len() - 1], if cursor.ends_with('A') { "B" } else { "A" });
    for wrong in [
        "x",
        "%00",
        &altered,
        &cursor[1..],
        &format!("{cursor}A"),
        &"A".repeat(cursor.len()),
        &"x".repeat(4_000),
    ] {
        let reply = api.get(&format!("{EXPORTS}?cursor={wrong}")).await?;
        cases.check(format!("cursor {wrong}"), reply.problem(400, "invalid-cursor").map(drop));
    }
    let twice = api.get(&format!("{EXPORTS}?limit=2&limit=3")).await?;
    cases.check("two limits", twice.error_at("limit").map(drop));
    for good in ["limit=1", "limit=100", "unknown=1", &format!("cursor={cursor}&limit=100")] {
        let reply = api.get(&format!("{EXPORTS}?{good}")).await?;
        cases.check(good, reply.expect(200).map(drop));
    }
    cases.finish()
}

async fn completed(api: &Api) -> Result<()> {
    for id in walk_without_inserts(api).await? {
        api.complete(&id).await?;
    }
    Ok(())
}
