//! What the gateway does with requests itself: HEAD, limits of bodies, downloads that are not read, missing internal routes.

#![cfg(target_os = "linux")]

mod support;

use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_contracts::internal::FILE_OWNER_HEADER;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_platform::http_client::client_builder;
use futures_util::StreamExt as _;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::support::Gateway;
use self::support::services::{ANSWER, FILE_BYTES, Services};

const ID: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";

/// The largest body of operations other than imports.
const SMALL: usize = 65_536;

fn client() -> Result<Client> {
    Ok(client_builder().build()?)
}

struct Fixture {
    http: Client,
    gateway: Gateway,
    services: Services,
    key: String,
}

impl Fixture {
    fn start(edit: impl FnOnce(&mut assay_gateway::Config)) -> Result<Self> {
        let services = Services::start()?;
        let gateway = Gateway::start_with(&services.address, None, |config| {
            config.max_in_flight = 16;
            config.max_body_bytes = 1024 * 1024;
            config.body_memory_bytes = 16 * 1024 * 1024;
            config.service_deadline_milliseconds = 5_000;
            edit(config);
        })?;
        let key = services.new_key()?.reveal().to_owned();
        Ok(Self { http: client()?, gateway, services, key })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.gateway.url(path)).bearer_auth(&self.key)
    }
}

