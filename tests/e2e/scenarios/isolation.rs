//! Isolation of organizations, and authentication: for every operation of the served OpenAPI document, so that a new one
//! cannot be forgotten.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::credentials::invalid_headers;
use crate::harness::{
    Api, Cases, Operation, Reply, SCOPES, Stack, by_ai, conversation, documented_operations, edited,
    routed_operations, set, text,
};

/// An unused version 7 UUID.
const UNKNOWN_ID: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";

/// Operations without a key: health, the document itself, and signed URLs.
const WITHOUT_KEY: [&str; 4] = ["GET /healthz", "GET /openapi.json", "GET /readyz", "GET /v1/downloads/{id}"];

/// Marker in the first organization's subjects, names and ids.
const MARK: &str = "only-the-first-organization";

/// An organization with one of everything.
struct Owner {
    api: Api,
    ticket_id: String,
    export_id: String,
    agent_id: String,
    webhook_id: String,
    delivery_id: String,
    /// Cursor of each list with a next page.
    cursors: Vec<(&'static str, String)>,
}

/// Calls every operation without permission.
pub async fn run(stack: &Stack) -> Result<()> {
    let document = stack.api_with(None)?.get("/openapi.json").await?.expect(200)?;
    let operations = documented_operations(&document)?;
    let owner = Owner::new(stack.api_of("first").await?).await?;
    let stranger = stack.api_of("second").await?;
    let mut cases = Cases::default();
    cases.check("every route is documented", expect_all_documented(&operations));
    for operation in &operations {
        let name = operation.to_string();
        cases.check(format!("{name}: a stranger"), owner.expect_hidden_from(&stranger, operation).await);
        cases.check(format!("{name}: its owner"), owner.expect_allowed(operation).await);
    }
    cases.check("counts", owner.expect_no_counts_for(&stranger).await);
    cases.check("what needs no key", open_operations(&operations));
    cases.check("invalid keys", invalid_keys(stack, &owner, &operations).await);
    cases.check("scopes", scopes(stack, &operations).await);
    cases.check("names are free in another organization", owner.expect_names_free_for(&stranger).await);
    cases.check("nothing was changed", owner.expect_nothing_changed().await);
    cases.finish()
}

/// The document lists exactly the gateway's routes, so iterating over it covers everything.
fn expect_all_documented(operations: &[Operation]) -> Result<()> {
    let names = |operations: &[Operation]| operations.iter().map(Operation::shape).collect::<BTreeSet<_>>();
    let (documented, routed) = (names(operations), names(&routed_operations("gateway")?));
    // Health is added by the platform, `HEAD` is `GET` without a body, and the reference page shows the document.
    // The pages of the console belong to sessions, not keys: its crate tests who sees what.
    let is_page = |shape: &str| shape.contains(" /docs") || shape.contains(" /console");
    let must_be_documented = |shape: &&String| !shape.starts_with("HEAD ") && !is_page(shape);
    let missing: Vec<_> = routed.difference(&documented).filter(must_be_documented).collect();
    ensure!(routed.len() > 5 && missing.is_empty(), "routed but not documented: {missing:?}");
    Ok(())
}

impl Owner {
    async fn new(api: Api) -> Result<Self> {
        let agent_id = api.register(MARK).await?;
        let ticket_id = api.import(&edited(conversation(MARK), &[set("/subject", MARK)])).await?;
        api.evaluation(&ticket_id).await?;
        let export = api.export(&json!({"kind": "axis"})).await?;
        api.export(&json!({"kind": "resolution_audit"})).await?;
        let webhook = json!({"url": format!("https://hooks.invalid/{MARK}"), "events": ["export.failed"]});
        // Two of everything that is listed, so that each list has a second page.
        api.post("/v1/webhooks", &webhook).await?.expect(201)?;
        let webhook = api.post("/v1/webhooks", &webhook).await?.expect(201)?;
        let webhook_id = text(&webhook, "id")?;
        let path = format!("/v1/webhooks/{webhook_id}/test");
        let delivery = api.reply(api.request(Method::POST, &path)).await?.expect(202)?;
        let mut cursors = Vec::new();
        let second = api.import(&edited(conversation("second"), &[set("/subject", MARK)])).await?;
        api.evaluation(&second).await?;
        api.await_listed(("limit", "1"), 2).await?;
        for list in ["/v1/evaluations", "/v1/evaluations/exports", "/v1/webhooks"] {
            let page = api.get(&format!("{list}?limit=1")).await?.expect(200)?;
            cursors.push((list, text(&page["page_info"], "next_cursor")?));
        }
        Ok(Self {
            api,
            ticket_id,
            agent_id,
            export_id: text(&export, "id")?,
            webhook_id,
            delivery_id: text(&delivery, "id")?,
            cursors,
        })
    }

