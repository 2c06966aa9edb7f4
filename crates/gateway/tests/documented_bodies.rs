//! The OpenAPI document's request bodies match the parsers: documented bodies are accepted, and a body without a required
//! field is refused at that field.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use assay_contracts::agent::NewAgent;
use assay_contracts::conversation::{AiTool, Conversation};
use assay_contracts::evaluation::{ChargeReason, Flag, HandoffState};
use assay_contracts::export::{ExportStatus, NewExport};
use assay_contracts::validation::BodyError;
use assay_gateway::openapi_document;
use serde_json::{Map, Value, json};

type Parse = fn(&[u8]) -> Result<(), BodyError>;

const BODIES: [(&str, Parse); 3] = [
    ("ImportRequest", |body| Conversation::parse(body).map(drop)),
    ("NewAgentRequest", |body| NewAgent::parse(body).map(drop)),
    ("NewExportRequest", |body| NewExport::parse(body).map(drop)),
];

fn schemas() -> Value {
    serde_json::to_value(openapi_document()).unwrap()["components"]["schemas"].take()
}

/// Follows a reference.
fn resolve<'s>(schemas: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["$ref"].as_str() {
        Some(reference) => &schemas[reference.rsplit('/').next().unwrap()],
        None => schema,
    }
}

/// The properties that an example has.
#[derive(Clone, Copy, PartialEq)]
enum Include {
    All,
    Required,
}

/// A value that matches a schema.
fn value_of(schemas: &Value, schema: &Value, include: Include) -> Value {
    let schema = resolve(schemas, schema);
    if let Some(variants) = schema["oneOf"].as_array() {
        let variant = variants.iter().find(|variant| variant["type"] != "null").unwrap();
        return value_of(schemas, variant, include);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.last().unwrap().clone();
    }
    // Optional fields may be `null`: the other type comes first.
    match schema["type"].as_array().map_or(&schema["type"], |types| &types[0]).as_str() {
        Some("object") => object_of(schemas, schema, include),
        Some("array") => json!([value_of(schemas, &schema["items"], include)]),
        Some("integer") => json!(1_763_600_000_000_i64),
        Some("number") => schema["minimum"].clone(),
        Some("string") => json!("text"),
        other => panic!("{other:?} in {schema}"),
    }
}

/// A value for list filters: those whose schema has no enumeration, and those for which the last value of their enumeration
/// contradicts other filters.
fn list_filter_value(name: &str, schema: &Value) -> Option<Value> {
    let is_list = schema["type"].as_str().or_else(|| schema["type"][0].as_str()) == Some("array");
    match name {
        "agent" if is_list => Some(json!(["none"])),
        "involvement" if is_list => Some(json!(["ai_only"])),
        "language" if is_list => Some(json!(["en"])),
        "status" if is_list => Some(json!(["scored"])),
        _ => None,
    }
}

fn object_of(schemas: &Value, schema: &Value, include: Include) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().unwrap();
    let is_included = |name: &String| include == Include::All || required.contains(&json!(name));
    let fields = properties.iter().filter(|(name, _)| is_included(name)).map(|(name, property)| {
        let value = list_filter_value(name, property);
        (name.clone(), value.unwrap_or_else(|| value_of(schemas, property, include)))
    });
    Value::Object(Map::from_iter(fields))
}

#[test]
fn documented_bodies_are_accepted_with_and_without_optional_fields() {
    let schemas = schemas();
    for (name, parse) in BODIES {
        for include in [Include::Required, Include::All] {
            let body = value_of(&schemas, &schemas[name], include);
            let result = parse(body.to_string().as_bytes());
            assert!(result.is_ok(), "{name}: {body}: {result:?}");
        }
    }
}

#[test]
fn documented_authors_are_accepted() {
    let schemas = schemas();
    for variant in schemas["ImportAuthor"]["oneOf"].as_array().unwrap() {
        let mut body = value_of(&schemas, &schemas["ImportRequest"], Include::Required);
        body["messages"][0]["author"] = value_of(&schemas, variant, Include::All);
        let result = Conversation::parse(body.to_string().as_bytes());
        assert!(result.is_ok(), "{body}: {result:?}");
    }
}

#[test]
fn body_without_a_required_field_is_refused_at_that_field() {
    let schemas = schemas();
    for (name, parse) in BODIES {
        for field in schemas[name]["required"].as_array().unwrap() {
            let field = field.as_str().unwrap();
            let mut body = value_of(&schemas, &schemas[name], Include::All);
            body.as_object_mut().unwrap().remove(field);
            let Err(BodyError::Invalid(errors)) = parse(body.to_string().as_bytes()) else {
                panic!("{name} without {field} was accepted");
            };
            assert_eq!(errors[0].pointer, format!("/{field}"), "{name}");
        }
    }
}

#[test]
fn documented_enum_values_match_the_wire_names() {
    let schemas = schemas();
    let names = |schema: &str| schemas[schema]["enum"].clone();
    assert_eq!(names("AiTool"), names_of(AiTool::ALL, |tool| tool.as_str()));
    assert_eq!(names("ChargeReason"), names_of(ChargeReason::ALL, |reason| reason.as_str()));
    assert_eq!(names("HandoffState"), names_of(HandoffState::ALL, |state| state.as_str()));
    assert_eq!(names("Flag"), names_of(Flag::ALL, |flag| flag.as_str()));
    assert_eq!(names("ExportStatus"), names_of(ExportStatus::ALL, |status| status.as_str()));
}

fn names_of<T>(all: &[T], name: fn(&T) -> &'static str) -> Value {
    all.iter().map(name).collect()
}
