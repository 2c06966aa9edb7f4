//! `/internal/v1/refusals`: refused imports of the token's organization. The gateway reports them, the console lists them.

use actix_web::HttpResponse;
use actix_web::web::Payload;
use assay_contracts::json::JsonFault;
use assay_contracts::refusal::{ImportRefusal, ImportRefusals, MAX_REFUSALS};
use assay_contracts::tenant::Scope;
use assay_contracts::validation::{BodyError, FieldError};
use assay_platform::web::{WebError, parse_body};

use super::{Call, read_body};

/// Maximum size of a report, in bytes: [`MAX_REFUSALS`] refusals of less than 10 kB, whatever their characters.
const MAX_REPORT_BYTES: usize = 1024 * 1024;

/// Keeps reported refusals. 204 once they are committed.
pub async fn report(call: Call, payload: Payload) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Assess)?;
    let budget = call.services.body_budget.of_organization(organization_id);
    let body = read_body(&call, payload, MAX_REPORT_BYTES, &budget).await?;
    let reported = parse_body(&body, parse_report).await?;
    call.services.store.keep_refusals(organization_id, reported).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The latest refusals, newest first.
pub async fn list(call: Call) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::EvaluationsRead)?;
    let _permit = call.services.response_budget.build_permit().await?;
    let refusals = call.services.store.list_refusals(organization_id).await?;
    let response = HttpResponse::Ok().json(ImportRefusals { refusals });
    call.services.response_budget.limit(organization_id, response)
}

fn parse_report(body: &[u8]) -> Result<Vec<ImportRefusal>, BodyError> {
    let report: ImportRefusals = serde_json::from_slice(body)
        .map_err(|error| BodyError::Malformed(JsonFault::of(&error).to_string()))?;
    if report.refusals.len() > MAX_REFUSALS {
        let detail = format!("must hold at most {MAX_REFUSALS} refusals");
        return Err(BodyError::Invalid(vec![FieldError { pointer: "/refusals".to_owned(), detail }]));
    }
    Ok(report.refusals)
}
