//! The place of a ticket in a list: `GET /v1/tickets/{id}/neighbours`.

use assay_contracts::evaluations::{MAX_COUNTED, Neighbours, NeighboursQuery};
use assay_contracts::ids::TicketId;

use super::list_evaluations::{ListEvaluationsError, Reading, count_list, position};
use crate::store::ListSelection;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FindNeighboursError {
    #[error("the organization has no evaluation of this ticket")]
    NotFound,
    #[error(transparent)]
    List(#[from] ListEvaluationsError),
}

/// The tickets before and after it, also when the filters do not select the ticket itself.
pub(crate) async fn find_neighbours(
    reading: Reading<'_>,
    id: &str,
    query: NeighboursQuery,
) -> Result<Neighbours, FindNeighboursError> {
    let id: TicketId = id.parse().map_err(|_| FindNeighboursError::NotFound)?;
    let NeighboursQuery { filters, sort } = query;
    let found = reading.store.find(reading.organization_id, id, filters.clone()).await;
    let found = found.map_err(ListEvaluationsError::from)?;
    let (facts, included) = found.ok_or(FindNeighboursError::NotFound)?;
    let forwards = ListSelection {
        organization_id: reading.organization_id,
        filters,
        sort,
        after: Some(position(&facts, sort)),
        backwards: false,
        values: None,
    };
    let backwards = ListSelection { backwards: true, ..forwards.clone() };
    let (next, previous, before, total) = tokio::try_join!(
        async { Ok(reading.store.list(forwards.clone(), 1).await?) },
        async { Ok(reading.store.list(backwards.clone(), 1).await?) },
        async { Ok::<_, ListEvaluationsError>(reading.store.count(backwards.clone(), MAX_COUNTED).await?) },
        count_list(&reading, &forwards.filters, sort),
    )?;
    Ok(Neighbours {
        previous: previous.first().map(|facts| facts.ticket.ticket_id),
        next: next.first().map(|facts| facts.ticket.ticket_id),
        included,
        position: (included && before < MAX_COUNTED).then_some(before + 1),
        total: total.0,
    })
}
