//! `/console` is passed on to the role console, with only the headers that pages need.

mod support;

use std::net::{SocketAddr, TcpListener};

use actix_web::web::{self, Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use anyhow::{Context as _, Result};
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::http_client::client_builder;
use assay_platform::runtime::{Phase, Readiness, Tasks};
use assay_platform::web::{ServerSettings, serve};
use reqwest::redirect::Policy;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

use self::support::{Gateway, nowhere, tokens};

struct App {
    address: SocketAddr,
    http: reqwest::Client,
    _gateway: Gateway,
    _console: Option<Tasks>,
}

/// A gateway in front of a console that says what it received.
fn app() -> Result<App> {
    let mut tasks = Tasks::new(Readiness::default());
    let console = TcpListener::bind("127.0.0.1:0")?;
    let console_url = Url::parse(&format!("http://{}", console.local_addr()?))?;
    let tokens = Data::new(tokens()?);
    serve(&mut tasks, Phase::ServeInternal, "console", console, ServerSettings::default(), move |app| {
        app.app_data(tokens.clone()).service(web::resource("/{path:.*}").to(echo));
    })?;
    start_app(Some(console_url), Some(tasks))
}

fn start_app(console_url: Option<Url>, console: Option<Tasks>) -> Result<App> {
    let gateway = Gateway::start_with(&nowhere()?, console_url, |config| {
        config.public_url = "https://assay.example".to_owned();
        config.service_deadline_milliseconds = 1_000;
        config.max_in_flight = 8;
        config.docs = false;
    })?;
    let http = client_builder().no_proxy().redirect(Policy::none()).build()?;
    Ok(App { address: gateway.address, http, _gateway: gateway, _console: console })
}

async fn echo(request: HttpRequest, body: Bytes, tokens: Data<ServiceTokens>) -> HttpResponse {
    // Answers of the console to an ended session, an unknown page, a wrong method and a token that is not the gateway's.
    let problem = r#"{"status":404,"title":"","type":"","code":"route-not-found"}"#;
    match request.path() {
        "/console/ended" => {
            return HttpResponse::Forbidden().insert_header(("hx-redirect", "/console/sign-in")).finish();
        }
        "/console/unknown" => return HttpResponse::NotFound().body(problem),
        "/console/for-forms" => return HttpResponse::MethodNotAllowed().body(problem),
        "/console/refused" => return HttpResponse::Unauthorized().finish(),
        _ => {}
    }
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("-");
    let token = header("authorization").trim_start_matches("Bearer ").to_owned();
    let is_ours = tokens.verify(Audience::Console, &token) == Ok(ServiceClaims::Service);
    let names =
        ["cookie", "origin", "sec-fetch-site", "x-assay-public-base-url", "x-forwarded-for", "content-type"];
    let seen: Vec<String> = names.iter().map(|name| format!("{name}={}", header(name))).collect();
    HttpResponse::SeeOther()
        .append_header(("set-cookie", "a=1"))
        .append_header(("set-cookie", "b=2"))
        .insert_header(("location", "/console/next"))
        .insert_header(("content-security-policy", "default-src 'none'"))
        .insert_header(("x-internal", "secret"))
        .body(format!(
            "{} {} {is_ours} {} {}",
            request.method(),
            request.uri(),
            seen.join(" "),
            String::from_utf8_lossy(&body)
        ))
}

#[tokio::test(flavor = "multi_thread")]
async fn page_is_passed_on_with_its_cookies_and_our_token() -> Result<()> {
    let app = app()?;
    let request = app.http.get(format!("http://{}/console/keys?done=revoked", app.address));
    let request = request.header("cookie", "session=x").header("authorization", "Bearer forged");
    let request =
        request.header("x-assay-public-base-url", "http://evil").header("x-forwarded-for", "1.2.3.4");
    let response = request.header("sec-fetch-site", "none").send().await?;
    assert_eq!(response.status(), 303);
    let cookies: Vec<_> = response.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert_eq!(response.headers()["location"], "/console/next");
    assert_eq!(response.headers()["content-security-policy"], "default-src 'none'");
    assert!(!response.headers().contains_key("x-internal"));
    assert_eq!(
        response.text().await?,
        "GET /console/keys?done=revoked true cookie=session=x origin=- sec-fetch-site=none \
         x-assay-public-base-url=https://assay.example x-forwarded-for=- content-type=- "
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn form_is_passed_on_as_a_form() -> Result<()> {
    let app = app()?;
    let request = app.http.post(format!("http://{}/console/sign-in", app.address));
    let request = request.header("origin", "https://assay.example");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body("key=a%20b");
    let text = request.send().await?.text().await?;
    assert!(
        text.starts_with("POST /console/sign-in true")
            && text.ends_with("content-type=application/x-www-form-urlencoded key=a%20b"),
        "{text}"
    );
    assert!(text.contains("origin=https://assay.example"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn redirect_header_for_the_script_of_a_page_is_passed_on() -> Result<()> {
    let app = app()?;
    let response = app.http.get(format!("http://{}/console/ended", app.address)).send().await?;
    assert_eq!(response.status(), 403);
    assert_eq!(response.headers()["hx-redirect"], "/console/sign-in");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn page_that_the_console_does_not_have_is_passed_on() -> Result<()> {
    let app = app()?;
    for (path, status) in [("unknown", 404), ("for-forms", 405)] {
        let response = app.http.get(format!("http://{}/console/{path}", app.address)).send().await?;
        assert_eq!(response.status(), status, "{path}");
        assert!(response.text().await?.contains("route-not-found"), "{path}: as the console answered");
    }
    Ok(())
}

/// Sent without the HTTP client of the tests, which would resolve the segments.
#[tokio::test(flavor = "multi_thread")]
async fn path_with_dot_segments_is_not_found() -> Result<()> {
    let app = app()?;
    for path in ["/console/%2e%2e/x", "/console/../x", "/console/.%2E/healthz", "/console/keys/./x"] {
        let mut stream = TcpStream::connect(app.address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: assay\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(answer.contains("content-security-policy") && answer.contains("<h1>"), "{path}: {answer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn problem_of_the_gateway_is_a_page_with_security_headers() -> Result<()> {
    let app = app()?;
    let address = format!("http://{}/console", app.address);
    let form = |content_type: &'static str, body: String| {
        app.http.post(format!("{address}/sign-in")).header("content-type", content_type).body(body)
    };
    let unavailable = start_app(Some(nowhere()?), None)?;
    let answers = [
        (415, form("application/json", "{}".to_owned())),
        (413, form("application/x-www-form-urlencoded", "x".repeat(70_000))),
        (405, app.http.put(address.as_str())),
        (503, app.http.get(format!("{address}/refused"))),
        (503, unavailable.http.get(format!("http://{}/console", unavailable.address))),
    ];
    for (status, request) in answers {
        let response = request.send().await?;
        assert_eq!(response.status(), status);
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        assert!(header("content-security-policy").is_some_and(|text| text.starts_with("default-src 'none'")));
        assert_eq!(header("cache-control"), Some("no-store"), "{status}");
        assert_eq!(header("content-type"), Some("text/html; charset=utf-8"), "{status}");
        assert_eq!(header("retry-after").is_some(), status == 503, "{status}");
        assert!(response.text().await?.contains("<h1>"));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn form_that_the_console_does_not_get_can_be_sent_again() -> Result<()> {
    let app = start_app(Some(nowhere()?), None)?;
    let address = format!("http://{}/console/keys", app.address);
    let form = app.http.post(&address).header("content-type", "application/x-www-form-urlencoded");
    for (request, is_form) in [(form.body("name=n"), true), (app.http.get(&address), false)] {
        let response = request.send().await?;
        assert_eq!(response.status(), 503);
        let text = response.text().await?;
        assert_eq!(text.contains("Your browser still has what you typed"), is_form, "{text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn request_head_that_is_too_long_is_refused_with_a_page() -> Result<()> {
    let app = app()?;
    let get = |path: &str| app.http.get(format!("http://{}{path}", app.address));
    let long = format!("?subject={}", "x".repeat(8 * 1024));
    let cookies = format!("a={}", "x".repeat(33 * 1024));
    let refused = [
        (414, get(&format!("/console{long}")), "go back and leave some values of the filter out"),
        (
            414,
            get(&format!("/console/conversations{long}")),
            "go back and leave some values of the filter out",
        ),
        (431, get("/console/keys").header("cookie", cookies), "Delete the cookies of this site"),
    ];
    for (status, request, advice) in refused {
        let response = request.send().await?;
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8", "{status}");
        assert_eq!(response.headers()["cache-control"], "no-store", "{status}");
        assert!(response.headers().contains_key("content-security-policy"), "{status}");
        let text = response.text().await?;
        assert!(text.contains("<h1>") && text.contains(advice), "{status}: {text}");
    }
    for path in ["/v1/evaluations", "/consoles"] {
        let response = get(&format!("{path}{long}")).send().await?;
        assert_eq!(response.status(), 414, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn console_is_not_found_without_its_address() -> Result<()> {
    let app = start_app(None, None)?;
    for path in ["/console", "/console/sign-in"] {
        let response = app.http.get(format!("http://{}{path}", app.address)).send().await?;
        assert_eq!(response.status(), 404, "{path}");
        let problem: assay_contracts::problem::Problem = response.json().await.context("a problem")?;
        assert_eq!(problem.code.as_str(), "route-not-found");
    }
    Ok(())
}
