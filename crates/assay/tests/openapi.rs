//! `proto-docs/openapi/assay.json` is up to date, and its examples are valid.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use assay_contracts::evaluation::TicketEvaluation;
use assay_contracts::evaluations::{EvaluationPage, ItemTicket};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};
use assay_contracts::problem::ProblemCode;
use assay_export::domain::evaluation_facts::EvaluationFacts;
use assay_platform::runtime::new_id;
use serde_json::{Value, json};

const COMMITTED: &str = include_str!("../../../proto-docs/openapi/assay.json");

fn document() -> Value {
    serde_json::from_str(COMMITTED).unwrap()
}

/// Every operation with its name.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push((format!("{method} {path}"), operation));
        }
    }
    operations
}

/// The content of this media type.
fn content<'d>(body: &'d Value, media_type: &str) -> Option<&'d Value> {
    body["content"].as_object()?.get(media_type)
}

/// The example of a successful answer to `GET`.
fn answer<'d>(document: &'d Value, path: &str) -> &'d Value {
    &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["example"]
}

/// Asserts that `value` matches `schema`, which may refer to other schemas of the document.
fn check(document: &Value, schema: &Value, value: &Value, what: &str) {
    let mut whole = schema.as_object().unwrap().clone();
    whole.insert("components".to_owned(), document["components"].clone());
    let validator = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&Value::Object(whole))
        .unwrap();
    let faults: Vec<_> =
        validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{what}: {faults:?}");
}

#[test]
fn openapi_document_is_up_to_date() {
    let output = Command::new(env!("CARGO_BIN_EXE_assay")).arg("openapi").output().unwrap();
    assert!(output.status.success());
    let generated = String::from_utf8(output.stdout).unwrap();
    assert!(
        generated == COMMITTED,
        "the public API changed: run `make docs` and commit proto-docs/openapi/assay.json"
    );
}

#[test]
fn json_bodies_have_valid_examples() {
    let document = document();
    let mut examples = 0;
    for (name, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        let bodies = responses.iter().map(|(status, body)| (format!("{name} {status}"), body));
        for (what, body) in bodies.chain([(name.clone(), &operation["requestBody"])]) {
            let Some(content) = content(body, "application/json") else { continue };
            let example = content.get("example").unwrap_or_else(|| panic!("{what} has no example"));
            check(&document, &content["schema"], example, &what);
            examples += 1;
        }
    }
    assert!(examples >= 15, "{examples}");
    let known: Value =
        serde_json::from_str(include_str!("../../../proto-docs/openapi/examples.json")).unwrap();
    let ids: BTreeSet<&str> = operations(&document)
        .iter()
        .map(|(_, operation)| operation["operationId"].as_str().unwrap())
        .collect();
    for id in known.as_object().unwrap().keys() {
        assert!(ids.contains(id.as_str()), "an example of {id}, which is no operation");
    }
}

#[test]
fn every_problem_has_an_example() {
    let document = document();
    let schema = json!({"$ref": "#/components/schemas/Problem"});
    let mut shown = BTreeSet::new();
    for (name, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let Some(content) = content(response, "application/problem+json") else { continue };
            let examples = content["examples"].as_object();
            let examples = examples.unwrap_or_else(|| panic!("{name} {status} has no example"));
            for (code, reference) in examples {
                assert_eq!(reference["$ref"], format!("#/components/examples/{code}"));
                let example = &document["components"]["examples"][code]["value"];
                assert_eq!(example["status"].to_string(), *status, "{name}: {code}");
                check(&document, &schema, example, code);
                shown.insert(code.clone());
            }
        }
    }
    // Problems outside operations have no example.
    shown.insert(ProblemCode::RouteNotFound.as_str().to_owned());
    let codes: BTreeSet<String> = ProblemCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(shown, codes);
}

#[test]
fn example_evaluation_matches_the_scorer() {
    let document = document();
    let request =
        &document["paths"]["/v1/assess"]["post"]["requestBody"]["content"]["application/json"]["example"];
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), request.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_assay")).arg("score").arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut scored: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut shown = answer(&document, "/v1/tickets/{id}/evaluation").clone();
    for key in ["id", "ticket_id", "created_at"] {
        assert!(shown.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    // Resolved by the agent registry.
    scored["ai_tools"][0]["agent_id"] = shown["ai_tools"][0]["agent_id"].clone();
    assert_eq!(
        shown, scored,
        "copy what `assay score` prints into proto-docs/openapi/examples.json, then `make docs`"
    );
}

/// The row of the list is made from the evaluation in the same way as in the product.
#[test]
fn example_list_shows_the_example_evaluation() {
    let document = document();
    let list: EvaluationPage = serde_json::from_value(answer(&document, "/v1/evaluations").clone()).unwrap();
    let [row] = list.data.as_slice() else { panic!("not one row: {list:?}") };
    let evaluated = answer(&document, "/v1/tickets/{id}/evaluation").clone();
    let TicketEvaluation::Done { id, ticket_id, created_at, evaluation } =
        serde_json::from_value(evaluated).unwrap()
    else {
        panic!("the example is not evaluated")
    };
    let ItemTicket { source, source_account_id, subject, imported_at, agents, .. } = row.ticket.clone();
    let ticket = TicketFacts {
        id: ticket_id,
        external_id: evaluation.external_ticket_id.clone(),
        source,
        source_account_id,
        subject: Some(subject),
        started_at: evaluation.timeline.started_at,
        ended_at: evaluation.timeline.ended_at,
        imported_at,
        agents,
    };
    let event = ConversationEvaluated {
        organization_id: new_id(),
        ticket,
        evaluation_id: id,
        evaluated_at: created_at,
        outcome: EvaluationOutcome::Evaluated { evaluation },
        sequence: 1,
    };
    assert_eq!(*row, EvaluationFacts::of(&event).into_item());
}
