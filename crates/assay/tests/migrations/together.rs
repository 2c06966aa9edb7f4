//! Several `assay migrate` at once, as after a deployment that started two Jobs.

use anyhow::{Result, ensure};

use crate::installation::{Installation, services};

const AT_ONCE: usize = 4;

#[test]
fn migrations_that_several_processes_run_at_once_are_applied_once_on_postgres() -> Result<()> {
    at_once(&Installation::on_postgres()?, &Installation::on_postgres()?)
}

#[test]
fn migrations_that_several_processes_run_at_once_are_applied_once_on_sqlite() -> Result<()> {
    at_once(&Installation::on_sqlite()?, &Installation::on_sqlite()?)
}

fn at_once(installation: &Installation, undisturbed: &Installation) -> Result<()> {
    let mut names = Vec::new();
    for service in services() {
        names.extend(installation.schema(service)?.pending()?);
    }
    let running = (0..AT_ONCE).map(|_| installation.migrate()).collect::<Result<Vec<_>>>()?;
    let told =
        running.into_iter().map(|migrate| migrate.finish()?.succeeded()).collect::<Result<Vec<_>>>()?;
    let told = told.concat();
    for name in &names {
        // The tables of the bus are in several schemas.
        let expected = names.iter().filter(|other| *other == name).count();
        ensure!(told.matches(name.as_str()).count() == expected, "{name} was not applied once: {told}");
    }
    undisturbed.migrated()?;
    ensure!(installation.dump()? == undisturbed.dump()?, "not what one process alone makes");
    Ok(())
}
