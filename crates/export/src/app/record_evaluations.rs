//! Takes evaluations into the read model that exports are made of.

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::EventId;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{blocking, now};

use crate::domain::evaluation_row::EvaluationRow;
use crate::store::{ExportStore, ReceivedRow};

/// Renders evaluations, in their order.
///
/// # Errors
/// When the process stops before that.
pub(crate) async fn render_evaluations(
    events: Vec<(EventId, ConversationEvaluated)>,
) -> Result<Vec<ReceivedRow>, DatabaseError> {
    let received = |(event_id, event)| ReceivedRow { event_id, row: EvaluationRow::of(&event) };
    // Some ten thousand cells a batch: too much for a thread that serves requests.
    Ok(blocking(move || events.into_iter().map(received).collect()).await?)
}

/// Stores evaluations, each once however often its event comes. All of them or, on an error, none.
///
/// # Errors
/// When the database refuses.
pub(crate) async fn record_evaluations(
    store: &dyn ExportStore,
    rows: Vec<ReceivedRow>,
) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    store.record_rows(rows, now()).await
}
