//! Rows for export: copies of the lines of evaluated conversations, with new ids and dates; and the same values as a plain
//! table, as the usual source for `COPY`.

use std::io::{BufWriter, Write};

use anyhow::{Context, Result, ensure};
use assay_contracts::export::ExportKind;
use assay_contracts::time::Timestamp;
use assay_export::domain::csv::{column_names, header};
use assay_platform::runtime::now;
use sha2::{Digest, Sha256};

use crate::baselines::copy::{CopyFrom, psql};
use crate::cluster::Servers;

/// Start of the first conversation, and the interval between starts. Imported conversations are more recent.
const FIRST_STARTED_AT: i64 = 978_307_200_000;
const APART_MILLIS: i64 = 30_000;
/// Every row began before this.
pub const ALL_STARTED_BEFORE: i64 = 1_230_768_000_000;

/// Rows are stored nearly in date order, as real imports arrive: shuffled within blocks of this size.
const BLOCK: u64 = 1_000;
/// Coprime to the block, so that `index * STRIDE % BLOCK` takes every row of a block once.
const STRIDE: u64 = 617;

/// With more rows the plain table stays empty: the disks of test machines are small.
const MAX_AS_COLUMNS: u64 = 2_000_000;

const ROWS: &str = "export.evaluation_rows (ticket_id, organization_id, conversation_started_at, evaluated_at, \
                    evaluation_id, columns_version, axis_line, audit_line)";
/// Position of `axis_line` in [`ROWS`].
const AXIS_LINE: usize = 6;

/// The stored rows and the expected file.
pub struct Stored {
    pub rows: u64,
    /// SHA-256 of the file of all rows.
    pub sha256: String,
    pub bytes: u64,
    database: String,
    organization: String,
}

/// The lines of an evaluation, cell by cell.
struct Sample {
    axis: Vec<String>,
    audit: Vec<String>,
}

impl Stored {
    /// Replaces the rows of the only organization by `rows` copies.
    pub fn multiply(servers: &Servers, database: &str, rows: u64) -> Result<Self> {
        let end = FIRST_STARTED_AT + APART_MILLIS * i64::try_from(rows)?;
        ensure!(
            rows.is_multiple_of(BLOCK) && end < ALL_STARTED_BEFORE,
            "{rows} rows: take a multiple of {BLOCK}"
        );
        let organization = psql(servers, database, "SELECT organization_id FROM export.progress")?;
        let organization = organization.trim().to_owned();
        let samples = samples(servers, database)?;
        servers.sql(database, &format!("TRUNCATE export.evaluation_rows; {}", plain_table()))?;
        let mut this =
            Self { rows, sha256: String::new(), bytes: 0, database: database.to_owned(), organization };
        this.fill(servers, &samples)?;
        for statement in ["VACUUM (ANALYZE) export.evaluation_rows", "VACUUM (ANALYZE) plain", "CHECKPOINT"] {
            servers.sql(database, statement)?;
        }
        Ok(this)
    }

    /// `\copy` of the plain table, if it has the rows.
    pub fn columns(&self) -> Option<&'static str> {
        let copy = "\\copy (SELECT * FROM plain ORDER BY conversation_started_at, ticket_id) TO FILE CSV";
        (self.rows <= MAX_AS_COLUMNS).then_some(copy)
    }

    /// `\copy` of the rendered lines.
    pub fn lines(&self) -> String {
        format!(
            "\\copy (SELECT axis_line FROM export.evaluation_rows WHERE organization_id = '{}' \
             AND conversation_started_at < {ALL_STARTED_BEFORE} ORDER BY conversation_started_at, ticket_id) TO FILE",
            self.organization
        )
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    fn fill(&mut self, servers: &Servers, samples: &[Sample]) -> Result<()> {
        let mut rows = CopyFrom::begin(servers, &self.database, ROWS)?;
        let mut plain = CopyFrom::begin(servers, &self.database, "plain")?;
        {
            let mut rows = csv::Writer::from_writer(BufWriter::new(rows.input()?));
            let mut plain = BufWriter::new(plain.input()?);
            let mut hasher = Sha256::new_with_prefix(header(ExportKind::Axis));
            self.bytes = header(ExportKind::Axis).len() as u64;
            let imported_at = now();
            for first in (0..self.rows).step_by(usize::try_from(BLOCK)?) {
                let mut block = Vec::new();
                for number in first..first + BLOCK {
                    let sample = &samples[usize::try_from(number)? % samples.len()];
                    let row = sample.row(number, imported_at, &self.organization)?;
                    hasher.update(&row[AXIS_LINE]);
                    hasher.update("\r\n");
                    self.bytes += row[AXIS_LINE].len() as u64 + 2;
                    block.push(row);
                }
                for index in 0..BLOCK {
                    let row = &block[usize::try_from(index * STRIDE % BLOCK)?];
                    rows.write_record(row)?;
                    if self.rows <= MAX_AS_COLUMNS {
                        writeln!(plain, "{}", row[AXIS_LINE])?;
                    }
                }
            }
            rows.flush()?;
            plain.flush()?;
            self.sha256 = hex::encode(hasher.finalize());
        }
        rows.finish()?;
        plain.finish()
    }
}

