//! Takes evaluations into the read model that exports are made of.

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::EventId;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{blocking, now};

use crate::domain::evaluation_row::EvaluationRow;
use crate::store::{ExportStore, ReceivedRow};

/// Renders and stores evaluations, each once however often its event comes. All of them or, on an error, none.
///
/// # Errors
/// When the database refuses.
pub(crate) async fn record_evaluations(
    store: &dyn ExportStore,
    events: Vec<(EventId, ConversationEvaluated)>,
) -> Result<(), DatabaseError> {
    if events.is_empty() {
        return Ok(());
    }
    // Some ten thousand cells a batch: too much for a thread that serves requests.
    let rows = blocking(move || events.iter().map(received).collect()).await?;
    store.record_rows(rows, now()).await
}

fn received((event_id, event): &(EventId, ConversationEvaluated)) -> ReceivedRow {
    ReceivedRow { event_id: *event_id, row: EvaluationRow::of(event) }
}
