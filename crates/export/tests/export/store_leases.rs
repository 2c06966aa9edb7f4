//! Leases of workers on jobs.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_export::domain::job::{Job, JobState};
use assay_export::domain::lease::{Claim, ClaimTerms, FinishedFile};
use assay_export::store::{Notifications, work_store};
use assay_platform::runtime::new_id;
use assay_testkit::{execute_on, number_on, on_both_databases};

use crate::test_database::{Stores, create_job};

const NOW: Timestamp = Timestamp::saturating_from_millis(1_795_158_000_000);
const LEASE: i64 = 60_000;
/// A lease that ends later than this from now was set by a wrong clock.
const LONGEST_LEASE: i64 = 5 * LEASE;
const MAX_ATTEMPTS: u32 = 3;

impl Stores {
    async fn create(&self, created_at: Timestamp) -> Result<ExportId> {
        self.create_for(self.organization_id, created_at).await
    }

    async fn create_for(&self, organization_id: OrganizationId, created_at: Timestamp) -> Result<ExportId> {
        let moment = |millis| Some(Timestamp::saturating_from_millis(millis));
        let filters = ExportFilters { from: moment(1), to: moment(2), ..ExportFilters::default() };
        create_job(&self.exports, organization_id, filters, created_at, None).await
    }

    async fn claim_at(&self, now: Timestamp) -> Result<Option<Claim>> {
        Ok(self.work.claim(terms(now, now)).await?)
    }

    async fn claim(&self) -> Result<Claim> {
        self.claim_at(NOW).await?.context("no job waits")
    }

    async fn fail_exhausted(&self, now: Timestamp) -> Result<usize> {
        let latest_lease_end = now.plus_millis(LONGEST_LEASE);
        Ok(self.work.fail_exhausted(MAX_ATTEMPTS, latest_lease_end, "no use", now).await?)
    }

    async fn job(&self, id: ExportId) -> Result<Job> {
        self.exports.find(self.organization_id, id).await?.context("no such job")
    }
}

fn terms(now: Timestamp, pending_before: Timestamp) -> ClaimTerms {
    ClaimTerms {
        owner: new_id(),
        now,
        lease_millis: LEASE,
        latest_lease_end: now.plus_millis(LONGEST_LEASE),
        pending_before,
        max_attempts: MAX_ATTEMPTS,
        except: None,
    }
}

fn file(claim: &Claim) -> FinishedFile {
    FinishedFile {
        object_key: claim.object_key(),
        bytes: 10,
        rows: 1,
        sha256: "ab".to_owned(),
        expires_at: NOW.plus_millis(1_000),
        missing_evaluations: Some(3),
    }
}

async fn oldest_job_is_claimed_first(jobs: Stores) -> Result<()> {
    let young = jobs.create(NOW.plus_millis(-1)).await?;
    let old = jobs.create(NOW.plus_millis(-2)).await?;
    let claim = jobs.claim().await?;
    assert_eq!((claim.id, claim.kind, claim.attempt, claim.counted_attempt), (old, ExportKind::Axis, 1, 1));
    assert_eq!(claim.organization_id, jobs.organization_id);
    let filters = claim.filters;
    assert_eq!(
        (filters.from.map(Timestamp::as_millis), filters.to.map(Timestamp::as_millis)),
        (Some(1), Some(2))
    );
    assert_eq!(jobs.claim().await?.id, young);
    assert_eq!(jobs.claim_at(NOW).await?, None);
    assert_eq!(jobs.job(old).await?.status(), ExportStatus::Running);
    Ok(())
}

async fn organization_with_the_fewest_leases_is_next(jobs: Stores) -> Result<()> {
    for _ in 0..3 {
        jobs.create(NOW.plus_millis(-100)).await?;
    }
    let (second, third) = (new_id(), new_id());
    jobs.create_for(second, NOW.plus_millis(-50)).await?;
    jobs.create_for(second, NOW.plus_millis(-40)).await?;
    jobs.create_for(third, NOW).await?;
    let mut served = Vec::new();
    while let Some(claim) = jobs.claim_at(NOW).await? {
        served.push(claim.organization_id);
    }
    let first = jobs.organization_id;
    assert_eq!(served, [first, second, third, first, second, first]);
    Ok(())
}