/// Status and headers, without those that differ in each response.
fn comparable_head(response: &Response) -> (StatusCode, HeaderMap) {
    let mut headers = response.headers().clone();
    headers.remove("x-request-id");
    headers.remove("date");
    (response.status(), headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_answered_wherever_get_is() -> Result<()> {
    let fixture = Fixture::start(|_| ())?;
    let document = serde_json::to_value(assay_gateway::openapi_document())?;
    let paths = document["paths"].as_object().context("no paths")?;
    let documented = paths.iter().filter(|(_, item)| item["get"].is_object()).map(|(path, _)| path.as_str());
    let mut compared = 0;
    let others = ["/docs", "/docs/", "/docs/swagger-ui-bundle.js", "/v1/tickets/none", "/none"];
    for path in documented.chain(others) {
        let path = path.split('/').map(|part| if part.starts_with('{') { ID } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        let get = fixture.request(Method::GET, &path).send().await?;
        let head = fixture.request(Method::HEAD, &path).send().await?;
        let (of_get, of_head) = (comparable_head(&get), comparable_head(&head));
        let is_comparable = get.status().is_success()
            || [StatusCode::PERMANENT_REDIRECT, StatusCode::NOT_FOUND].contains(&get.status());
        if is_comparable {
            ensure!(of_get == of_head, "{path}: GET {of_get:?}, HEAD {of_head:?}");
        } else {
            // The texts of other problems, and so their lengths, may differ.
            ensure!(of_get.0 == of_head.0, "{path}: GET {of_get:?}, HEAD {of_head:?}");
        }
        ensure!(head.bytes().await?.is_empty(), "{path}: HEAD has a body");
        compared += 1;
    }
    ensure!(compared > 12, "only {compared} paths");
    let list = fixture.request(Method::HEAD, "/v1/evaluations/exports").send().await?;
    ensure!(list.headers()["content-length"] == ANSWER.len().to_string().as_str(), "{list:?}");
    let file = fixture.request(Method::HEAD, &format!("/v1/downloads/{ID}?signature=x")).send().await?;
    ensure!(file.headers()["content-length"] == FILE_BYTES.to_string().as_str(), "{file:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn head_needs_the_same_key_and_is_in_allow() -> Result<()> {
    let fixture = Fixture::start(|_| ())?;
    let without_key = client()?.head(fixture.gateway.url("/v1/evaluations/exports")).send().await?;
    ensure!(without_key.status() == StatusCode::UNAUTHORIZED, "{without_key:?}");
    for (path, method, allow) in [
        ("/v1/evaluations/exports", Method::DELETE, "GET, HEAD, POST"),
        (&format!("/v1/tickets/{ID}"), Method::POST, "GET, HEAD, DELETE"),
        (&format!("/v1/downloads/{ID}?signature=x"), Method::POST, "GET, HEAD"),
        ("/v1/agents", Method::HEAD, "POST"),
    ] {
        let refused = fixture.request(method, path).send().await?;
        ensure!(refused.status() == StatusCode::METHOD_NOT_ALLOWED, "{path}: {refused:?}");
        ensure!(refused.headers()["allow"] == allow, "{path}: {refused:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_organization_occupies_half_of_the_slots_until_its_responses_are_sent() -> Result<()> {
    let fixture = Fixture::start(|config| config.max_in_flight = 4)?;
    let path = format!("/v1/tickets/{ID}");
    let ask = || fixture.request(Method::GET, &path).send();
    let unread = [ask().await?, ask().await?];
    ensure!(unread.iter().all(|response| response.status() == StatusCode::OK), "{unread:?}");
    let refused = ask().await?;
    ensure!(refused.status() == StatusCode::TOO_MANY_REQUESTS, "{refused:?}");
    ensure!(refused.headers()["retry-after"] == "1", "{refused:?}");
    ensure!(refused.json::<Problem>().await?.code == ProblemCode::RateLimited);
    let other_key = fixture.services.new_key()?;
    let other = client()?.get(fixture.gateway.url(&path)).bearer_auth(other_key.reveal()).send().await?;
    ensure!(other.status() == StatusCode::OK, "another organization: {other:?}");
    drop(unread);
    let deadline = Instant::now() + Duration::from_secs(30);
    while ask().await?.status() != StatusCode::OK {
        ensure!(Instant::now() < deadline, "the slots of ended responses are not free");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn body_other_than_an_import_has_at_most_64_kib() -> Result<()> {
    let fixture = Fixture::start(|_| ())?;
    let webhook = format!("/v1/webhooks/{ID}");
    let bodies = [
        (Method::POST, "/v1/agents", json!({"external_id": "a", "name": "b"})),
        (Method::POST, "/v1/evaluations/exports", json!({"kind": "axis"})),
        (Method::POST, "/v1/webhooks", json!({"url": "https://a.example", "events": ["export.failed"]})),
        (Method::PATCH, webhook.as_str(), json!({"enabled": true})),
    ];
    for (method, path, body) in bodies {
        let body = body.to_string();
        let sized = |length: usize| format!("{body}{}", " ".repeat(length - body.len()));
        let sent = fixture.request(method.clone(), path).body(sized(SMALL)).send().await?;
        ensure!(sent.status() == StatusCode::OK, "{path}: {sent:?}");
        let chunks = futures_util::stream::iter([sized(SMALL), " ".to_owned()].map(Ok::<_, std::io::Error>));
        let bodies: [reqwest::Body; 2] = [sized(SMALL + 1).into(), reqwest::Body::wrap_stream(chunks)];
        for body in bodies {
            let refused = fixture.request(method.clone(), path).body(body).send().await?;
            ensure!(refused.status() == StatusCode::PAYLOAD_TOO_LARGE, "{path}: {refused:?}");
            let problem: Problem = refused.json().await?;
            ensure!(problem.code.as_str() == "payload-too-large", "{problem:?}");
        }
    }
    let message = json!({"author": {"type": "contact", "external_id": "c"}, "content": "x".repeat(SMALL),
                         "external_id": "m", "timestamp": 0});
    let import = json!({"ticket_id": "t", "messages": [message]}).to_string();
    let sent = fixture.request(Method::POST, "/v1/assess").body(import).send().await?;
    ensure!(sent.status() == StatusCode::OK, "{sent:?}");
    Ok(())
}

/// A body counts for the organization of its key as it arrives.
#[tokio::test(flavor = "multi_thread")]
async fn one_organization_holds_at_most_half_of_the_body_budget() -> Result<()> {
    let fixture = Fixture::start(|config| {
        config.body_memory_bytes = config.max_body_bytes;
        config.body_deadline_seconds = 30;
    })?;
    let other = fixture.services.new_key()?.reveal().to_owned();
    let message = json!({"author": {"type": "contact", "external_id": "c"}, "content": "x".repeat(100_000),
                         "external_id": "m", "timestamp": 0});
    let import = json!({"ticket_id": "t", "messages": [message]}).to_string();
    let send = |key: &str, body: reqwest::Body| {
        fixture.http.post(fixture.gateway.url("/v1/assess")).bearer_auth(key).body(body).send()
    };
    let begin_large = || {
        let chunk = Ok::<_, std::io::Error>(vec![b' '; 500_000]);
        let unfinished = futures_util::stream::iter([chunk]).chain(futures_util::stream::pending());
        send(&fixture.key, reqwest::Body::wrap_stream(unfinished))
    };
    // In a task, because it must go on while the others are sent.
    let mut large = JoinSet::new();
    large.spawn(begin_large());
    let deadline = Instant::now() + Duration::from_secs(20);
    let refused = loop {
        let reply = send(&fixture.key, import.clone().into()).await?;
        if reply.status() == StatusCode::SERVICE_UNAVAILABLE {
            break reply;
        }
        ensure!(Instant::now() < deadline, "the large body does not count");
        if large.try_join_next().is_some() {
            // It was refused itself, because it arrived beside the other one.
            large.spawn(begin_large());
        }
        sleep(Duration::from_millis(50)).await;
    };
    ensure!(refused.headers()["retry-after"] == "1", "{refused:?}");
    let of_other = send(&other, import.clone().into()).await?;
    ensure!(of_other.status() == StatusCode::OK, "{of_other:?}");
    large.shutdown().await;
    while send(&fixture.key, import.clone().into()).await?.status() != StatusCode::OK {
        ensure!(Instant::now() < deadline, "the share is not free after the end of the connection");
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn download_keeps_its_slot_until_it_is_read_or_stalls() -> Result<()> {
    let fixture = Fixture::start(|config| {
        config.max_downloads = 1;
        config.response_stall_seconds = 1;
    })?;
    let (gateway, path) = (&fixture.gateway, format!("/v1/downloads/{ID}?signature=x"));
    let mut stalled = gateway.request_and_read_status(&path)?;
    let (_unread, refused) = gateway.fill_slots(&path, &path, StatusCode::SERVICE_UNAVAILABLE).await?;
    ensure!(refused.headers().contains_key("retry-after"), "{refused:?}");
    let list = fixture.request(Method::GET, "/v1/evaluations/exports").send().await?;
    ensure!(list.status() == StatusCode::OK, "a download takes no slot of other requests: {list:?}");
    let served = gateway.wait_for_status(&path, StatusCode::OK).await?;
    ensure!(u64::try_from(served.bytes().await?.len())? == FILE_BYTES);
    ensure!(stalled.read_to_end(&mut Vec::new()).is_err(), "the stalled download was complete");
    gateway.wait_for_status(&path, StatusCode::OK).await?;
    Ok(())
}

/// A download needs no key: the gateway learns the owner of the file from the answer of export.
#[tokio::test(flavor = "multi_thread")]
async fn one_organization_holds_at_most_half_of_the_downloads() -> Result<()> {
    const OTHER: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a12";
    let fixture = Fixture::start(|config| config.max_downloads = 4)?;
    let (gateway, path) = (&fixture.gateway, format!("/v1/downloads/{ID}?signature=x"));
    let (_unread, refused) = gateway.fill_slots(&path, &path, StatusCode::TOO_MANY_REQUESTS).await?;
    ensure!(refused.headers()["retry-after"] == "10", "{refused:?}");
    let problem: Problem = refused.json().await?;
    ensure!(problem.code == ProblemCode::TooManyDownloads, "{problem:?}");
    let others = format!("/v1/downloads/{OTHER}?signature=x");
    for _ in 0..3 {
        let file = gateway.wait_for_status(&others, StatusCode::OK).await?;
        ensure!(!file.headers().contains_key(FILE_OWNER_HEADER), "the organization is internal: {file:?}");
        ensure!(u64::try_from(file.bytes().await?.len())? == FILE_BYTES);
    }
    Ok(())
}

/// A signature that export refuses is no credential: who has none must not keep others from their files.
#[tokio::test(flavor = "multi_thread")]
async fn refused_downloads_keep_no_slot_while_they_are_not_read() -> Result<()> {
    let fixture = Fixture::start(|config| config.max_downloads = 1)?;
    let (gateway, refused) = (&fixture.gateway, format!("/v1/downloads/{ID}"));
    let unread: Vec<_> = (0..4).map(|_| gateway.fill_connection(&refused)).collect::<Result<_>>()?;
    for _ in 0..3 {
        gateway.wait_for_status(&format!("{refused}?signature=x"), StatusCode::OK).await?;
    }
    drop(unread);
    Ok(())
}

/// The services of another release lack a route: that is no fault of the client, and internal paths stay inside.
#[tokio::test(flavor = "multi_thread")]
async fn missing_internal_route_is_503_without_its_path() -> Result<()> {
    let fixture = Fixture::start(|_| ())?;
    ensure!(fixture.services.registry.look_ups() == 0);
    for (method, path) in [
        // The services answer 404, 405 and 404.
        (Method::GET, format!("/v1/evaluations/exports/{ID}/download")),
        (Method::GET, format!("/v1/webhooks/{ID}")),
        (Method::DELETE, format!("/v1/tickets/{ID}")),
    ] {
        let response = fixture.request(method, &path).send().await?;
        ensure!(response.status() == StatusCode::SERVICE_UNAVAILABLE, "{path}: {response:?}");
        let text = response.text().await?;
        ensure!(!text.contains("internal") && !text.contains("allowed here"), "{path}: {text}");
    }
    Ok(())
}
