//! Plain-text tables.

use crate::metrics::{CLASSES, Confusion};

/// Columns that are as wide as their widest cell; the first one to the left, the others to the right.
#[derive(Debug)]
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// A confusion matrix: labelled classes in rows, found classes in columns.
pub(crate) fn confusion_text(confusion: &Confusion) -> String {
    let mut table = TextTable::new(&["labelled \\ found", "not_resolved", "partial", "resolved"]);
    for (class, cells) in CLASSES.iter().zip(&confusion.cells) {
        let mut row = vec![class.as_str().to_owned()];
        row.extend(cells.iter().map(|cell| format!("{cell:.0}")));
        table.row(row);
    }
    table.text()
}
