//! `filters`: an export holds exactly the rows of the list with the same filters.

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::input::Import;
use crate::harness::{Api, text};

/// So small that most of the lists have several pages.
const PAGE_SIZE: &str = "5";

/// Filters of several kinds, by the values of two bundled conversations. Each selects some conversations, and not all.
pub async fn check(api: &Api, imports: &[Import]) -> Result<()> {
    let (english, french) = (named(imports, "T-1001")?, named(imports, "T-1003")?);
    let charge = result(english, "/charge/assessment")?;
    let agent = result(english, "/ai_tools/0/agent_id")?;
    let selections = [
        json!({"charge": [charge]}),
        json!({"status": ["not_applicable"]}),
        json!({"agent": [agent]}),
        json!({"band": [result(english, "/axis/band")?]}),
        json!({"language": [result(french, "/language")?]}),
        json!({"search": "refund"}),
        json!({"charge": [charge, "review"], "agent": [agent]}),
    ];
    for (filters, kind) in selections.iter().zip(["axis", "resolution_audit"].into_iter().cycle()) {
        let mut listed = listed(api, filters).await.with_context(|| filters.to_string())?;
        ensure!(!listed.is_empty() && listed.len() < imports.len(), "{filters}: {} rows", listed.len());
        let mut exported = exported(api, kind, filters).await.with_context(|| filters.to_string())?;
        listed.sort_unstable();
        exported.sort_unstable();
        ensure!(exported == listed, "{filters}: the file has {exported:?}, the list {listed:?}");
    }
    Ok(())
}

/// The import of a bundled conversation.
fn named<'i>(imports: &'i [Import], ticket_id: &str) -> Result<&'i Import> {
    let found = imports.iter().find(|import| import.body["ticket_id"] == ticket_id);
    found.with_context(|| format!("no {ticket_id}"))
}

/// A text of an import's evaluation.
fn result(import: &Import, pointer: &str) -> Result<String> {
    let text = import.evaluation.pointer(pointer).and_then(Value::as_str);
    Ok(text.with_context(|| format!("{} has no {pointer}", import.name()))?.to_owned())
}

/// The ticket ids of all pages of the list.
async fn listed(api: &Api, filters: &Value) -> Result<Vec<String>> {
    let mut parameters = parameters(filters);
    parameters.push(("limit".to_owned(), PAGE_SIZE.to_owned()));
    let mut ids = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let cursor_parameter: Vec<(&str, &String)> = cursor.iter().map(|cursor| ("cursor", cursor)).collect();
        let request = api.request(Method::GET, "/v1/evaluations").query(&parameters).query(&cursor_parameter);
        let page = api.reply(request).await?.expect(200)?;
        for row in page["data"].as_array().context("no data")? {
            ids.push(text(&row["ticket"], "id")?);
        }
        let next = page["page_info"]["next_cursor"].as_str();
        let Some(next) = next else {
            ensure!(page["total"] == json!({"count": ids.len(), "exact": true}), "{}", page["total"]);
            return Ok(ids);
        };
        cursor = Some(next.to_owned());
    }
}

/// The filters of an export as parameters of the list.
fn parameters(filters: &Value) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    for (name, value) in filters.as_object().into_iter().flatten() {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        parameters
            .extend(values.iter().filter_map(Value::as_str).map(|value| (name.clone(), value.to_owned())));
    }
    parameters
}

/// The ticket ids of a file.
async fn exported(api: &Api, kind: &str, filters: &Value) -> Result<Vec<String>> {
    let table = api.table(&json!({"kind": kind, "filters": filters})).await?;
    Ok(table.column("ticket_id").into_iter().map(str::to_owned).collect())
}
