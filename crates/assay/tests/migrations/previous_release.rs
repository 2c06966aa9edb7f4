//! During a rollout the previous release works on the new schema: migrations only add.

use anyhow::{Result, ensure};

use crate::files::up_files;
use crate::statements::problems_for_previous_release;

#[test]
fn previous_release_works_after_every_migration() -> Result<()> {
    let mut problems = Vec::new();
    for (path, sql) in up_files()? {
        problems.extend(
            problems_for_previous_release(&sql).into_iter().map(|problem| format!("{path}: {problem}")),
        );
    }
    ensure!(problems.is_empty(), "see proto-docs/migrations.md:\n{}", problems.join("\n"));
    Ok(())
}
