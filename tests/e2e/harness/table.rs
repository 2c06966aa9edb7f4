//! Reads an exported CSV file.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};

pub struct Table {
    /// The names of the columns, in order.
    pub columns: Vec<String>,
    /// The rows, each by column.
    pub rows: Vec<BTreeMap<String, String>>,
}

impl Table {
    /// Reads a file. Every row must have as many cells as the header, and every line must end with CRLF.
    pub fn read(file: &[u8]) -> Result<Self> {
        ensure!(file.ends_with(b"\r\n"), "the file does not end with CRLF");
        let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(file);
        let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record?;
            rows.push(columns.iter().cloned().zip(record.iter().map(str::to_owned)).collect());
        }
        Ok(Self { columns, rows })
    }

    /// The one row whose cell in `column` is `value`.
    pub fn row(&self, column: &str, value: &str) -> Result<&BTreeMap<String, String>> {
        let mut found = self.rows.iter().filter(|row| row.get(column).is_some_and(|cell| cell == value));
        let row = found.next().with_context(|| format!("no row with {column} = {value:?}"))?;
        ensure!(found.next().is_none(), "more than one row with {column} = {value:?}");
        Ok(row)
    }

    /// The ids of the tickets, each of which must have one row.
    pub fn distinct_tickets(&self) -> Result<BTreeSet<String>> {
        let distinct: BTreeSet<String> = self.column("ticket_id").into_iter().map(str::to_owned).collect();
        ensure!(distinct.len() == self.rows.len(), "a ticket has two rows");
        Ok(distinct)
    }

    /// The cells of a column, from the first row to the last.
    pub fn column(&self, name: &str) -> Vec<&str> {
        self.rows.iter().filter_map(|row| row.get(name)).map(String::as_str).collect()
    }
}