    /// The owner's ids for the parameters of a path, in their order. A new resource has to be added here.
    fn ids_in(&self, path: &str) -> Result<Vec<&str>> {
        if path.starts_with("/v1/webhooks/{id}/deliveries/{") {
            return Ok(vec![&self.webhook_id, &self.delivery_id]);
        }
        if !path.contains('{') {
            return Ok(Vec::new());
        }
        let ids = [
            ("/v1/webhooks/{", &self.webhook_id),
            ("/v1/tickets/{", &self.ticket_id),
            ("/v1/evaluations/exports/{", &self.export_id),
            ("/v1/downloads/{", &self.export_id),
        ];
        let found = ids.iter().find(|(beginning, _)| path.starts_with(beginning));
        let (_, id) = found.with_context(|| {
            format!("no id for {path}: add one of the owner's to `ids_in` of this scenario")
        })?;
        Ok(vec![id])
    }

    /// Another organization's id gets the same response as an unknown id; lists hold nothing of another organization.
    async fn expect_hidden_from(&self, stranger: &Api, operation: &Operation) -> Result<()> {
        match operation.parameters.as_slice() {
            [] => self.expect_nothing_listed_for(stranger, operation).await,
            [_] | [_, _] => self.expect_unknown_to(stranger, operation).await,
            more => bail!("{more:?}: this scenario knows paths with one id or two"),
        }
    }

    async fn expect_unknown_to(&self, stranger: &Api, operation: &Operation) -> Result<()> {
        let of_owner = ask(stranger, operation, &self.ids_in(&operation.path)?).await?;
        let of_nobody = ask(stranger, operation, &[UNKNOWN_ID, UNKNOWN_ID]).await?;
        // An unsigned URL is refused before any lookup.
        let expected = if WITHOUT_KEY.contains(&operation.to_string().as_str()) { 403 } else { 404 };
        of_owner.expect_status(expected)?;
        expect_same_problem(&of_owner, &of_nobody)
    }

    async fn expect_nothing_listed_for(&self, stranger: &Api, operation: &Operation) -> Result<()> {
        let reply = ask(stranger, operation, &[]).await?;
        let text = String::from_utf8_lossy(&reply.body);
        for secret in [MARK, &self.ticket_id, &self.export_id, &self.agent_id, &self.webhook_id] {
            ensure!(!text.contains(secret), "{secret} is in {}", reply.text());
        }
        if !operation.query.iter().any(|name| name == "cursor") {
            return Ok(());
        }
        ensure!(reply.expect(200)?["data"] == json!([]), "not empty: {}", reply.text());
        let cursor = self.cursors.iter().find(|(list, _)| *list == operation.path);
        let (_, cursor) =
            cursor.with_context(|| format!("no cursor of {}: add one to `cursors`", operation.path))?;
        let path = format!("{}?cursor={cursor}", operation.path);
        stranger.get(&path).await?.problem(400, "invalid-cursor")?;
        // The owner has two of everything that is listed.
        let rest = self.api.get(&path).await?.expect(200)?;
        ensure!(rest["data"].as_array().is_some_and(|data| data.len() == 1), "{rest}");
        ensure!(rest["page_info"]["has_next_page"] == false, "{rest}");
        Ok(())
    }

