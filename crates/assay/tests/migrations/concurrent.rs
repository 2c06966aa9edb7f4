//! Concurrent runs of `assay migrate`, as by a deployment that starts two Jobs.

use anyhow::{Result, ensure};

use crate::installation::{Installation, services};

const RUNS: usize = 4;

#[test]
fn concurrent_runs_apply_migrations_once_on_postgres() -> Result<()> {
    run_concurrently(&Installation::on_postgres()?, &Installation::on_postgres()?)
}

#[test]
fn concurrent_runs_apply_migrations_once_on_sqlite() -> Result<()> {
    run_concurrently(&Installation::on_sqlite()?, &Installation::on_sqlite()?)
}

fn run_concurrently(installation: &Installation, undisturbed: &Installation) -> Result<()> {
    let mut names = Vec::new();
    for service in services() {
        names.extend(installation.schema(service)?.pending()?);
    }
    let running = (0..RUNS).map(|_| installation.start_migrate()).collect::<Result<Vec<_>>>()?;
    let output =
        running.into_iter().map(|migrate| migrate.finish()?.succeeded()).collect::<Result<Vec<_>>>()?;
    let output = output.concat();
    for name in &names {
        // A name may occur more than once: several schemas have the migration of the outbox and inbox.
        let expected = names.iter().filter(|other| *other == name).count();
        ensure!(output.matches(name.as_str()).count() == expected, "{name} was not applied once: {output}");
    }
    undisturbed.run_migrate()?;
    ensure!(installation.dump()? == undisturbed.dump()?, "the schema differs from that of a single run");
    Ok(())
}
