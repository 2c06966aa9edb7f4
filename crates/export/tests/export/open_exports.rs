//! Limits: unfinished exports of an organization, and the size of a request.

use anyhow::Result;
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::runtime::new_id;
use assay_testkit::{number_on, on_both_databases};
use futures_util::future::join_all;

use crate::test_app::{PreparedDatabase, header, problem};

const BODY: &str = r#"{"kind":"axis"}"#;

async fn open_exports_of_an_organization_are_bounded(prepared: PreparedDatabase) -> Result<()> {
    let app = prepared.start_with(|config| config.max_open_exports = 3)?;
    let organization: OrganizationId = new_id();
    let responses = join_all((0..12).map(|_| app.post(organization, BODY, None))).await;
    let mut created = 0;
    for response in responses {
        let response = response?;
        if response.status() == 201 {
            created += 1;
            continue;
        }
        assert!(header(&response, "retry-after").is_some());
        let refusal = problem(response, 429, "too-many-exports").await?;
        assert_eq!(refusal.detail.as_deref(), Some("the limit is 3: wait until one is complete"));
    }
    assert_eq!(created, 3);
    assert_eq!(number_on(&app.test_database.database, "SELECT count(*) FROM exports").await?, 3);
    assert_eq!(app.post(new_id(), BODY, None).await?.status(), 201, "another organization");
    app.complete(b"header\r\n", Timestamp::MAX).await?;
    assert_eq!(app.post(organization, BODY, None).await?.status(), 201);
    problem(app.post(organization, BODY, None).await?, 429, "too-many-exports").await?;
    Ok(())
}

async fn refused_export_leaves_no_record_of_its_key(prepared: PreparedDatabase) -> Result<()> {
    let app = prepared.start_with(|config| config.max_open_exports = 1)?;
    let organization: OrganizationId = new_id();
    let first = app.post(organization, BODY, Some("first")).await?.text().await?;
    for _ in 0..2 {
        let refused = app.post(organization, BODY, Some("second")).await?;
        problem(refused, 429, "too-many-exports").await?;
    }
    // The recorded response is sent again although the limit is reached.
    let replayed = app.post(organization, BODY, Some("first")).await?;
    assert_eq!((replayed.status().as_u16(), replayed.text().await?), (201, first));
    app.complete(b"header\r\n", Timestamp::MAX).await?;
    assert_eq!(app.post(organization, BODY, Some("second")).await?.status(), 201);
    Ok(())
}

async fn body_above_64_kib_is_refused(prepared: PreparedDatabase) -> Result<()> {
    let app = prepared.start()?;
    let body = |bytes: usize| {
        let fixed = r#"{"kind":"axis","note":""}"#.len();
        format!(r#"{{"kind":"axis","note":"{}"}}"#, "x".repeat(bytes - fixed))
    };
    assert_eq!(app.post(new_id(), &body(64 * 1024), None).await?.status(), 201);
    problem(app.post(new_id(), &body(64 * 1024 + 1), None).await?, 413, "payload-too-large").await?;
    Ok(())
}

on_both_databases! { PreparedDatabase {
    open_exports_of_an_organization_are_bounded,
    refused_export_leaves_no_record_of_its_key,
    body_above_64_kib_is_refused,
} }