    /// Numbers have no texts of their own: those of a stranger are zero.
    async fn expect_no_counts_for(&self, stranger: &Api) -> Result<()> {
        let path = "/v1/evaluations/summary?by=source&step=week";
        let owned = self.api.get(path).await?.expect(200)?;
        ensure!(owned["totals"]["count"] == 2 && owned["coverage"]["imported"] == 2, "{owned}");
        let summary = stranger.get(path).await?.expect(200)?;
        for part in ["totals", "coverage"] {
            ensure!(is_zero(&summary[part]), "{part}: {summary}");
        }
        let steps = summary["distributions"].as_object().context("no distributions")?.values();
        let mut counts = steps.flat_map(|steps| steps.as_array().into_iter().flatten());
        ensure!(counts.all(|step| step["count"] == 0), "distributions: {summary}");
        for list in ["/charge_reasons", "/series", "/breakdown/groups"] {
            ensure!(summary.pointer(list) == Some(&json!([])), "{list}: {summary}");
        }
        let list = stranger.get("/v1/evaluations").await?.expect(200)?;
        ensure!(list["total"] == json!({"count": 0, "exact": true}), "{list}");
        Ok(())
    }

    /// The owner's ids are valid. Operations that change something are skipped.
    async fn expect_allowed(&self, operation: &Operation) -> Result<()> {
        if operation.method != Method::GET || operation.parameters.is_empty() || !operation.needs_token {
            return Ok(());
        }
        let reply = ask(&self.api, operation, &self.ids_in(&operation.path)?).await?;
        ensure!([200, 302].contains(&reply.status), "{}: {}", reply.status, reply.text());
        Ok(())
    }

    /// The key is checked before the media type, the body and the ids, which are the owner's: 401, or where the path has an id that
    /// nobody without a key may learn of (no 401 is documented there), the response to an unknown id.
    async fn expect_unauthorized(
        &self,
        api: &Api,
        operation: &Operation,
        header: Option<&str>,
    ) -> Result<()> {
        let path = operation.path_with(&self.ids_in(&operation.path)?);
        let mut request = api.request(operation.method.clone(), &path);
        if takes_body(operation) {
            request = request.header("content-type", "text/plain").body("{");
        }
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let reply = api.reply(request).await?;
        if !operation.statuses.contains("401") {
            reply.expect_status(404)?;
            return expect_same_problem(&reply, &ask(&self.api, operation, &[UNKNOWN_ID, UNKNOWN_ID]).await?);
        }
        reply.problem(401, "unauthorized")?;
        let challenge = reply.header("www-authenticate");
        ensure!(challenge == "Bearer", "WWW-Authenticate: {challenge:?}");
        Ok(())
    }

    /// Identities and agents belong to one organization each.
    async fn expect_names_free_for(&self, stranger: &Api) -> Result<()> {
        let ai = json!({"type": "ai", "id": self.agent_id});
        let with_agent = edited(conversation("with-agent"), &[set("/messages/1/author", ai)]);
        self.api.import(&with_agent).await?;
        stranger.post("/v1/assess", &with_agent).await?.problem(404, "unknown-agent")?;
        stranger.post("/v1/assess", &by_ai("by-name", MARK)).await?.problem(404, "unknown-agent")?;

        self.api.post("/v1/assess", &conversation(MARK)).await?.problem(409, "duplicate-import")?;
        let theirs = stranger.import(&conversation(MARK)).await?;
        ensure!(theirs != self.ticket_id, "two organizations share a ticket");
        ensure!(stranger.register(MARK).await? != self.agent_id, "two organizations share an agent");
        // With a ticket and an agent of the same names, the owner's ids are as unknown as before.
        for part in ["", "/evaluation"] {
            let path = format!("/v1/tickets/{}{part}", self.ticket_id);
            stranger.get(&path).await?.problem(404, "ticket-not-found")?;
        }
        stranger.post("/v1/assess", &with_agent).await?.problem(404, "unknown-agent").map(drop)
    }

    async fn expect_nothing_changed(&self) -> Result<()> {
        let ticket = self.api.get(&format!("/v1/tickets/{}", self.ticket_id)).await?.expect(200)?;
        ensure!(ticket["subject"] == MARK, "{ticket}");
        let evaluation = self.api.evaluation(&self.ticket_id).await?;
        ensure!(evaluation["status"] != "failed", "{evaluation}");
        let export = self.api.await_complete(&self.export_id).await?;
        let file = self.api.file(&export).await?;
        ensure!(String::from_utf8_lossy(&file).contains(&self.ticket_id), "the file lost its row");
        Ok(())
    }
}

/// Whether all numbers of an object, and of those in it, are zero.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty() && members.values().all(is_zero),
        number => *number == 0,
    }
}

