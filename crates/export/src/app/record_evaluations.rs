//! Records evaluations in the read model of exports.

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::EventId;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{blocking, now};

use crate::domain::evaluation_row::EvaluationRow;
use crate::store::ExportStore;

/// Renders the rows, in the order of the events. Fails only when the process stops.
pub(crate) async fn render_evaluations(
    events: Vec<(EventId, ConversationEvaluated)>,
) -> Result<Vec<EvaluationRow>, DatabaseError> {
    let row = |(event_id, event)| EvaluationRow::of(event_id, &event);
    // Tens of thousands of cells for each batch: too slow for an async worker thread.
    Ok(blocking(move || events.into_iter().map(row).collect()).await?)
}

/// Stores the rows in one transaction. Idempotent by event id.
pub(crate) async fn record_evaluations(
    store: &dyn ExportStore,
    rows: Vec<EvaluationRow>,
) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    store.record_rows(rows, now()).await
}
