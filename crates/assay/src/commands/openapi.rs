//! `assay openapi`.

use std::io::Write;

use anyhow::Result;

pub fn run() -> Result<()> {
    let document = assay_gateway::openapi_document().to_pretty_json()?;
    writeln!(std::io::stdout(), "{document}")?;
    Ok(())
}