async fn expired_and_released_leases_do_not_count(jobs: Stores) -> Result<()> {
    let other = new_id();
    jobs.create(NOW.plus_millis(-9)).await?;
    jobs.create(NOW.plus_millis(-8)).await?;
    jobs.claim().await?;
    let released = jobs.claim().await?;
    assert!(jobs.work.retry_later(&released, NOW.plus_millis(10 * LEASE), NOW).await?);
    // After its lease the first job is due again, and older than that of the other organization.
    jobs.create_for(other, NOW).await?;
    let later = NOW.plus_millis(LEASE);
    let claim = jobs.claim_at(later).await?.context("no job waits")?;
    assert_eq!((claim.organization_id, claim.attempt), (jobs.organization_id, 2));
    Ok(())
}

async fn simultaneous_claims_serve_every_organization(jobs: Stores) -> Result<()> {
    let mut organizations = HashSet::from([jobs.organization_id]);
    for _ in 0..8 {
        jobs.create(NOW.plus_millis(-100)).await?;
    }
    for _ in 0..3 {
        let other = new_id();
        organizations.insert(other);
        jobs.create_for(other, NOW).await?;
    }
    let claims = futures_util::future::join_all((0..4).map(|_| jobs.claim_at(NOW))).await;
    let mut served = HashSet::new();
    for claim in claims {
        served.insert(claim?.context("no job waits")?.organization_id);
    }
    assert_eq!(served, organizations);
    Ok(())
}

async fn excepted_organization_is_not_claimed(jobs: Stores) -> Result<()> {
    let other = new_id();
    let own = jobs.create(NOW.plus_millis(-1)).await?;
    jobs.create_for(other, NOW).await?;
    let without = |organization| ClaimTerms { except: Some(organization), ..terms(NOW, NOW) };
    let claim = jobs.work.claim(without(jobs.organization_id)).await?.context("no job waits")?;
    assert_eq!(claim.organization_id, other);
    assert_eq!(jobs.work.claim(without(jobs.organization_id)).await?, None);
    assert_eq!(jobs.work.claim(without(other)).await?.map(|claim| claim.id), Some(own));
    Ok(())
}

async fn job_is_claimed_by_one_worker_only(jobs: Stores) -> Result<()> {
    let mut created = HashSet::new();
    for _ in 0..4 {
        created.insert(jobs.create(NOW).await?);
    }
    let claims = futures_util::future::join_all((0..12).map(|_| jobs.claim_at(NOW))).await;
    let mut claimed = Vec::new();
    for claim in claims {
        claimed.extend(claim?.map(|claim| claim.id));
    }
    assert_eq!(claimed.len(), 4);
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), created);
    Ok(())
}

async fn young_job_is_not_claimed_by_polling(jobs: Stores) -> Result<()> {
    let id = jobs.create(NOW).await?;
    let before = NOW.plus_millis(-1);
    assert_eq!(jobs.work.claim(terms(NOW, before)).await?, None);
    assert_eq!(jobs.work.claim(terms(NOW, NOW)).await?.map(|claim| claim.id), Some(id));
    Ok(())
}

async fn expired_lease_is_taken_over_and_its_worker_changes_nothing(jobs: Stores) -> Result<()> {
    let id = jobs.create(NOW).await?;
    let expired = jobs.claim().await?;
    assert_eq!(jobs.claim_at(NOW.plus_millis(LEASE - 1)).await?, None);
    let later = NOW.plus_millis(LEASE);
    let successor = jobs.claim_at(later).await?.context("not taken over")?;
    assert_eq!((successor.id, successor.attempt, successor.counted_attempt), (id, 2, 2));
    assert_ne!(successor.object_key(), expired.object_key());

    assert!(!jobs.work.renew(&expired, later, later.plus_millis(LEASE)).await?);
    assert!(!jobs.work.complete(&expired, file(&expired), later).await?);
    assert!(!jobs.work.fail(&expired, "no", later).await?);
    assert!(!jobs.work.retry_later(&expired, later, later).await?);
    assert!(!jobs.work.release(&expired, later).await?);
    assert!(jobs.work.complete(&successor, file(&successor), later).await?);
    let job = jobs.job(id).await?;
    let JobState::Complete(file) = job.state else { anyhow::bail!("{job:?}") };
    assert_eq!((file.object_key, file.missing_evaluations), (successor.object_key(), Some(3)));
    Ok(())
}

