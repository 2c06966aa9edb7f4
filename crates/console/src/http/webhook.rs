//! One webhook: its settings, its deliveries (messages, on pages) with their attempts, and replays.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::evaluation::Named as _;
use assay_contracts::ids::{WebhookDeliveryId, WebhookId};
use assay_contracts::page::Page;
use assay_contracts::webhook::{DeliveryStatus, Webhook, WebhookDelivery, WebhookDeliveryDetails};
use serde_json::json;

use super::error::PageError;
use super::form::{Faults, query_of};
use super::long_list::refused_cursor;
use super::respond::{page, redirect};
use super::session_form::CheckedForm;
use super::shell::Shell;
use super::viewer::SessionRequest;
use super::webhooks::{SECTION, WebhookForm, change_body, state_text, webhooks_of};
use crate::domain::{PageTime, Pairs, escaped_json, first_value, with_query, words};

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    shell: Shell,
    id: String,
    url: String,
    state: String,
    is_enabled: bool,
    form: WebhookForm,
    deliveries: Vec<Row>,
    /// Filters by status: name, address, and whether it is the current one.
    statuses: Vec<(&'static str, String, bool)>,
    /// What is wrong with the query.
    faults: Faults,
    next: Option<String>,
    notice: Option<&'static str>,
    secret: Option<String>,
}

struct Row {
    id: String,
    event: String,
    status: &'static str,
    attempts: u32,
    created: PageTime,
    next_attempt: Option<PageTime>,
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    shell: Shell,
    webhook: String,
    row: Row,
    /// Why it cannot be sent again; `None` if it can.
    refusal: Option<&'static str>,
    payload: Option<String>,
    attempts: Vec<AttemptRow>,
}

struct AttemptRow {
    number: u32,
    at: PageTime,
    took: String,
    outcome: String,
    has_succeeded: bool,
}

pub(crate) async fn show_webhook(
    request: SessionRequest,
    id: Path<String>,
) -> Result<HttpResponse, PageError> {
    show(&request, webhook_id(&id)?, StatusCode::OK, |page| page.form.refill(&request.http)).await
}

/// Saves the settings, or does what one of the buttons says: `test`, `rotate`, `enable`, `disable`, `delete`.
pub(crate) async fn change(
    CheckedForm { request, fields }: CheckedForm,
    id: Path<String>,
) -> Result<HttpResponse, PageError> {
    let (webhooks, id) = (webhooks_of(&request)?, webhook_id(&id)?);
    let redirect_back = |done: &str| Ok(redirect(&format!("{SECTION}/{id}?done={done}")));
    match fields.get("do") {
        "test" => {
            webhooks.send_test(id).await?;
            redirect_back("test")
        }
        "rotate" => {
            let secret = webhooks.rotate_secret(id).await?.secret;
            show(&request, id, StatusCode::OK, |page| page.secret = Some(secret)).await
        }
        "delete" => {
            webhooks.delete(id).await?;
            Ok(redirect(&format!("{SECTION}?done=deleted")))
        }
        action @ ("enable" | "disable") => {
            webhooks.change(id, &json!({ "enabled": action == "enable" })).await?;
            redirect_back("changed")
        }
        _ => match webhooks.change(id, &change_body(&fields)).await {
            Ok(_) => redirect_back("changed"),
            Err(ClientError::ErrorStatus { status: 400, problem: Some(problem), .. }) => {
                let faults = Faults::of_problem(*problem, "url");
                let form = WebhookForm::from_fields(&fields, faults);
                show(&request, id, StatusCode::BAD_REQUEST, |page| page.form = form).await
            }
            Err(error) => Err(error.into()),
        },
    }
}

async fn show(
    request: &SessionRequest,
    id: WebhookId,
    status: StatusCode,
    fill: impl FnOnce(&mut WebhookPage),
) -> Result<HttpResponse, PageError> {
    let query = query_of(&request.http);
    let mut faults = Faults::of_parameters(&query, &["status", "cursor", "done"]);
    let get = |name: &str| first_value(&query, name);
    let (wanted_status, cursor) =
        (get("status").filter(|status| DeliveryStatus::from_name(status).is_some()), get("cursor"));
    if get("status") != wanted_status {
        faults.add("status", format!("is none of {}", DeliveryStatus::names()));
    }
    let (webhook, deliveries) = read_with_deliveries(request, id, wanted_status, cursor, &mut faults).await?;
    let status = if faults.is_empty() { status } else { StatusCode::BAD_REQUEST };
    let here = format!("{SECTION}/{id}");
    let statuses = DeliveryStatus::ALL.iter().map(|status| status.as_str());
    let address = |name: &str| with_query(&here, &[("status".to_owned(), name.to_owned())]);
    let next = deliveries.page_info.next_cursor.map(|cursor| {
        let status = wanted_status.map(|status| ("status".to_owned(), status.to_owned()));
        with_query(&here, &status.into_iter().chain([("cursor".to_owned(), cursor)]).collect::<Pairs>())
    });
    let all = [("all", here.clone(), wanted_status.is_none())];
    let mut template = WebhookPage {
        shell: Shell::new(request, SECTION, "Webhook"),
        id: id.to_string(),
        state: state_text(&webhook),
        is_enabled: webhook.enabled,
        form: WebhookForm::of(&webhook),
        url: webhook.url,
        deliveries: deliveries.data.iter().map(row).collect(),
        statuses: all
            .into_iter()
            .chain(statuses.map(|name| (name, address(name), wanted_status == Some(name))))
            .collect(),
        next,
        faults,
        notice: get("done").and_then(notice),
        secret: None,
    };
    fill(&mut template);
    page(&request.http, status, &template)
}