/// Calls an operation with these path ids, and an empty object as body.
async fn ask(api: &Api, operation: &Operation, ids: &[&str]) -> Result<Reply> {
    let request = api.request(operation.method.clone(), &operation.path_with(ids));
    api.reply(if takes_body(operation) { request.json(&json!({})) } else { request }).await
}

fn takes_body(operation: &Operation) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(&operation.method)
}

/// Checks that two answers differ only in their request ids.
fn expect_same_problem(one: &Reply, other: &Reply) -> Result<()> {
    let without_id = |reply: &Reply| -> Result<Value> {
        let mut problem = reply.expect(reply.status)?;
        problem.as_object_mut().context("no object")?.remove("request_id").context("no request id")?;
        Ok(problem)
    };
    let names = |reply: &Reply| reply.headers.keys().map(ToString::to_string).collect::<BTreeSet<_>>();
    ensure!(one.status == other.status, "{} and {}", one.status, other.status);
    ensure!(without_id(one)? == without_id(other)?, "{} and {}", one.text(), other.text());
    ensure!(names(one) == names(other), "{:?} and {:?}", one.headers, other.headers);
    Ok(())
}

fn open_operations(operations: &[Operation]) -> Result<()> {
    let open: BTreeSet<String> =
        operations.iter().filter(|operation| !operation.needs_token).map(ToString::to_string).collect();
    let allowed = WITHOUT_KEY.map(str::to_owned).into();
    ensure!(open == allowed, "without a key: {open:?} instead of {allowed:?}");
    Ok(())
}

async fn invalid_keys(stack: &Stack, owner: &Owner, operations: &[Operation]) -> Result<()> {
    let api = stack.api_with(None)?;
    let mut cases = Cases::default();
    for header in invalid_headers(stack).await? {
        for operation in operations.iter().filter(|operation| operation.needs_token) {
            let outcome = owner.expect_unauthorized(&api, operation, header.as_deref()).await;
            cases.check(format!("{operation} with {header:?}"), outcome);
        }
    }
    cases.finish()
}

/// Each operation belongs to one scope: keys with any other get 403.
async fn scopes(stack: &Stack, operations: &[Operation]) -> Result<()> {
    let mut holders = Vec::new();
    for scope in SCOPES.split(' ') {
        let key = stack.create_key(&stack.other_organization("scopes"), &["--scopes", scope]).await?;
        holders.push((scope, stack.api_with(Some(&key))?));
    }
    let mut cases = Cases::default();
    for operation in operations.iter().filter(|operation| operation.needs_token) {
        let mut admitted = Vec::new();
        for (scope, api) in &holders {
            let reply = ask(api, operation, &[UNKNOWN_ID, UNKNOWN_ID]).await?;
            match reply.status {
                403 => cases.check(operation, reply.problem(403, "missing-scope").map(drop)),
                200 | 400 | 404 => admitted.push(*scope),
                status => cases.check(operation, Err(anyhow!("{status} with {scope}: {}", reply.text()))),
            }
        }
        let outcome = needed_scope(&operation.path).and_then(|needed| {
            ensure!(admitted == [needed], "admitted are {admitted:?} instead of {needed}");
            Ok(())
        });
        cases.check(operation, outcome);
    }
    cases.finish()
}

/// A new resource has to be added here.
fn needed_scope(path: &str) -> Result<&'static str> {
    Ok(match path {
        "/v1/assess" => "assess",
        "/v1/agents" => "agents",
        "/v1/tickets/{id}" | "/v1/tickets/{id}/evaluation" => "tickets",
        "/v1/tickets/{id}/transcript" => "transcripts:read",
        "/v1/evaluations" | "/v1/evaluations/summary" | "/v1/tickets/{id}/neighbours" => "evaluations:read",
        path if path.starts_with("/v1/evaluations/exports") => "exports",
        path if path.starts_with("/v1/webhooks") => "webhooks",
        other => bail!("no scope of {other}: add it to `needed_scope` of this scenario"),
    })
}
