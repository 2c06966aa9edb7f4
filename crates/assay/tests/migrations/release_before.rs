//! While a release is rolled out, processes of the release before work on the new schema: a migration only adds.

use anyhow::{Result, ensure};

use crate::files::up_files;
use crate::statements::breaks_the_release_before;

#[test]
fn the_release_before_works_on_the_schema_after_every_migration() -> Result<()> {
    let mut faults = Vec::new();
    for (path, sql) in up_files()? {
        faults.extend(breaks_the_release_before(&sql).into_iter().map(|fault| format!("{path}: {fault}")));
    }
    ensure!(faults.is_empty(), "see proto-docs/migrations.md:\n{}", faults.join("\n"));
    Ok(())
}
