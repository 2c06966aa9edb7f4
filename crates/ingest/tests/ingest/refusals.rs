//! `/internal/v1/refusals`: refused imports, which the gateway reports and the console lists.

use anyhow::Result;
use assay_contracts::ids::{OrganizationId, RefusalId};
use assay_contracts::problem::ProblemCode;
use assay_contracts::refusal::{ImportRefusal, ImportRefusals, MAX_REFUSALS};
use assay_contracts::tenant::Scope;
use assay_contracts::time::DAY_MILLIS;
use assay_contracts::validation::FieldError;
use assay_platform::auth::ServiceClaims;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, execute_on, on_both_databases, texts_on};
use uuid::Uuid;

use crate::test_app::{TestApp, claims_for};

on_both_databases! { TestApp {
    reported_refusals_are_listed_newest_first_and_once,
    only_the_latest_refusals_of_each_organization_are_kept,
    unreadable_refusal_is_left_out,
    refusals_expire_after_30_days,
    invalid_report_is_refused,
} }

const PATH: &str = "/internal/v1/refusals";

/// A refusal, later than those with smaller numbers.
fn refusal(number: usize) -> ImportRefusal {
    let error =
        FieldError { pointer: format!("/messages/{number}/content"), detail: "is required".to_owned() };
    ImportRefusal {
        id: RefusalId::from(Uuid::from_u128(number as u128)),
        refused_at: now(),
        code: ProblemCode::InvalidRequest,
        detail: format!("{} is required", error.pointer),
        errors: vec![error],
        omitted_errors: 0,
    }
}

/// Reports refusals; returns the status.
async fn report(app: &TestApp, organization: OrganizationId, refusals: &[ImportRefusal]) -> Result<u16> {
    let body = serde_json::to_string(&ImportRefusals { refusals: refusals.to_vec() })?;
    Ok(app.post(PATH, &claims_for(organization, Scope::Assess), body).await?.status().as_u16())
}

async fn list(app: &TestApp, organization: OrganizationId) -> Result<Vec<ImportRefusal>> {
    let response = app.get(PATH, &claims_for(organization, Scope::EvaluationsRead)).await?;
    let listed: ImportRefusals = response.error_for_status()?.json().await?;
    Ok(listed.refusals)
}

async fn reported_refusals_are_listed_newest_first_and_once(app: TestApp) -> Result<()> {
    assert!(list(&app, app.organization).await?.is_empty());
    let [first, second, third] = [refusal(1), refusal(2), refusal(3)];
    assert_eq!(report(&app, app.organization, &[first.clone(), second.clone()]).await?, 204);
    // As after a response that did not reach the gateway.
    let again = [first.clone(), second.clone(), third.clone()];
    assert_eq!(report(&app, app.organization, &again).await?, 204);
    assert_eq!(list(&app, app.organization).await?, [third, second, first]);
    assert!(list(&app, new_id()).await?.is_empty(), "another organization");
    Ok(())
}

async fn only_the_latest_refusals_of_each_organization_are_kept(app: TestApp) -> Result<()> {
    let other = new_id();
    report(&app, other, &[refusal(1)]).await?;
    let refusals: Vec<ImportRefusal> = (10..10 + MAX_REFUSALS + 5).map(refusal).collect();
    let (latest, earliest) = (&refusals[5..], &refusals[..5]);
    // Reports of two gateways may arrive in any order.
    report(&app, app.organization, latest).await?;
    report(&app, app.organization, earliest).await?;
    let listed = list(&app, app.organization).await?;
    assert_eq!(listed, latest.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(list(&app, other).await?.len(), 1);
    let rows = texts_on(&app.database, "SELECT CAST(count(*) AS text) AS value FROM refusals").await?;
    assert_eq!(rows, [(MAX_REFUSALS + 1).to_string()]);
    Ok(())
}

/// As if a later release had stored it, which knows more codes.
const MAKE_FIRST_UNREADABLE: &str = "
    UPDATE refusals SET refusal = replace(refusal, 'invalid-request', 'new-code')
    WHERE refusal LIKE '%/messages/1/%'";

async fn unreadable_refusal_is_left_out(app: TestApp) -> Result<()> {
    report(&app, app.organization, &[refusal(1), refusal(2)]).await?;
    execute_on(&app.database, MAKE_FIRST_UNREADABLE).await?;
    let listed = list(&app, app.organization).await?;
    assert_eq!(listed.iter().map(|refusal| refusal.id).collect::<Vec<_>>(), [refusal(2).id]);
    Ok(())
}

async fn refusals_expire_after_30_days(app: TestApp) -> Result<()> {
    let days_ago = |number, days: i64| ImportRefusal {
        refused_at: now().plus_millis(-days * DAY_MILLIS),
        ..refusal(number)
    };
    report(&app, app.organization, &[days_ago(1, 31), days_ago(2, 29)]).await?;
    let is_expired = || async { Ok(list(&app, app.organization).await?.len() == 1) };
    eventually("the older refusal to expire", is_expired).await?;
    // Another run of the maintenance, which asks the registry for retention periods, keeps the younger one.
    app.registry.wait_for_maintenance().await?;
    assert_eq!(list(&app, app.organization).await?[0].id, refusal(2).id);
    Ok(())
}

async fn invalid_report_is_refused(app: TestApp) -> Result<()> {
    let too_many: Vec<ImportRefusal> = (0..=MAX_REFUSALS).map(refusal).collect();
    assert_eq!(report(&app, app.organization, &too_many).await?, 400);
    let claims = app.claims(Scope::Assess);
    assert_eq!(app.post(PATH, &claims, "{}".to_owned()).await?.status(), 400);
    let empty = r#"{"refusals":[]}"#;
    assert_eq!(app.post(PATH, &app.claims(Scope::Tickets), empty.to_owned()).await?.status(), 403);
    assert_eq!(app.post(PATH, &ServiceClaims::Service, empty.to_owned()).await?.status(), 401);
    assert_eq!(app.get(PATH, &claims).await?.status(), 403);
    Ok(())
}