async fn renewal_extends_the_lease_and_updates_the_job(jobs: Stores) -> Result<()> {
    let id = jobs.create(NOW).await?;
    let claim = jobs.claim().await?;
    let renewed_at = NOW.plus_millis(LEASE - 1);
    assert!(jobs.work.renew(&claim, renewed_at, renewed_at.plus_millis(LEASE)).await?);
    assert_eq!(jobs.job(id).await?.updated_at, renewed_at);
    assert_eq!(jobs.claim_at(NOW.plus_millis(LEASE)).await?, None);
    // A clock that is behind does not move `updated_at` back.
    assert!(jobs.work.renew(&claim, NOW, renewed_at.plus_millis(LEASE)).await?);
    assert_eq!(jobs.job(id).await?.updated_at, renewed_at);
    Ok(())
}

async fn completing_twice_with_the_same_file_succeeds(jobs: Stores) -> Result<()> {
    let id = jobs.create(NOW).await?;
    let claim = jobs.claim().await?;
    for _ in 0..2 {
        assert!(jobs.work.complete(&claim, file(&claim), NOW).await?);
    }
    let job = jobs.job(id).await?;
    let stored = job.file_at(NOW).context("no file")?;
    assert_eq!((stored.bytes, stored.sha256.as_str()), (10, "ab"));
    assert_eq!(job.file_at(NOW.plus_millis(1_000)), None);
    assert_eq!(jobs.claim_at(NOW.plus_millis(LEASE)).await?, None);
    Ok(())
}

async fn finished_job_is_announced_once_in_its_transaction(jobs: Stores) -> Result<()> {
    let finished = "SELECT count(*) FROM outbox WHERE topic = 'export.finished.v1'";
    let database = &jobs.test_database.database;
    jobs.create(NOW).await?;
    let complete = jobs.claim().await?;
    for _ in 0..2 {
        assert!(jobs.work.complete(&complete, file(&complete), NOW).await?);
    }
    assert_eq!(number_on(database, finished).await?, 1);
    jobs.create(NOW).await?;
    let failing = jobs.claim().await?;
    assert!(jobs.work.fail(&failing, "no use", NOW).await?);
    assert!(!jobs.work.fail(&failing, "no use", NOW).await?);
    assert_eq!(number_on(database, finished).await?, 2);
    jobs.create(NOW).await?;
    let mut now = NOW;
    for _ in 1..=MAX_ATTEMPTS {
        jobs.claim_at(now).await?.context("not claimed")?;
        now = now.plus_millis(LEASE);
    }
    assert_eq!(jobs.fail_exhausted(now).await?, 1);
    assert_eq!(jobs.fail_exhausted(now).await?, 0);
    assert_eq!(number_on(database, finished).await?, 3);
    let without_notifications = work_store(database, Notifications::Off);
    jobs.create(NOW).await?;
    let claim = without_notifications.claim(terms(now, now)).await?.context("no job waits")?;
    assert!(without_notifications.complete(&claim, file(&claim), now).await?);
    assert_eq!(number_on(database, finished).await?, 3);
    Ok(())
}

/// A worker whose clock was an hour ahead has claimed the job. Then its clock was set right, or its process ended.
async fn job_leased_by_a_wrong_clock_is_due(jobs: Stores) -> Result<()> {
    let id = jobs.create(NOW).await?;
    let ahead = NOW.plus_millis(3_600_000);
    let wrong = jobs.claim_at(ahead).await?.context("no job waits")?;
    let claim = jobs.claim().await?;
    assert_eq!((claim.id, claim.counted_attempt), (id, 2));
    assert!(
        !jobs.work.renew(&wrong, ahead, ahead.plus_millis(LEASE)).await?,
        "its worker has lost the lease"
    );
    assert_eq!(jobs.claim_at(NOW).await?, None);
    let last = jobs.claim_at(ahead.plus_millis(2 * LEASE)).await?.context("not claimed")?;
    assert_eq!(last.counted_attempt, MAX_ATTEMPTS);
    assert_eq!(jobs.fail_exhausted(NOW).await?, 1);
    Ok(())
}

