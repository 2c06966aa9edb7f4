//! The position of a ticket in a list: `GET /v1/tickets/{id}/neighbours`.

use assay_contracts::evaluations::{MAX_POSITION, Neighbours, NeighboursQuery, Total};
use assay_contracts::ids::TicketId;

use super::list_evaluations::{ListEvaluationsError, ReadContext, count_list, list, position_of};
use crate::domain::ranking::ReadDirection;
use crate::store::ListSelection;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FindNeighboursError {
    #[error("the organization has no evaluation of this ticket")]
    NotFound,
    #[error(transparent)]
    List(#[from] ListEvaluationsError),
}

/// The tickets before and after a ticket, also when the filters do not select the ticket itself. Its position is left out beyond
/// [`MAX_POSITION`].
pub(crate) async fn find_neighbours(
    context: ReadContext<'_>,
    id: &str,
    query: NeighboursQuery,
) -> Result<Neighbours, FindNeighboursError> {
    let id: TicketId = id.parse().map_err(|_| FindNeighboursError::NotFound)?;
    let NeighboursQuery { filters, sort } = query;
    let found = context.store.find(context.organization_id, id, filters.clone()).await;
    let found = found.map_err(ListEvaluationsError::from)?;
    let (facts, included) = found.ok_or(FindNeighboursError::NotFound)?;
    let following = context.selection(filters, sort, Some(position_of(&facts, sort)));
    let preceding = ListSelection { direction: ReadDirection::Backwards, ..following.clone() };
    let total = count_list(&context, &following.filters).await?;
    let (next, previous, count_before) = tokio::try_join!(
        nearest(&context, following, total),
        nearest(&context, preceding.clone(), total),
        async { Ok::<_, ListEvaluationsError>(context.store.count(preceding, MAX_POSITION).await?) },
    )?;
    Ok(Neighbours {
        previous,
        next,
        included,
        position: (included && count_before < MAX_POSITION).then_some(count_before + 1),
        total,
    })
}

/// The first ticket of a part of the list, if any.
async fn nearest(
    context: &ReadContext<'_>,
    selection: ListSelection,
    total: Total,
) -> Result<Option<TicketId>, ListEvaluationsError> {
    let (_, found) = list(context, selection, Some(total), 1).await?;
    Ok(found.first().map(|facts| facts.ticket.id))
}
