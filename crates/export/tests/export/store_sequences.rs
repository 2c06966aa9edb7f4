//! Which sequences have arrived, as stored.

use anyhow::Result;
use assay_contracts::event::ConversationEvaluated;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{execute_on, number_on, on_both_databases};

use crate::samples::{STARTED, evaluated};
use crate::test_database::Stores;

impl Stores {
    /// Records evaluations with these sequences in one transaction.
    async fn record_sequences(&self, sequences: &[i64]) -> Result<()> {
        let row = |sequence: &i64| {
            let event =
                ConversationEvaluated { sequence: *sequence, ..evaluated(self.organization_id, STARTED) };
            EvaluationRow::of(new_id(), &event)
        };
        Ok(self.exports.record_rows(sequences.iter().map(row).collect::<Vec<_>>().into(), now()).await?)
    }

    async fn number(&self, query: &str) -> Result<i64> {
        number_on(&self.test_database.database, query).await
    }

    /// Asserts that exactly these ranges, both ends included, are stored beyond the watermark.
    async fn assert_stored(&self, watermark: i64, ranges: &[(i64, i64)]) -> Result<()> {
        assert_eq!(self.number("SELECT watermark FROM progress").await?, watermark);
        assert_eq!(self.number("SELECT count(*) FROM early_sequences").await?, ranges.len() as i64);
        for (first, last) in ranges {
            let stored =
                format!("SELECT count(*) FROM early_sequences WHERE first = {first} AND last = {last}");
            assert_eq!(self.number(&stored).await?, 1, "{first}..={last} of {ranges:?}");
        }
        Ok(())
    }
}

/// Sequences that are recorded, the watermark afterwards, and the ranges beyond it.
type Step = (&'static [i64], i64, &'static [(i64, i64)]);

async fn ranges_grow_join_and_end(sequences: Stores) -> Result<()> {
    let steps: [Step; 7] = [
        (&[3, 5, 9], 0, &[(3, 3), (5, 5), (9, 9)]),
        (&[6], 0, &[(3, 3), (5, 6), (9, 9)]),
        (&[8], 0, &[(3, 3), (5, 6), (8, 9)]),
        (&[7, 12], 0, &[(3, 3), (5, 9), (12, 12)]),
        (&[5, 12], 0, &[(3, 3), (5, 9), (12, 12)]),
        (&[1, 2], 3, &[(5, 9), (12, 12)]),
        (&[4, 11, 10], 12, &[]),
    ];
    for (arrived, watermark, ranges) in steps {
        sequences.record_sequences(arrived).await?;
        sequences.assert_stored(watermark, ranges).await?;
    }
    Ok(())
}

/// When deliveries of an outage are retried one by one, each is a transaction beside thousands of ranges.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrival_beside_many_ranges_rewrites_only_its_own() -> Result<()> {
    let sequences = Stores::on_postgres().await?;
    let organization = sequences.organization_id;
    let ranges = format!(
        "INSERT INTO early_sequences (organization_id, first, last, since)
         SELECT '{organization}', number * 2, number * 2, 1 FROM generate_series(1, 5000) AS number"
    );
    execute_on(&sequences.test_database.database, ranges).await?;
    // `xmin` is the transaction that wrote a row.
    let written_before = sequences.number("SELECT max(xmin::text::bigint) FROM early_sequences").await?;
    let written_since =
        format!("SELECT count(*) FROM early_sequences WHERE xmin::text::bigint > {written_before}");

    sequences.record_sequences(&[20_001]).await?;
    assert_eq!(sequences.number(&written_since).await?, 1);
    // Joins two ranges.
    sequences.record_sequences(&[2_001]).await?;
    assert_eq!(sequences.number(&written_since).await?, 2);
    // Joins the watermark and the first range.
    sequences.record_sequences(&[1]).await?;
    assert_eq!(sequences.number(&written_since).await?, 2);
    assert_eq!(sequences.number("SELECT count(*) FROM early_sequences").await?, 4_999);
    assert_eq!(sequences.number("SELECT watermark FROM progress").await?, 2);
    Ok(())
}

on_both_databases! { Stores {
    ranges_grow_join_and_end,
} }
