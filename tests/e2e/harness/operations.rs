//! The operations of the OpenAPI document, and the routes in the sources.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Map, Value};

/// The scopes of keys and tokens.
pub const SCOPES: &str =
    "assess agents tickets exports evaluations:read transcripts:read webhooks console admin";

/// A method at a path.
#[derive(Debug, Clone)]
pub struct Operation {
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: String,
    /// The names of the path's parameters.
    pub parameters: Vec<String>,
    /// The names of the query's parameters, where they are documented.
    pub query: Vec<String>,
    pub statuses: BTreeSet<String>,
    /// Whether it requires a bearer token (an API key or a service token), according to the document or the path.
    pub needs_token: bool,
}

impl Operation {
    /// The path with these ids for its parameters, in their order.
    pub fn path_with(&self, ids: &[&str]) -> String {
        let named = self.parameters.iter().zip(ids);
        named.fold(self.path.clone(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id))
    }

    /// Method and path without the names of parameters: the identity of an operation.
    pub fn shape(&self) -> String {
        format!(
            "{} {}",
            self.method,
            self.parameters.iter().fold(self.path.clone(), |path, name| path.replace(name, ""))
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.method, self.path)
    }
}

/// Every operation of an OpenAPI document.
pub fn documented_operations(document: &Value) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().context("no paths")? {
        for (method, operation) in methods.as_object().context("no methods")? {
            let listed = |place: &str| {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let named = parameters.filter(|parameter| parameter["in"] == place);
                named.filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned())).collect::<Vec<_>>()
            };
            let parameters = parameters(path);
            ensure!(listed("path") == parameters, "{method} {path} documents {:?}", listed("path"));
            operations.push(Operation {
                method: method.to_uppercase().parse()?,
                path: path.clone(),
                parameters,
                query: listed("query"),
                statuses: operation["responses"]
                    .as_object()
                    .into_iter()
                    .flat_map(Map::keys)
                    .cloned()
                    .collect(),
                needs_token: operation["security"].as_array().is_some_and(|needs| !needs.is_empty()),
            });
        }
    }
    ensure!(operations.len() > 5, "the document lists {} operations", operations.len());
    Ok(operations)
}

/// The crates that serve HTTP.
pub fn serving_crates() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(crates())? {
        let path = entry?.path();
        if path.join("src/http").is_dir() {
            found.insert(path.file_name().context("no name")?.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

/// Every route of a crate, read from its sources: all of them use `platform::web::resource`.
pub fn routed_operations(name: &str) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    for entry in fs::read_dir(crates().join(name).join("src/http"))? {
        let path = entry?.path();
        let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for other in
            ["web::resource(", ".route(", "#[get(", "#[post(", "#[delete(", "#[put(", "#[patch(", "#[head("]
        {
            ensure!(!source.contains(other), "{}: a route made by {other}", path.display());
        }
        operations.extend(routes_in(&source).with_context(|| path.display().to_string())?);
    }
    Ok(operations)
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

fn routes_in(source: &str) -> Result<Vec<Operation>> {
    let scope = literal_after(source, "scope(");
    let mut operations = Vec::new();
    // The gateway calls `resource` through `guarded!`, which adds the key.
    let calls = source.match_indices("resource(").chain(source.match_indices("guarded!(config, "));
    for (at, call) in calls {
        let arguments = &source[at + call.len()..];
        let Some(path) = arguments.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next())
        else {
            // `guarded` and the pages of the console name their path and routes before.
            ensure!(arguments.starts_with("path, routes)"), "a route whose path is no text: {arguments:.60}");
            continue;
        };
        let begins_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
        // Other paths are relative to the scope of the file.
        let is_whole = begins_with(&["/internal/", "/v1/"])
            || scope.is_none() && begins_with(&["/openapi.json", "/docs", "/console"]);
        let path = if is_whole { path.to_owned() } else { format!("{}{path}", scope.context("no scope")?) };
        let end = arguments.find(']').context("a resource without its list of routes")?;
        let words = arguments[..end].split(|character: char| !character.is_ascii_alphabetic());
        for word in words.filter(|word| METHODS.contains(word)) {
            let method = word.parse()?;
            let (parameters, needs_token) = (parameters(&path), path.starts_with("/internal/"));
            let (path, query, statuses) = (path.clone(), Vec::new(), BTreeSet::new());
            operations.push(Operation { method, path, parameters, query, statuses, needs_token });
        }
    }
    Ok(operations)
}

fn literal_after<'s>(source: &'s str, call: &str) -> Option<&'s str> {
    source.split_once(&format!("{call}\""))?.1.split('"').next()
}

fn parameters(path: &str) -> Vec<String> {
    path.split('{').skip(1).filter_map(|part| part.split('}').next()).map(str::to_owned).collect()
}