impl Sample {
    /// The row with this number, in the order of [`ROWS`].
    fn row(&self, number: u64, imported_at: Timestamp, organization: &str) -> Result<[String; 8]> {
        // One hundred ids per millisecond, so that all ids fall into one monthly partition.
        let id_time = imported_at.plus_millis(i64::try_from(number / 100)?);
        let (ticket, evaluation) = (id(id_time, number, '8'), id(id_time, number, '9'));
        let started_at =
            Timestamp::saturating_from_millis(FIRST_STARTED_AT + APART_MILLIS * i64::try_from(number)?);
        let own = [
            ("ticket_id", ticket.clone()),
            ("external_ticket_id", format!("stored-{number}")),
            ("conversation_started_at", started_at.to_string()),
            ("evaluation_id", evaluation.clone()),
        ];
        let [axis, audit] = [(ExportKind::Axis, &self.axis), (ExportKind::ResolutionAudit, &self.audit)].map(
            |(kind, cells)| {
                line(column_names(kind).zip(cells).map(|(name, cell)| {
                    own.iter().find(|(column, _)| *column == name).map_or(cell.as_str(), |(_, cell)| cell)
                }))
            },
        );
        let millis = |moment: Timestamp| moment.as_millis().to_string();
        let (started_at, evaluated_at) = (millis(started_at), millis(imported_at));
        Ok([
            ticket,
            organization.to_owned(),
            started_at,
            evaluated_at,
            evaluation,
            "1".to_owned(),
            axis?,
            audit?,
        ])
    }
}

/// The distinct lines rendered by the product.
fn samples(servers: &Servers, database: &str) -> Result<Vec<Sample>> {
    let stored = psql(
        servers,
        database,
        "\\copy (SELECT axis_line, audit_line FROM export.evaluation_rows ORDER BY ticket_id) TO PSTDOUT CSV",
    )?;
    let mut samples = Vec::new();
    for record in plain_reader(&stored).records() {
        let record = record?;
        let [axis, audit] = [0, 1].map(|index| cells(&record[index]));
        samples.push(Sample { axis: axis?, audit: audit? });
    }
    ensure!(!samples.is_empty(), "nothing was evaluated");
    Ok(samples)
}

/// The cells of a line; writing them again gives the same line.
fn cells(text: &str) -> Result<Vec<String>> {
    let record = plain_reader(text).records().next().context("an empty line")??;
    let cells: Vec<String> = record.iter().map(str::to_owned).collect();
    ensure!(line(cells.iter().map(String::as_str))? == text, "not quoted as we quote: {text}");
    Ok(cells)
}

fn line<'c>(cells: impl Iterator<Item = &'c str>) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::with_capacity(1_024));
    writer.write_record(cells)?;
    let mut text = String::from_utf8(writer.into_inner()?)?;
    // Without the line end.
    text.pop();
    Ok(text)
}

fn plain_reader(text: &str) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes())
}

/// SQL of a table with the values of a line as columns of text. ISO 8601 dates and ids have the same order as text.
fn plain_table() -> String {
    let columns: Vec<String> =
        column_names(ExportKind::Axis).map(|name| format!("{name} text COLLATE \"C\"")).collect();
    format!(
        "CREATE UNLOGGED TABLE plain ({}); CREATE INDEX ON plain (conversation_started_at, ticket_id)",
        columns.join(", ")
    )
}

/// A UUID of version 7; `variant` is a digit from 8 to b.
fn id(moment: Timestamp, number: u64, variant: char) -> String {
    let millis = moment.as_millis();
    let (high, low) = (millis >> 16, millis & 0xffff);
    format!("{high:08x}-{low:04x}-7{:03x}-{variant}000-{number:012x}", number % 100)
}
