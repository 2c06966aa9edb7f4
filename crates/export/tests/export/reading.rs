//! `GET /internal/v1/exports/{id}` and its `/download`, in every state of a job.

use anyhow::Result;
use assay_contracts::export::{DownloadAddress, ExportStatus};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::tenant::Scope;
use assay_contracts::time::Timestamp;
use assay_platform::auth::Audience;
use assay_platform::runtime::{new_id, now};
use assay_testkit::on_both_databases;

use crate::stage::{PUBLIC_BASE, Stage, claim, claims, header, problem};

async fn a_job_that_waits_or_runs_has_no_address_yet(stage: Stage) -> Result<()> {
    let organization = new_id();
    let id = stage.create(organization).await?.id;
    for status in [ExportStatus::Pending, ExportStatus::Running] {
        let export = stage.read(organization, id).await?;
        assert_eq!((export.status, export.download_url, export.error_message), (status, None, None));
        let response = stage.get(organization, &format!("/{id}/download")).await?;
        assert!(header(&response, "retry-after").is_some());
        problem(response, 409, "export-not-ready").await?;
        if status == ExportStatus::Pending {
            claim(&*stage.work).await?;
        }
    }
    Ok(())
}

async fn a_complete_job_has_a_fresh_absolute_address(stage: Stage) -> Result<()> {
    let organization = new_id();
    let id = stage.create(organization).await?.id;
    stage.complete(b"header\r\n", Timestamp::MAX).await?;
    let export = stage.read(organization, id).await?;
    assert_eq!((export.status, export.error_message), (ExportStatus::Complete, None));
    let expected = format!("{PUBLIC_BASE}/v1/downloads/{id}?expires=");
    assert!(export.download_url.unwrap_or_default().starts_with(&expected));
    let response = stage.get(organization, &format!("/{id}/download")).await?;
    assert_eq!(response.status(), 200);
    let address: DownloadAddress = response.json().await?;
    assert!(address.download_url.starts_with(&expected), "{address:?}");
    let list = stage.get(organization, "").await?.text().await?;
    assert!(list.contains(&expected), "{list}");
    Ok(())
}

async fn a_failed_job_says_why(stage: Stage) -> Result<()> {
    let organization = new_id();
    let id = stage.create(organization).await?.id;
    let claim = claim(&*stage.work).await?;
    stage.work.fail(&claim, "the file could not be stored", now()).await?;
    let export = stage.read(organization, id).await?;
    assert_eq!(export.status, ExportStatus::Failed);
    assert_eq!(export.error_message.as_deref(), Some("the file could not be stored"));
    let response = stage.get(organization, &format!("/{id}/download")).await?;
    assert_eq!(header(&response, "retry-after"), None);
    let problem = problem(response, 409, "export-failed").await?;
    assert_eq!(problem.detail.as_deref(), Some("the file could not be stored"));
    Ok(())
}

async fn a_job_whose_file_is_no_longer_kept_stays_listed(stage: Stage) -> Result<()> {
    let organization = new_id();
    let id = stage.create(organization).await?.id;
    stage.complete(b"header\r\n", now()).await?;
    let export = stage.read(organization, id).await?;
    assert_eq!((export.status, export.download_url), (ExportStatus::Complete, None));
    let response = stage.get(organization, &format!("/{id}/download")).await?;
    problem(response, 404, "export-file-gone").await?;
    assert!(stage.get(organization, "").await?.text().await?.contains(&id.to_string()));
    Ok(())
}

async fn what_is_not_there_or_belongs_to_others_is_not_found(stage: Stage) -> Result<()> {
    let organization: OrganizationId = new_id();
    let foreign = stage.create(new_id()).await?.id;
    stage.complete(b"header\r\n", Timestamp::MAX).await?;
    let unknown: ExportId = new_id();
    let shouted = foreign.to_string().to_uppercase();
    for id in [&foreign.to_string(), &unknown.to_string(), "x", "%00", "0", &shouted] {
        problem(stage.get(organization, &format!("/{id}")).await?, 404, "export-not-found").await?;
        problem(stage.get(organization, &format!("/{id}/download")).await?, 404, "export-not-found").await?;
    }
    Ok(())
}

async fn a_call_that_does_not_say_where_the_public_is_cannot_be_answered(stage: Stage) -> Result<()> {
    let token = stage.tokens.issue(Audience::Export, &claims(new_id(), Scope::Exports), now())?;
    let address = format!("{}/internal/v1/exports", stage.address);
    let response = stage.http.get(address).bearer_auth(token).send().await?;
    problem(response, 400, "invalid-request").await?;
    Ok(())
}

on_both_databases! { Stage {
    a_job_that_waits_or_runs_has_no_address_yet,
    a_complete_job_has_a_fresh_absolute_address,
    a_failed_job_says_why,
    a_job_whose_file_is_no_longer_kept_stays_listed,
    what_is_not_there_or_belongs_to_others_is_not_found,
    a_call_that_does_not_say_where_the_public_is_cannot_be_answered,
} }
