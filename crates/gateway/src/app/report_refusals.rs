//! Reports refused imports to ingest, which keeps the latest of each organization for the console.
//!
//! Only the gateway sees every refusal: its own and those of ingest that it relays. Refusals wait in memory, bounded for each
//! organization and in total, and are reported together every [`REPORT_INTERVAL`]. So a flood of invalid bodies costs ingest at most
//! one small transaction for each organization in this time. But of more than [`MAX_REFUSALS`] in an interval only the latest are
//! reported, and those that wait when the process ends are lost.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use assay_clients::{Call, ClientError, ServiceClient};
use assay_contracts::ids::OrganizationId;
use assay_contracts::json::JsonFault;
use assay_contracts::problem::Problem;
use assay_contracts::refusal::{ImportRefusal, ImportRefusals, MAX_REFUSALS};
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_platform::auth::ServiceClaims;
use assay_platform::runtime::{LockExt as _, new_id, now};
use reqwest::Method;
use reqwest::header::HeaderMap;

pub(crate) const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of refusals of all organizations that wait. One takes less than 2 kB.
const MAX_WAITING: usize = 2_000;

/// Refused imports that wait for the next report.
#[derive(Default)]
pub(crate) struct Refusals {
    waiting: Mutex<Waiting>,
}

type ByOrganization = HashMap<OrganizationId, VecDeque<ImportRefusal>>;

#[derive(Default)]
struct Waiting {
    /// Oldest first. No entry is empty.
    by_organization: ByOrganization,
    /// Number of refusals of all organizations.
    count: usize,
}

impl Refusals {
    /// Notes that an import of the organization was refused, if refusals of this kind are kept.
    pub(crate) fn note(&self, organization_id: OrganizationId, problem: &Problem) {
        if let Some(refusal) = ImportRefusal::of(problem, new_id(), now()) {
            self.waiting.locked().add(organization_id, refusal);
        }
    }

    fn take(&self) -> ByOrganization {
        std::mem::take(&mut *self.waiting.locked()).by_organization
    }

    /// Puts refusals that were not reported before those that were noted meanwhile.
    fn restore(&self, unreported: impl Iterator<Item = (OrganizationId, VecDeque<ImportRefusal>)>) {
        let mut waiting = self.waiting.locked();
        for (organization_id, older) in unreported {
            let newer = waiting.remove(organization_id);
            for refusal in older.into_iter().chain(newer) {
                waiting.add(organization_id, refusal);
            }
        }
    }
}

impl Waiting {
    /// Adds the latest refusal of an organization. At a limit it displaces the oldest one of the same organization.
    fn add(&mut self, organization_id: OrganizationId, refusal: ImportRefusal) {
        let own = self.by_organization.get(&organization_id).map_or(0, VecDeque::len);
        let is_full = self.count >= MAX_WAITING;
        if is_full && own == 0 {
            return;
        }
        let refusals = self.by_organization.entry(organization_id).or_default();
        if is_full || own >= MAX_REFUSALS {
            refusals.pop_front();
        } else {
            self.count += 1;
        }
        refusals.push_back(refusal);
    }

    fn remove(&mut self, organization_id: OrganizationId) -> VecDeque<ImportRefusal> {
        let removed = self.by_organization.remove(&organization_id).unwrap_or_default();
        self.count -= removed.len();
        removed
    }
}

/// Reports the waiting refusals, one call for each organization.
///
/// # Errors
/// The last failure of a call. What was not reported waits for the next time, except refusals that ingest does not accept.
pub(crate) async fn report_refusals(refusals: &Refusals, ingest: &ServiceClient) -> Result<(), ClientError> {
    // All are taken before the first call: what is noted meanwhile is for the next report, so that a flood does not prolong this one.
    let mut waiting = refusals.take().into_iter();
    let mut outcome = Ok(());
    while let Some((organization_id, refused)) = waiting.next() {
        let report = ImportRefusals { refusals: refused.into() };
        let Err(error) = send(ingest, organization_id, &report).await else { continue };
        let is_answered = matches!(error, ClientError::ErrorStatus { .. });
        let to_retry = error.is_transient().then(|| (organization_id, VecDeque::from(report.refusals)));
        refusals.restore(to_retry.into_iter());
        outcome = Err(error);
        if !is_answered {
            // Ingest is unreachable: each further call would only wait for its deadline.
            refusals.restore(waiting);
            break;
        }
    }
    outcome
}

async fn send(
    ingest: &ServiceClient,
    organization_id: OrganizationId,
    report: &ImportRefusals,
) -> Result<(), ClientError> {
    let scopes = Scopes::from_iter([Scope::Assess]);
    let claims = ServiceClaims::Tenant(Tenant { organization_id, scopes });
    let body = serde_json::to_vec(report).map_err(|error| ClientError::InvalidRequest {
        service: ingest.name(),
        reason: JsonFault::of(&error).to_string(),
    })?;
    let call = Call {
        method: Method::POST,
        path: "/internal/v1/refusals",
        headers: HeaderMap::new(),
        body: Some(body.into()),
    };
    ingest.call_ignoring_body(&claims, call).await
}

#[cfg(test)]
mod tests {
    use assay_contracts::problem::ProblemCode;

    use super::*;

    fn note(refusals: &Refusals, organization_id: OrganizationId, details: std::ops::Range<usize>) {
        for number in details {
            let problem = Problem::new(ProblemCode::InvalidRequest, number.to_string());
            refusals.note(organization_id, &problem);
        }
    }

    fn details(refusals: &VecDeque<ImportRefusal>) -> Vec<usize> {
        refusals.iter().map(|refusal| refusal.detail.parse().unwrap()).collect()
    }

    #[test]
    fn flood_of_one_organization_keeps_its_latest_and_those_of_others() {
        let refusals = Refusals::default();
        let (flooding, other) = (new_id(), new_id());
        note(&refusals, other, 0..1);
        note(&refusals, flooding, 0..10_000);
        assert_eq!(refusals.waiting.locked().count, MAX_REFUSALS + 1);
        let taken = refusals.take();
        assert_eq!(details(&taken[&flooding]), (9_900..10_000).collect::<Vec<_>>());
        assert_eq!(details(&taken[&other]), [0]);
        assert!(refusals.take().is_empty());
    }

    #[test]
    fn refusals_of_many_organizations_are_bounded_in_total() {
        let refusals = Refusals::default();
        let organizations: Vec<OrganizationId> = (0..MAX_WAITING).map(|_| new_id()).collect();
        for organization_id in &organizations {
            note(&refusals, *organization_id, 0..1);
        }
        note(&refusals, new_id(), 0..3);
        note(&refusals, organizations[0], 7..8);
        assert_eq!(refusals.waiting.locked().count, MAX_WAITING);
        let taken = refusals.take();
        assert_eq!(taken.len(), MAX_WAITING);
        assert_eq!(details(&taken[&organizations[0]]), [7], "a full memory keeps the latest");
    }

    #[test]
    fn unreported_refusals_come_before_later_ones() {
        let refusals = Refusals::default();
        let (organization, other) = (new_id(), new_id());
        note(&refusals, organization, 0..2);
        note(&refusals, other, 0..1);
        let unreported = refusals.take();
        note(&refusals, organization, 2..4);
        refusals.restore(unreported.into_iter());
        assert_eq!(refusals.waiting.locked().count, 5);
        let taken = refusals.take();
        assert_eq!((details(&taken[&organization]), details(&taken[&other])), (vec![0, 1, 2, 3], vec![0]));
    }
}
