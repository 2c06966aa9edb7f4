//! A simple implementation of the orders of lists, to compare with.

use std::cmp::Ordering;

use assay_contracts::evaluation::ChargeAssessment;
use assay_contracts::evaluations::{EvaluationItem, Sort, SortKey};
use assay_contracts::ids::TicketId;
use assay_export::domain::facets::code_of;
use assay_export::store::ListPosition;

pub fn ids(rows: &[EvaluationItem]) -> Vec<TicketId> {
    rows.iter().map(|row| row.ticket.id).collect()
}

fn sort_value(row: &EvaluationItem, sort: Sort) -> Option<i64> {
    let scores = row.evaluation.scores;
    match sort.key {
        SortKey::StartedAt => None,
        SortKey::Axis => scores.map(|scores| i64::from(scores.axis.tenths())),
        SortKey::ResolutionAccuracy => scores.map(|scores| i64::from(scores.resolution_accuracy.tenths())),
        SortKey::InteractionEffort => scores.map(|scores| i64::from(scores.interaction_effort.tenths())),
        SortKey::HandoffSmoothness => scores.map(|scores| i64::from(scores.handoff_smoothness.tenths())),
        SortKey::Confidence => scores.map(|scores| i64::from(scores.confidence.hundredths())),
        SortKey::Charge => {
            let charge = row.evaluation.charge.filter(|charge| *charge != ChargeAssessment::NotApplicable);
            charge.map(|charge| i64::from(code_of(charge)))
        }
    }
}

pub fn position_of(row: &EvaluationItem, sort: Sort) -> ListPosition {
    ListPosition { value: sort_value(row, sort), started_at: row.ticket.started_at, ticket_id: row.ticket.id }
}

pub fn compare(one: &EvaluationItem, other: &EvaluationItem, sort: Sort) -> Ordering {
    let date = |row: &EvaluationItem| (row.ticket.started_at, row.ticket.id);
    if sort.key == SortKey::StartedAt {
        let order = date(one).cmp(&date(other));
        return if sort.descending { order.reverse() } else { order };
    }
    let (left, right) = (sort_value(one, sort), sort_value(other, sort));
    let values = if sort.descending { right.cmp(&left) } else { left.cmp(&right) };
    left.is_none().cmp(&right.is_none()).then(values).then(date(other).cmp(&date(one)))
}
