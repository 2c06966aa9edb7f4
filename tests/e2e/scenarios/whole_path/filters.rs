//! `filters`: half-open, on the timestamp of the first message.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::input::Import;
use crate::harness::{Api, Table};

/// Around a moment that several conversations share, and around the ends of time.
pub async fn check(api: &Api, imports: &[Import]) -> Result<()> {
    let mut moments: Vec<i64> = imports.iter().map(Import::started_at).collect();
    moments.sort_unstable();
    let (first, middle, last) = (moments[0], moments[moments.len() / 2], moments[moments.len() - 1]);
    for (from, to) in [
        (None, None),
        (Some(middle), None),
        (Some(middle + 1), None),
        (None, Some(middle)),
        (None, Some(middle + 1)),
        (Some(middle), Some(middle + 1)),
        (Some(middle), Some(middle)),
        (Some(first), Some(last)),
        (Some(first), Some(last + 1)),
        (Some(last + 1), None),
        (None, Some(first)),
    ] {
        let expected = within(imports, from, to);
        let found = exported(api, from, to).await?;
        ensure!(
            found == expected,
            "from {from:?} to {to:?}: {} rows instead of {}",
            found.len(),
            expected.len()
        );
    }
    Ok(())
}

fn within(imports: &[Import], from: Option<i64>, to: Option<i64>) -> Vec<String> {
    let mut found: Vec<(i64, &str)> = imports
        .iter()
        .map(|import| (import.started_at(), import.ticket_id.as_str()))
        .filter(|(at, _)| from.is_none_or(|from| *at >= from) && to.is_none_or(|to| *at < to))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, id)| id.to_owned()).collect()
}

async fn exported(api: &Api, from: Option<i64>, to: Option<i64>) -> Result<Vec<String>> {
    let mut filters = json!({});
    for (name, moment) in [("from", from), ("to", to)] {
        if let Some(moment) = moment {
            filters[name] = Value::from(moment);
        }
    }
    let export = api.export(&json!({"kind": "axis", "filters": filters})).await?;
    ensure!(export["filters"] == filters, "filters are not echoed: {export}");
    let table = Table::read(&api.file(&export).await?)?;
    ensure!(!table.columns.is_empty(), "no header");
    Ok(table.column("ticket_id").into_iter().map(str::to_owned).collect())
}
