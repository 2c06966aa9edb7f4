//! Applies, reverts and reapplies each migration; the schema at each level is the same in both directions.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use assay_testkit::SchemaSteps;

use crate::installation::{Installation, services};

#[test]
fn every_migration_is_reversible_on_postgres() -> Result<()> {
    up_and_down(&Installation::on_postgres()?)
}

#[test]
fn every_migration_is_reversible_on_sqlite() -> Result<()> {
    up_and_down(&Installation::on_sqlite()?)
}

fn up_and_down(installation: &Installation) -> Result<()> {
    for service in services() {
        let mut schema = installation.schema(service)?;
        apply_revert_and_reapply(&mut schema).with_context(|| format!("schema {}", service.owner.schema))?;
    }
    Ok(())
}

fn apply_revert_and_reapply(schema: &mut SchemaSteps) -> Result<()> {
    let order = schema.pending()?;
    let levels = apply_all(schema)?;
    ensure!(levels.len() == order.len() + 1 && order.len() > 1, "{} levels of {order:?}", levels.len());
    for (level, name) in order.iter().enumerate().rev() {
        ensure!(schema.revert_last()?.as_ref() == Some(name), "{name} was not the last one");
        ensure_same(&schema.dump()?, &levels[level]).with_context(|| format!("after {name} was reverted"))?;
    }
    ensure!(schema.revert_last()?.is_none() && schema.applied()?.is_empty(), "something is left");
    let again = apply_all(schema)?;
    for (level, name) in order.iter().enumerate() {
        ensure_same(&again[level + 1], &levels[level + 1])
            .with_context(|| format!("{name}, applied again"))?;
    }
    Ok(())
}

/// Applies all migrations and returns a dump of the schema at each level, the empty one first. Each migration changes it.
fn apply_all(schema: &mut SchemaSteps) -> Result<Vec<String>> {
    let mut levels = vec![schema.dump()?];
    while let Some(name) = schema.apply_next()? {
        let dump = schema.dump()?;
        ensure!(levels.last() != Some(&dump), "{name} changes nothing");
        levels.push(dump);
    }
    Ok(levels)
}

fn ensure_same(found: &str, expected: &str) -> Result<()> {
    let lines = |dump: &str| dump.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (has, should_have) = (lines(found), lines(expected));
    let unexpected: Vec<_> = has.difference(&should_have).collect();
    let missing: Vec<_> = should_have.difference(&has).collect();
    ensure!(found == expected, "another schema; it has {unexpected:#?} and lacks {missing:#?}");
    Ok(())
}
