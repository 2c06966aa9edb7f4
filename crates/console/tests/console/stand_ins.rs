//! One HTTP server that stands in for ingest, scoring-worker, export and webhooks: it answers by the beginning of the path,
//! and records the requests.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use actix_web::web::{self, Data};
use actix_web::{HttpRequest, HttpResponse};
use anyhow::Result;
use assay_platform::runtime::{Phase, Tasks};
use assay_platform::web::{ServerSettings, serve};
use serde_json::{Value, json};
use url::Url;

use crate::test_app::{TICKET, TestApp, evaluation, listed, page_of, summary, transcript};

/// Answers by the beginning of the path, of which the longest counts; recorded paths have their query.
#[derive(Clone, Default)]
pub struct StandIn {
    answers: Arc<Mutex<BTreeMap<String, (u16, Value)>>>,
    requested_paths: Arc<Mutex<Vec<String>>>,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl StandIn {
    /// Starts the server, which answers health and readiness itself.
    pub fn start(&self, tasks: &mut Tasks) -> Result<Url> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let state = Data::new(self.clone());
        let settings = ServerSettings { workers: 1, ..ServerSettings::default() };
        serve(tasks, Phase::ServeInternal, "stand-in", listener, settings, move |app| {
            app.app_data(state.clone()).service(web::resource("/{path:.*}").to(answer));
        })?;
        Ok(address)
    }

    pub fn answer(&self, path: &str, status: u16, body: Value) {
        self.answers.lock().unwrap().insert(path.to_owned(), (status, body));
    }

    /// Answers with a problem of which only the code matters.
    pub fn refuse(&self, path: &str, status: u16, code: &str) {
        self.answer(path, status, json!({ "status": status, "title": "Refused", "type": format!("urn:assay:problem:{code}"), "code": code }));
    }

    /// The bodies that were sent.
    pub fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }

    pub fn requested_paths(&self) -> Vec<String> {
        self.requested_paths.lock().unwrap().clone()
    }
}

/// Answers for pages.
impl TestApp {
    /// Sets answers for every page of [`crate::headers`].
    pub fn answer_all(&self) {
        let answers = [
            ("/internal/v1/evaluations", listed(&["One"], 1, None)),
            ("/internal/v1/evaluations/summary", summary()),
            ("/internal/v1/evaluations/count", json!({ "count": 0 })),
            ("/internal/v1/tickets?", json!({ "count": 0 })),
            ("/internal/v1/refusals", json!({ "refusals": [] })),
            ("/internal/v1/exports", page_of(&[])),
            ("/internal/v1/webhooks", page_of(&[])),
        ];
        for (path, answer) in answers {
            self.services.answer(path, 200, answer);
        }
        self.answer_conversation(transcript("Refund", &["Hi", "Hello"]), evaluation("m-2", "Hello", 0));
    }

    /// Sets answers for the page of the conversation [`TICKET`].
    pub fn answer_conversation(&self, transcript: Value, evaluation: Value) {
        let neighbours = json!({ "included": true, "position": 1, "total": { "count": 1, "exact": true } });
        self.services.answer(&format!("/internal/v1/tickets/{TICKET}/transcript"), 200, transcript);
        self.services.answer(&format!("/internal/v1/tickets/{TICKET}/evaluation"), 200, evaluation);
        self.services.answer(&format!("/internal/v1/evaluations/{TICKET}/neighbours"), 200, neighbours);
    }

    /// Sets answers for the page of a webhook, whose id is [`TICKET`], too.
    pub fn answer_webhook(&self) {
        self.services.answer(&format!("/internal/v1/webhooks/{TICKET}"), 200, webhook(true));
        self.services.answer(&format!("/internal/v1/webhooks/{TICKET}/deliveries"), 200, page_of(&[]));
    }
}

/// A webhook, whose id is [`TICKET`], too.
pub fn webhook(is_enabled: bool) -> Value {
    json!({
        "id": TICKET, "url": "https://a.example", "description": "Old", "events": ["export.completed"],
        "axis_low_score_below": 3.0, "enabled": is_enabled, "created_at": 0, "updated_at": 0,
    })
}

async fn answer(request: HttpRequest, body: web::Bytes, state: Data<StandIn>) -> HttpResponse {
    state.bodies.lock().unwrap().extend(serde_json::from_slice(&body));
    let path = request.uri().path_and_query().map(|path| path.as_str().to_owned()).unwrap_or_default();
    state.requested_paths.lock().unwrap().push(path.clone());
    let answers = state.answers.lock().unwrap();
    // Of several that match, the longest one is the last in the order of the map.
    let found = answers.iter().rev().find(|(start, _)| path.starts_with(start.as_str()));
    match found {
        Some((_, (status, body))) => {
            HttpResponse::build(actix_web::http::StatusCode::from_u16(*status).unwrap()).json(body)
        }
        None => HttpResponse::NotFound().finish(),
    }
}