/// The notice of the page after the action `done`.
fn notice(done: &str) -> Option<&'static str> {
    match done {
        "test" => Some("A test message is queued; it appears below."),
        "changed" => Some("The webhook is changed."),
        "replayed" => Some("The message is queued again."),
        _ => None,
    }
}

/// The webhook, and the page of its deliveries at the cursor; the first one, with a fault, when the cursor is refused.
async fn read_with_deliveries(
    request: &SessionRequest,
    id: WebhookId,
    wanted_status: Option<&str>,
    cursor: Option<&str>,
    faults: &mut Faults,
) -> Result<(Webhook, Page<WebhookDelivery>), PageError> {
    let webhooks = webhooks_of(request)?;
    let listed = webhooks.list_deliveries(id, wanted_status, cursor);
    let (webhook, listed) = futures_util::future::join(webhooks.read(id), listed).await;
    let webhook = webhook?;
    let refused = refused_cursor(cursor, &listed);
    if refused.is_empty() {
        return Ok((webhook, listed?));
    }
    faults.extend(refused);
    Ok((webhook, webhooks.list_deliveries(id, wanted_status, None).await?))
}

pub(crate) async fn show_delivery(
    request: SessionRequest,
    ids: Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (webhook, delivery) = (webhook_id(&ids.0)?, delivery_id(&ids.1)?);
    let webhooks = webhooks_of(&request)?;
    let found = webhooks.read_delivery(webhook, delivery);
    let (webhook, found) = futures_util::future::try_join(webhooks.read(webhook), found).await?;
    let shell = Shell::new(&request, SECTION, "Message");
    page(&request.http, StatusCode::OK, &delivery_page(shell, &webhook, found))
}

pub(crate) async fn replay(
    CheckedForm { request, .. }: CheckedForm,
    ids: Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (webhook, delivery) = (webhook_id(&ids.0)?, delivery_id(&ids.1)?);
    webhooks_of(&request)?.replay_delivery(webhook, delivery).await?;
    Ok(redirect(&format!("{SECTION}/{webhook}?done=replayed")))
}

fn delivery_page(shell: Shell, webhook: &Webhook, found: WebhookDeliveryDetails) -> DeliveryPage {
    let attempts = found.attempt_log.iter().map(|attempt| AttemptRow {
        number: attempt.number,
        at: PageTime::long(attempt.attempted_at),
        took: format!("{} ms", attempt.duration_ms),
        outcome: match (attempt.status_code, attempt.error) {
            (Some(code), None) => code.to_string(),
            (Some(code), Some(error)) => format!("{code}, {}", words(error.as_str())),
            (None, error) => error.map_or_else(String::new, |error| words(error.as_str())),
        },
        has_succeeded: attempt.error.is_none(),
    });
    DeliveryPage {
        refusal: match (&found.payload, webhook.enabled) {
            (None, _) => Some("It cannot be sent again: its payload was erased."),
            (Some(_), false) => Some("It can be sent again when the webhook is turned on."),
            (Some(_), true) => None,
        },
        attempts: attempts.collect(),
        payload: found
            .payload
            .and_then(|payload| serde_json::to_string_pretty(&payload).ok())
            .map(|json| escaped_json(&json)),
        row: row(&found.delivery),
        webhook: webhook.id.to_string(),
        shell,
    }
}

fn row(delivery: &WebhookDelivery) -> Row {
    Row {
        id: delivery.id.to_string(),
        event: words(delivery.event.as_str()),
        status: delivery.status.as_str(),
        attempts: delivery.attempts,
        created: PageTime::long(delivery.created_at),
        next_attempt: delivery.next_attempt_at.map(PageTime::long),
    }
}

fn webhook_id(text: &str) -> Result<WebhookId, PageError> {
    text.parse().map_err(|_| PageError::NotFound)
}

fn delivery_id(text: &str) -> Result<WebhookDeliveryId, PageError> {
    text.parse().map_err(|_| PageError::NotFound)
}
