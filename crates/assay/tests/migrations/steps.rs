//! Applies, reverts and reapplies each migration; the schema at each level is the same in both directions.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use assay_testkit::SchemaSteps;

use crate::installation::{Installation, services};

/// PostgreSQL-only migrations: their SQLite files are empty.
const NOTHING_ON_SQLITE: [&str; 2] =
    ["2026-01-01-000003_outbox_payloads", "2026-11-20-210010_compress_documents"];

#[test]
fn every_migration_is_reversible_on_postgres() -> Result<()> {
    up_and_down(&Installation::on_postgres()?, &[])
}

#[test]
fn every_migration_is_reversible_on_sqlite() -> Result<()> {
    up_and_down(&Installation::on_sqlite()?, &NOTHING_ON_SQLITE)
}

/// The migrations in `idle` change nothing.
fn up_and_down(installation: &Installation, idle: &[&str]) -> Result<()> {
    for service in services() {
        let mut schema = installation.schema(service)?;
        walk(&mut schema, idle).with_context(|| format!("schema {}", service.owner.schema))?;
    }
    Ok(())
}

fn walk(schema: &mut SchemaSteps, idle: &[&str]) -> Result<()> {
    let order = schema.pending()?;
    let levels = climb(schema, idle)?;
    ensure!(levels.len() == order.len() + 1 && order.len() > 1, "{} levels of {order:?}", levels.len());
    for (level, name) in order.iter().enumerate().rev() {
        ensure!(schema.revert_last()?.as_ref() == Some(name), "{name} was not the last one");
        same(&schema.dump()?, &levels[level]).with_context(|| format!("after {name} was reverted"))?;
    }
    ensure!(schema.revert_last()?.is_none() && schema.applied()?.is_empty(), "something is left");
    let again = climb(schema, idle)?;
    for (level, name) in order.iter().enumerate() {
        same(&again[level + 1], &levels[level + 1]).with_context(|| format!("{name}, applied again"))?;
    }
    Ok(())
}

/// Applies all migrations: a dump of each level, from the empty schema on. Two levels are alike only where a migration is idle.
fn climb(schema: &mut SchemaSteps, idle: &[&str]) -> Result<Vec<String>> {
    let mut levels = vec![schema.dump()?];
    while let Some(name) = schema.apply_next()? {
        let dump = schema.dump()?;
        let changes = levels.last() != Some(&dump);
        ensure!(changes != idle.contains(&name.as_str()), "{name}: a dump shows a change: {changes}");
        levels.push(dump);
    }
    Ok(levels)
}

fn same(found: &str, expected: &str) -> Result<()> {
    let lines = |dump: &str| dump.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (has, should_have) = (lines(found), lines(expected));
    let more: Vec<_> = has.difference(&should_have).collect();
    let less: Vec<_> = should_have.difference(&has).collect();
    ensure!(found == expected, "another schema; it has {more:#?} and lacks {less:#?}");
    Ok(())
}
