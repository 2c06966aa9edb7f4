//! `GET /internal/v1/exports/{id}` and its `/download`, in every state of a job.

use anyhow::Result;
use assay_contracts::export::{DownloadAddress, ExportStatus, FileStatus};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::tenant::Scope;
use assay_contracts::time::Timestamp;
use assay_export::domain::lease::FinishedFile;
use assay_platform::auth::Audience;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{execute_on, on_both_databases};

use crate::test_app::{PUBLIC_BASE, TestApp, claim, claims, header, problem};

async fn pending_and_running_jobs_have_no_download_url(app: TestApp) -> Result<()> {
    let organization = new_id();
    let id = app.create(organization).await?.id;
    for status in [ExportStatus::Pending, ExportStatus::Running] {
        let export = app.read(organization, id).await?;
        assert_eq!((export.status, export.download_url, export.error_message), (status, None, None));
        let response = app.get(organization, &format!("/{id}/download")).await?;
        assert!(header(&response, "retry-after").is_some());
        problem(response, 409, "export-not-ready").await?;
        if status == ExportStatus::Pending {
            claim(&app.work).await?;
        }
    }
    Ok(())
}

async fn complete_job_has_an_absolute_download_url(app: TestApp) -> Result<()> {
    let organization = new_id();
    let id = app.create(organization).await?.id;
    app.complete(b"header\r\n", Timestamp::MAX).await?;
    let export = app.read(organization, id).await?;
    assert_eq!((export.status, export.error_message), (ExportStatus::Complete, None));
    assert_eq!((export.file_status, export.file_expires_at), (Some(FileStatus::Available), None));
    assert_eq!((export.evaluations_complete, export.missing_evaluations), (Some(true), Some(0)));
    let expected = format!("{PUBLIC_BASE}/v1/downloads/{id}?expires=");
    assert!(export.download_url.unwrap_or_default().starts_with(&expected));
    let response = app.get(organization, &format!("/{id}/download")).await?;
    assert_eq!(response.status(), 200);
    let address: DownloadAddress = response.json().await?;
    assert!(address.download_url.starts_with(&expected), "{address:?}");
    let list = app.get(organization, "").await?.text().await?;
    assert!(list.contains(&expected), "{list}");
    Ok(())
}

async fn failed_job_has_an_error_message(app: TestApp) -> Result<()> {
    let organization = new_id();
    let id = app.create(organization).await?.id;
    let claim = claim(&app.work).await?;
    app.work.fail(&claim, "the file could not be stored", now()).await?;
    let export = app.read(organization, id).await?;
    assert_eq!(export.status, ExportStatus::Failed);
    assert_eq!(export.error_message.as_deref(), Some("the file could not be stored"));
    let response = app.get(organization, &format!("/{id}/download")).await?;
    assert_eq!(header(&response, "retry-after"), None);
    let problem = problem(response, 409, "export-failed").await?;
    assert_eq!(problem.detail.as_deref(), Some("the file could not be stored"));
    Ok(())
}

async fn job_with_an_expired_file_stays_listed(app: TestApp) -> Result<()> {
    let organization = new_id();
    let id = app.create(organization).await?.id;
    let expiry = now();
    app.complete(b"header\r\n", expiry).await?;
    let export = app.read(organization, id).await?;
    assert_eq!((export.status, export.download_url), (ExportStatus::Complete, None));
    assert_eq!((export.file_status, export.file_expires_at), (Some(FileStatus::Expired), Some(expiry)));
    let response = app.get(organization, &format!("/{id}/download")).await?;
    problem(response, 404, "export-file-gone").await?;
    let list: serde_json::Value = app.get(organization, "").await?.json().await?;
    let listed = &list["data"][0];
    assert_eq!(
        (&listed["id"], &listed["file_status"]),
        (&id.to_string().into(), &"expired".into()),
        "{list}"
    );
    assert_eq!(listed.get("download_url"), None);
    Ok(())
}

async fn export_says_that_its_file_may_lack_evaluations(app: TestApp) -> Result<()> {
    let organization = new_id();
    for (missing, of_earlier_release) in [(Some(2), false), (None, false), (Some(0), true)] {
        let id = app.create(organization).await?.id;
        let claim = claim(&app.work).await?;
        let file = FinishedFile {
            object_key: claim.object_key(),
            bytes: 1,
            rows: 0,
            sha256: "ab".to_owned(),
            expires_at: Timestamp::MAX,
            missing_evaluations: missing,
        };
        assert!(app.work.complete(&claim, file, now()).await?);
        if of_earlier_release {
            let clear_count = format!("UPDATE exports SET missing_evaluations = NULL WHERE id = '{id}'");
            execute_on(&app.test_database.database, clear_count).await?;
        }
        let export: serde_json::Value = app.get(organization, &format!("/{id}")).await?.json().await?;
        assert_eq!(export["evaluations_complete"], false, "{export}");
        let expected = missing.filter(|_| !of_earlier_release).map(serde_json::Value::from);
        assert_eq!(export.get("missing_evaluations"), expected.as_ref(), "{export}");
    }
    Ok(())
}

async fn unknown_and_foreign_exports_are_not_found(app: TestApp) -> Result<()> {
    let organization: OrganizationId = new_id();
    let foreign = app.create(new_id()).await?.id;
    app.complete(b"header\r\n", Timestamp::MAX).await?;
    let unknown: ExportId = new_id();
    let upper_case = foreign.to_string().to_uppercase();
    for id in [&foreign.to_string(), &unknown.to_string(), "x", "%00", "0", &upper_case] {
        problem(app.get(organization, &format!("/{id}")).await?, 404, "export-not-found").await?;
        problem(app.get(organization, &format!("/{id}/download")).await?, 404, "export-not-found").await?;
    }
    Ok(())
}

async fn call_without_public_base_url_is_refused(app: TestApp) -> Result<()> {
    let token = app.tokens.issue(Audience::Export, &claims(new_id(), Scope::Exports), now())?;
    let address = format!("{}/internal/v1/exports", app.address);
    let response = app.http.get(address).bearer_auth(token).send().await?;
    problem(response, 400, "invalid-request").await?;
    Ok(())
}

on_both_databases! { TestApp {
    pending_and_running_jobs_have_no_download_url,
    complete_job_has_an_absolute_download_url,
    failed_job_has_an_error_message,
    job_with_an_expired_file_stays_listed,
    export_says_that_its_file_may_lack_evaluations,
    unknown_and_foreign_exports_are_not_found,
    call_without_public_base_url_is_refused,
} }
