//! Webhooks: the list and a new one.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::webhook::{DEFAULT_LOW_SCORE, Webhook, WebhookEvent};
use serde_json::{Value, json};

use super::error::PageError;
use super::form::{Faults, Fields, query_of};
use super::kept_form::kept_fields;
use super::respond::page;
use super::session_form::CheckedForm;
use super::shell::Shell;
use super::viewer::SessionRequest;
use crate::app::OrganizationWebhooks;
use crate::domain::{PageTime, words};

pub(crate) const SECTION: &str = "/console/webhooks";

#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    shell: Shell,
    /// `None`: this installation sends no webhooks.
    webhooks: Option<Vec<Row>>,
    /// Whether there are more than are listed.
    has_more: bool,
    form: WebhookForm,
    /// Address and secret of the webhook that was just created: this page shows the secret once.
    created: Option<(String, String)>,
    is_deleted: bool,
    /// What is wrong with the query.
    faults: Faults,
}

struct Row {
    id: String,
    url: String,
    description: String,
    events: String,
    state: String,
    is_bad: bool,
    failing_since: Option<PageTime>,
}

pub(crate) struct WebhookForm {
    pub(crate) url: String,
    pub(crate) description: String,
    pub(crate) low_score: String,
    /// Name, label, and whether it is chosen.
    pub(crate) events: Vec<(&'static str, String, bool)>,
    pub(crate) faults: Faults,
}

impl WebhookForm {
    fn empty() -> Self {
        Self {
            url: String::new(),
            description: String::new(),
            low_score: format!("{DEFAULT_LOW_SCORE:.1}"),
            events: events(|_| true),
            faults: Faults::default(),
        }
    }

    /// The form as it was sent.
    pub(crate) fn from_fields(fields: &Fields, faults: Faults) -> Self {
        Self {
            url: fields.get("url").to_owned(),
            description: fields.get("description").to_owned(),
            low_score: fields.get("axis_low_score_below").to_owned(),
            events: events(|name| fields.has("events", name)),
            faults,
        }
    }

    /// Takes what was typed before the request of the form failed.
    pub(crate) fn refill(&mut self, request: &HttpRequest) {
        if let Some(fields) = kept_fields(request) {
            *self = Self::from_fields(&fields, Faults::default());
        }
    }

    /// The form with the settings of a webhook.
    pub(crate) fn of(webhook: &Webhook) -> Self {
        Self {
            url: webhook.url.clone(),
            description: webhook.description.clone().unwrap_or_default(),
            low_score: webhook.axis_low_score_below.to_string(),
            events: events(|name| webhook.events.iter().any(|event| event.as_str() == name)),
            faults: Faults::default(),
        }
    }
}

fn events(is_chosen: impl Fn(&str) -> bool) -> Vec<(&'static str, String, bool)> {
    let all = WebhookEvent::SUBSCRIBABLE.iter().map(|event| event.as_str());
    all.map(|name| (name, words(name), is_chosen(name))).collect()
}

/// The body of a request that changes a webhook, as in the public API; the service checks it. An empty description removes the one
/// that the webhook has.
pub(crate) fn change_body(fields: &Fields) -> Value {
    let low_score = fields.get("axis_low_score_below").trim();
    let low_score: Value = low_score.parse::<f64>().map_or_else(|_| Value::from(low_score), Value::from);
    let events: Vec<&str> = fields.all("events").collect();
    json!({
        "url": fields.get("url").trim(),
        "events": events,
        "axis_low_score_below": low_score,
        "description": fields.get("description").trim(),
    })
}

/// The body of a request that creates a webhook: an empty description is left out.
fn creation_body(fields: &Fields) -> Value {
    let mut body = change_body(fields);
    if body["description"] == ""
        && let Some(object) = body.as_object_mut()
    {
        object.remove("description");
    }
    body
}

/// The service of webhooks; [`PageError::NotFound`] when they are turned off.
pub(crate) fn webhooks_of(request: &SessionRequest) -> Result<OrganizationWebhooks<'_>, PageError> {
    request.services().webhooks().ok_or(PageError::NotFound)
}

pub(crate) async fn list(request: SessionRequest) -> Result<HttpResponse, PageError> {
    let is_deleted = request.http.query_string() == "done=deleted";
    let faults = Faults::of_parameters(&query_of(&request.http), &["done"]);
    show(&request, faults.status(), |page| {
        page.is_deleted = is_deleted;
        page.form.refill(&request.http);
        page.faults = faults;
    })
    .await
}

pub(crate) async fn create(CheckedForm { request, fields }: CheckedForm) -> Result<HttpResponse, PageError> {
    match webhooks_of(&request)?.create(&creation_body(&fields)).await {
        Ok(created) => {
            let shown = (created.webhook.url, created.secret);
            show(&request, StatusCode::CREATED, |page| page.created = Some(shown)).await
        }
        Err(ClientError::ErrorStatus { status: 400 | 409, problem: Some(problem), .. }) => {
            let faults = Faults::of_problem(*problem, "url");
            let form = WebhookForm::from_fields(&fields, faults);
            show(&request, StatusCode::BAD_REQUEST, |page| page.form = form).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn show(
    request: &SessionRequest,
    status: StatusCode,
    fill: impl FnOnce(&mut WebhooksPage),
) -> Result<HttpResponse, PageError> {
    let listed = match request.services().webhooks() {
        Some(webhooks) => Some(webhooks.list().await?),
        None => None,
    };
    let mut template = WebhooksPage {
        shell: Shell::new(request, SECTION, "Webhooks"),
        has_more: listed.as_ref().is_some_and(|page| page.page_info.has_next_page),
        webhooks: listed.map(|page| page.data.iter().map(row).collect()),
        form: WebhookForm::empty(),
        created: None,
        is_deleted: false,
        faults: Faults::default(),
    };
    fill(&mut template);
    page(&request.http, status, &template)
}

fn row(webhook: &Webhook) -> Row {
    Row {
        id: webhook.id.to_string(),
        url: webhook.url.clone(),
        description: webhook.description.clone().unwrap_or_default(),
        events: webhook.events.iter().map(|event| words(event.as_str())).collect::<Vec<_>>().join(", "),
        state: state_text(webhook),
        is_bad: webhook.disabled_reason.is_some() || webhook.failing_since.is_some(),
        failing_since: webhook.failing_since.map(PageTime::long),
    }
}

/// Whether messages are sent to a webhook, in words.
pub(crate) fn state_text(webhook: &Webhook) -> String {
    match (webhook.enabled, webhook.disabled_reason) {
        (true, _) if webhook.failing_since.is_some() => "failing".to_owned(),
        (true, _) => "on".to_owned(),
        (false, Some(reason)) => format!("disabled: {}", words(reason.as_str())),
        (false, None) => "off".to_owned(),
    }
}