async fn retried_job_waits_and_released_job_does_not(jobs: Stores) -> Result<()> {
    let id = jobs.create(NOW).await?;
    let claim = jobs.claim().await?;
    assert!(jobs.work.retry_later(&claim, NOW.plus_millis(50), NOW).await?);
    assert_eq!(jobs.job(id).await?.status(), ExportStatus::Running);
    assert_eq!(jobs.claim_at(NOW.plus_millis(49)).await?, None);
    let claim = jobs.claim_at(NOW.plus_millis(50)).await?.context("not due")?;
    assert_eq!((claim.attempt, claim.counted_attempt), (2, 2));
    let now = NOW.plus_millis(60);
    assert!(jobs.work.release(&claim, now).await?);
    let claim = jobs.claim_at(now).await?.context("not released")?;
    // A new attempt writes another file, but the released claim is not counted.
    assert_eq!((claim.attempt, claim.counted_attempt), (3, 2));
    Ok(())
}

async fn job_whose_workers_crashed_in_every_attempt_fails(jobs: Stores) -> Result<()> {
    let id = jobs.create(NOW).await?;
    let mut now = NOW;
    for counted_attempt in 1..=MAX_ATTEMPTS {
        assert_eq!(jobs.fail_exhausted(now).await?, 0);
        let claim = jobs.claim_at(now).await?.context("not claimed")?;
        assert_eq!(claim.counted_attempt, counted_attempt);
        now = now.plus_millis(LEASE);
    }
    assert_eq!(jobs.claim_at(now).await?, None);
    assert_eq!(jobs.fail_exhausted(now).await?, 1);
    let job = jobs.job(id).await?;
    assert_eq!((job.state, job.updated_at), (JobState::Failed { message: "no use".to_owned() }, now));
    Ok(())
}

async fn database_refuses_invalid_job_transitions(jobs: Stores) -> Result<()> {
    let complete = "status = 'complete', lease_owner = NULL, lease_until = NULL, error_message = NULL, \
                    object_key = 'k', file_bytes = 1, file_rows = 0, file_sha256 = 'x', file_expires_at = 1";
    let failed = "status = 'failed', lease_owner = NULL, lease_until = NULL, error_message = 'm', \
                  object_key = NULL, file_bytes = NULL, file_rows = NULL, file_sha256 = NULL, file_expires_at = NULL";
    let running = "status = 'running', lease_until = 1, error_message = NULL, \
                   object_key = NULL, file_bytes = NULL, file_rows = NULL, file_sha256 = NULL, file_expires_at = NULL";
    let pending = "status = 'pending', lease_until = NULL, lease_owner = NULL, error_message = NULL, \
                   object_key = NULL, file_bytes = NULL, file_rows = NULL, file_sha256 = NULL, file_expires_at = NULL";
    let (steps_to_complete, steps_to_failed) = ([running, complete], [running, failed]);
    let cases: [(&[&str], &str); 8] = [
        (&[], complete),
        (&[], failed),
        (&[running], pending),
        (&steps_to_complete, running),
        (&steps_to_complete, failed),
        (&steps_to_complete, pending),
        (&steps_to_failed, complete),
        (&steps_to_failed, running),
    ];
    let database = &jobs.test_database.database;
    for (path, refused) in cases {
        let id = jobs.create(NOW).await?;
        for step in path {
            assert_eq!(
                execute_on(database, format!("UPDATE exports SET {step} WHERE id = '{id}'")).await?,
                1
            );
        }
        let refusal = execute_on(database, format!("UPDATE exports SET {refused} WHERE id = '{id}'")).await;
        assert!(refusal.is_err(), "{path:?} -> {refused}");
    }
    assert_eq!(number_on(database, "SELECT count(*) FROM exports").await?, 8);
    Ok(())
}

on_both_databases! { Stores {
    oldest_job_is_claimed_first,
    organization_with_the_fewest_leases_is_next,
    expired_and_released_leases_do_not_count,
    simultaneous_claims_serve_every_organization,
    excepted_organization_is_not_claimed,
    job_is_claimed_by_one_worker_only,
    young_job_is_not_claimed_by_polling,
    expired_lease_is_taken_over_and_its_worker_changes_nothing,
    renewal_extends_the_lease_and_updates_the_job,
    completing_twice_with_the_same_file_succeeds,
    finished_job_is_announced_once_in_its_transaction,
    job_leased_by_a_wrong_clock_is_due,
    retried_job_waits_and_released_job_does_not,
    job_whose_workers_crashed_in_every_attempt_fails,
    database_refuses_invalid_job_transitions,
} }
