//! Records evaluations in the read model of exports.

use std::sync::Arc;

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::EventId;
use assay_messaging::all_or_each;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{blocking, now};

use crate::domain::evaluation_row::EvaluationRow;
use crate::store::ExportStore;

/// Renders the rows and stores them, with one result for each event. Idempotent by event id.
pub(crate) async fn record_evaluations(
    store: &ExportStore,
    events: Vec<(EventId, ConversationEvaluated)>,
) -> Vec<Result<(), Arc<DatabaseError>>> {
    let count = events.len();
    let row = |(event_id, event)| EvaluationRow::of(event_id, &event);
    // Tens of thousands of cells for each batch: too slow for an async worker thread.
    let rendered = blocking(move || events.into_iter().map(row).collect::<Vec<_>>()).await;
    match rendered {
        Ok(rows) => {
            let record = |rows| store.record_rows(rows, now());
            all_or_each(rows, DatabaseError::is_transient, record).await
        }
        Err(interrupted) => vec![Err(Arc::new(interrupted.into())); count],
    }
}
