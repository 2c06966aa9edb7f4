//! Examples of the OpenAPI document: request and response bodies from `proto-docs/openapi/examples.json`, problems from the
//! pages of their codes. Tests check them against the schemas, the parsers and the scorer.

use std::collections::BTreeMap;

use assay_contracts::problem::ProblemCode;
use serde::Deserialize;
use serde_json::Value;
use utoipa::Modify;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, OpenApi as Document, PathItem, Ref, RefOr};

/// Request and response bodies by operation id.
const EXAMPLES: &str = include_str!("../../../../proto-docs/openapi/examples.json");

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// Adds examples to the bodies of the document.
pub(super) struct Examples;

#[derive(Deserialize, Default)]
struct OperationExamples {
    request: Option<Value>,
    /// By status code.
    #[serde(default)]
    responses: BTreeMap<String, Value>,
}

impl Modify for Examples {
    fn modify(&self, document: &mut Document) {
        // If the file is broken, which tests detect, the document has no examples.
        let mut examples: BTreeMap<String, OperationExamples> =
            serde_json::from_str(EXAMPLES).unwrap_or_default();
        for (path, item) in &mut document.paths.paths {
            for operation in operations(item) {
                let id = operation.operation_id.clone().unwrap_or_default();
                add(operation, path, examples.remove(&id).unwrap_or_default());
            }
        }
        add_problems(document.components.get_or_insert_with(Components::new));
    }
}

pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete].into_iter().flatten()
}

fn add(operation: &mut Operation, path: &str, mut examples: OperationExamples) {
    let has_body = operation.request_body.is_some();
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && let Some(RefOr::T(content)) = body.content.get_mut(JSON)
    {
        content.example = examples.request.take();
    }
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if let Some(RefOr::T(content)) = response.content.get_mut(JSON) {
            content.example = examples.responses.remove(status);
        }
        if let Some(RefOr::T(content)) = response.content.get_mut(PROBLEM) {
            let shape = OperationShape { path, has_body };
            let codes = ProblemCode::ALL.iter().filter(|code| status == &code.status().to_string());
            let codes = codes.filter(|code| shape.may_answer(**code));
            content.examples = codes.map(|code| (code.as_str().to_owned(), reference(*code))).collect();
        }
    }
}

/// The properties of an operation that decide which problems it can answer.
struct OperationShape<'a> {
    path: &'a str,
    has_body: bool,
}

impl OperationShape<'_> {
    fn may_answer(&self, code: ProblemCode) -> bool {
        let is_under = |prefix: &str| self.path.starts_with(prefix);
        let (is_file, is_file_address) = (is_under("/v1/downloads"), self.path.ends_with("/download"));
        match code {
            ProblemCode::MalformedJson => self.has_body,
            ProblemCode::AgentMismatch | ProblemCode::UnknownAgent | ProblemCode::DuplicateImport => {
                is_under("/v1/assess")
            }
            ProblemCode::DuplicateAgent => is_under("/v1/agents"),
            ProblemCode::InvalidCursor => !self.has_body,
            ProblemCode::InvalidSignature => is_file,
            ProblemCode::Forbidden => !is_file,
            ProblemCode::TicketNotFound => is_under("/v1/tickets"),
            ProblemCode::TranscriptExpired => self.path.ends_with("/transcript"),
            ProblemCode::ExportNotFound => is_under("/v1/evaluations/exports"),
            ProblemCode::ExportFileGone => is_file || is_file_address,
            ProblemCode::ExportNotReady | ProblemCode::ExportFailed => is_file_address,
            ProblemCode::TooManyExports => is_under("/v1/evaluations/exports") && self.has_body,
            ProblemCode::TooManyDownloads => is_file,
            ProblemCode::WebhookAddressRefused => is_under("/v1/webhooks") && self.has_body,
            ProblemCode::WebhooksOff => is_under("/v1/webhooks"),
            ProblemCode::WebhookNotFound => is_under("/v1/webhooks/"),
            ProblemCode::WebhookDeliveryNotFound => self.path.contains("/deliveries/"),
            ProblemCode::WebhookLimitReached => self.path == "/v1/webhooks",
            ProblemCode::WebhookDisabled => self.path.ends_with("/test") || self.path.ends_with("/replay"),
            ProblemCode::WebhookPayloadErased => self.path.ends_with("/replay"),
            ProblemCode::RouteNotFound => false,
            _ => true,
        }
    }
}

fn reference<T>(code: ProblemCode) -> RefOr<T> {
    RefOr::Ref(Ref::new(format!("#/components/examples/{}", code.as_str())))
}

/// Adds one example per problem; operations refer to it.
fn add_problems(components: &mut Components) {
    for code in ProblemCode::ALL {
        let value = serde_json::from_str::<Value>(code.example()).ok();
        let example = ExampleBuilder::new().summary(code.title()).value(value).build();
        components.examples.insert(code.as_str().to_owned(), RefOr::T(example));
    }
}
