//! Makes the weights that ship with the engine: `make weights` runs it.
//!
//! `cargo run --release -p assay-scoring-fit --example shipped -- FOLDER OUT`, where FOLDER holds `NAME.jsonl[.gz]`
//! (assess bodies) and `NAME.labels.jsonl[.gz]` (labels by `ticket_id`, with their `split`).

use std::io::Write;
use std::path::Path;

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(out)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("name the folder of bodies and labels, and the file to write");
    };
    let folder = Path::new(&folder);
    if !folder.is_dir() {
        writeln!(output, "skipped: {} is not there", folder.display())?;
        return Ok(());
    }
    let fitted = assay_scoring_fit::fit_shipped(folder)?;
    std::fs::write(&out, &fitted.text).with_context(|| format!("cannot write {out}"))?;
    write!(output, "{}\nwritten: {out}, {} bytes\n", fitted.report, fitted.text.len())?;
    Ok(())
}
