//! A running console with a client that sends requests as the gateway passes them on. It follows no redirects.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use assay_agent_registry::console::create_sign_in_token;
use assay_agent_registry::keys::{CreateKey, KeyName, OrganizationName, create};
use assay_agent_registry::{MIGRATIONS, SCHEMA};
use assay_console::{Config, Dependencies, start};
use assay_contracts::evaluations::{Distributions, Measures, Period};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{PUBLIC_BASE_URL_HEADER, ResolvedKey};
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_contracts::time::Timestamp;
use assay_messaging::{Bus, BusSettings};
use assay_platform::auth::{ApiKey, Audience, ServiceClaims, ServiceTokens};
use assay_platform::db::Database;
use assay_platform::runtime::{Readiness, Tasks, new_id, now};
use assay_testkit::ServiceDatabase;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use url::Url;

use crate::stand_ins::StandIn;

pub const ORGANIZATION: &str = "Pinwright <b>&";
pub const TICKET: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";
pub const BASE: &str = "http://assay.test";

pub struct TestApp {
    pub services: StandIn,
    pub database: Database,
    pub address: String,
    registry: Url,
    http: Client,
    tokens: ServiceTokens,
    _tasks: Tasks,
    _service_database: ServiceDatabase,
}

/// A response, read to its end.
pub struct Page {
    pub status: u16,
    pub location: String,
    pub cookies: Vec<String>,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl TestApp {
    pub async fn start() -> Result<Self> {
        Self::with_failed_sign_in_limit(20).await
    }

    /// A console, and the cookie of a session.
    pub async fn signed_in() -> Result<(Self, String)> {
        let app = Self::start().await?;
        let session = app.sign_in().await?;
        Ok((app, session))
    }

    /// A console with a limit of failed sign-ins per minute.
    pub async fn with_failed_sign_in_limit(failed_sign_ins_per_minute: u32) -> Result<Self> {
        let service_database = ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await?;
        let settings = service_database.settings();
        let database = Database::open(&settings, SCHEMA)?;
        let tokens = ServiceTokens::new(&"a secret of the tests of the console".to_owned().into())?;
        let mut tasks = Tasks::new(Readiness::default());
        let registry = start_registry(settings, &tokens, &mut tasks)?;
        let services = StandIn::default();
        let others = services.start(&mut tasks)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let config = Config {
            listen: listener.local_addr()?,
            service_deadline_milliseconds: 5_000,
            failed_sign_ins_per_minute,
        };
        let dependencies = Dependencies {
            listener,
            tokens: tokens.clone(),
            registry_url: registry.clone(),
            ingest_url: others.clone(),
            scoring_url: others.clone(),
            export_url: others.clone(),
            webhooks_url: Some(others),
        };
        start(&config, dependencies, &mut tasks)?;
        let redirects = reqwest::redirect::Policy::none();
        let http =
            Client::builder().no_proxy().redirect(redirects).timeout(Duration::from_secs(15)).build()?;
        let app = Self {
            services,
            database,
            address,
            registry,
            http,
            tokens,
            _tasks: tasks,
            _service_database: service_database,
        };
        // Creates the organization, too.
        app.create_key(&[Scope::Assess]).await?;
        Ok(app)
    }

    /// A new key of the organization.
    pub async fn create_key(&self, scopes: &[Scope]) -> Result<ApiKey> {
        let new = CreateKey {
            organization: OrganizationName::parse(ORGANIZATION)?,
            name: KeyName::parse("test")?,
            scopes: scopes.iter().copied().collect::<Scopes>(),
            expires_at: None,
        };
        Ok(create(&self.database, new).await?.key)
    }

    /// Registers an agent of the organization.
    pub async fn create_agent(&self, organization_id: OrganizationId, name: &str) -> Result<()> {
        let tenant = Tenant { organization_id, scopes: [Scope::Agents].into_iter().collect() };
        let claims = ServiceClaims::Tenant(tenant);
        let token = self.tokens.issue(Audience::AgentRegistry, &claims, now())?;
        let request = self.http.post(self.registry.join("/internal/v1/agents")?).bearer_auth(token);
        let body = json!({ "external_id": name, "name": name }).to_string();
        request.header("content-type", "application/json").body(body).send().await?.error_for_status()?;
        Ok(())
    }

    /// Id of the organization.
    pub async fn organization_id(&self) -> Result<OrganizationId> {
        let key = self.create_key(&[Scope::Assess]).await?;
        let token = self.tokens.issue(Audience::AgentRegistry, &ServiceClaims::Service, now())?;
        let request = self.http.post(self.registry.join("/internal/v1/keys/resolve")?).bearer_auth(token);
        let body = json!({ "key_sha256": key.hash().to_string() }).to_string();
        let response = request.header("content-type", "application/json").body(body).send().await?;
        let found: ResolvedKey = serde_json::from_str(&response.text().await?)?;
        Ok(found.grant.context("the new key is unknown")?.organization_id)
    }

    /// Path and query of a new sign-in link.
    pub async fn sign_in_link(&self) -> Result<String> {
        let token = create_sign_in_token(&self.database, OrganizationName::parse(ORGANIZATION)?).await?;
        Ok(format!("/console/sign-in?token={}", token.reveal()))
    }

    /// A request as the gateway passes it on.
    pub fn request(&self, method: Method, path: &str) -> Result<RequestBuilder> {
        self.request_under(BASE, method, path)
    }

    /// The same under another public address.
    pub fn request_under(&self, base: &str, method: Method, path: &str) -> Result<RequestBuilder> {
        let token = self.tokens.issue(Audience::Console, &ServiceClaims::Service, now())?;
        let request = self.http.request(method, format!("{}{path}", self.address));
        Ok(request.bearer_auth(token).header(PUBLIC_BASE_URL_HEADER, base))
    }

    pub fn unauthenticated(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.address))
    }

    /// The cookie of a new session.
    pub async fn sign_in(&self) -> Result<String> {
        let page = self.open(&self.sign_in_link().await?).await?;
        ensure!(page.status == 303, "{} {}", page.status, page.text);
        page.cookie("assay-session").context("no session")
    }

    /// Opens an address like a person who typed it.
    pub async fn open(&self, path: &str) -> Result<Page> {
        page(self.request(Method::GET, path)?.header("sec-fetch-site", "none").send().await?).await
    }

    /// The form that signs in: its cookie and its token.
    pub async fn sign_in_form(&self) -> Result<(String, String)> {
        let form = page(self.request(Method::GET, "/console/sign-in")?.send().await?).await?;
        Ok((form.cookie("assay-sign-in").context("no cookie")?, form.form_token()?))
    }

    pub async fn get(&self, cookie: &str, path: &str) -> Result<Page> {
        page(self.request(Method::GET, path)?.header("cookie", cookie).send().await?).await
    }

    /// Compressed size of a page, in bytes.
    pub async fn weight(&self, cookie: &str, path: &str) -> Result<usize> {
        let request = self.request(Method::GET, path)?.header("cookie", cookie);
        let response = request.header("accept-encoding", "gzip").send().await?.error_for_status()?;
        ensure!(response.headers().get("content-encoding").is_some_and(|encoding| encoding == "gzip"));
        Ok(response.bytes().await?.len())
    }

    /// Sends the form that signs in with a key; `form` has its cookie and its token.
    pub async fn sign_in_with(&self, form: &(String, String), key: &str, back: &str) -> Result<Page> {
        let (cookie, token) = form;
        let fields = [("csrf", token.as_str()), ("key", key), ("back", back)];
        self.send_raw(cookie, "/console/sign-in", &fields).await
    }

    /// Sends a form with the session's token, which the page at `from` contains.
    pub async fn send(&self, session: &str, from: &str, to: &str, fields: &[(&str, &str)]) -> Result<Page> {
        let token = self.get(session, from).await?.form_token()?;
        let fields: Vec<(&str, &str)> = fields.iter().copied().chain([("csrf", token.as_str())]).collect();
        self.send_raw(session, to, &fields).await
    }

    /// Sends a form with exactly these fields.
    pub async fn send_raw(&self, cookie: &str, to: &str, fields: &[(&str, &str)]) -> Result<Page> {
        let request = with_form(self.request(Method::POST, to)?.header("cookie", cookie), fields);
        page(request.send().await?).await
    }
}

/// The request with the fields of a form.
pub fn with_form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let body = assay_contracts::evaluations::encode_query(fields.iter().copied());
    request.header("content-type", "application/x-www-form-urlencoded").body(body)
}

fn start_registry(
    settings: assay_platform::db::DatabaseSettings,
    tokens: &ServiceTokens,
    tasks: &mut Tasks,
) -> Result<Url> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = Url::parse(&format!("http://{}", listener.local_addr()?))?;
    let config = assay_agent_registry::Config {
        listen: listener.local_addr()?,
        database_url: settings.database_url,
        database_pool_size: settings.database_pool_size,
        outbox_age_limit_seconds: 60,
        transcript_retention_days: 0,
        evaluation_retention_days: 0,
        console_idle_minutes: 60,
        console_session_hours: 24,
    };
    let bus = Bus::open(&BusSettings::new("local:".to_owned()))?;
    let dependencies =
        assay_agent_registry::Dependencies { listener, tokens: tokens.clone(), bus, bootstrap: None };
    assay_agent_registry::start(&config, dependencies, tasks)?;
    Ok(address)
}

pub async fn page(response: Response) -> Result<Page> {
    let headers = response.headers().clone();
    let text_of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let cookies = headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    Ok(Page {
        status: response.status().as_u16(),
        location: text_of("location").to_owned(),
        cookies: cookies.map(str::to_owned).collect(),
        headers: headers.clone(),
        text: response.text().await?,
    })
}

impl Page {
    /// `name=value` of a cookie that the page sets.
    pub fn cookie(&self, name: &str) -> Option<String> {
        let pairs = self.cookies.iter().filter_map(|cookie| cookie.split(';').next());
        pairs.into_iter().find(|pair| pair.starts_with(&format!("{name}="))).map(str::to_owned)
    }

    /// Asserts that the page has each of these texts.
    #[track_caller]
    pub fn assert_has<T: AsRef<str>>(&self, texts: &[T]) {
        for text in texts {
            let text = text.as_ref();
            assert!(self.text.contains(text), "{text}: {}", self.text);
        }
    }

    pub fn form_token(&self) -> Result<String> {
        let rest = self.text.split_once("name=\"csrf\" value=\"").context("no form")?.1;
        Ok(rest.split('"').next().unwrap_or_default().to_owned())
    }

    /// The address of the link with this id.
    pub fn link(&self, id: &str) -> Option<String> {
        let tag = self.text.split("<a ").find(|tag| tag.contains(&format!("id=\"{id}\"")))?;
        let address = tag.split_once("href=\"")?.1.split('"').next()?;
        Some(address.replace("&#38;", "&").replace("&amp;", "&"))
    }
}

/// An evaluation with one reason that points to a quote.
pub fn evaluation(message: &str, quote: &str, start: usize) -> Value {
    let dimension = |signals: Value| json!({ "score": 3.3, "confidence": 0.87, "reason": "It was solved.", "signals": signals });
    let mut handoff = dimension(json!([]));
    handoff["applicable"] = json!(false);
    handoff["basis"] = json!("reader");
    json!({
        "id": new_id::<TicketId>(), "ticket_id": new_id::<TicketId>(), "created_at": 1_767_225_600_000_i64,
        "external_ticket_id": "t-1", "status": "scored", "schema_version": 1,
        "transcript_sha256": "ab".repeat(32), "language": "en", "ai_involvement": "ai_only", "ai_tools": [],
        "axis": {
            "score": 3.7, "band": "good", "excluding_handoff": 3.5,
            "dimensions": {
                "resolution_accuracy": dimension(json!([{ "code": "AGENT_APOLOGISED", "effect": -0.49, "evidence": [0] }])),
                "interaction_effort": dimension(json!([])),
                "handoff_smoothness": handoff,
            },
        },
        "resolution": {
            "status": "resolved", "resolved_by": "ai", "basis": "answer_given", "customer_confirmed": false,
            "confidence": 0.75, "reason": "The AI agent answered.", "evidence": [],
        },
        "charge": { "assessment": "disputed", "reasons": ["ESCALATED"] },
        "handoff": { "state": "none", "requested_by": null, "at": null, "first_human_reply_at": null },
        "sentiment": { "start": "neutral", "end": "positive", "frustration_signals": 0 },
        "effort": { "customer_turns": 1, "repeated_information": 0, "clarifications": 0 },
        "counts": { "customer": 1, "ai": 1, "human": 0, "comment": 0, "system": 0, "mixed": 0 },
        "timeline": {
            "started_at": 1_767_225_600_000_i64, "ended_at": 1_767_225_700_000_i64, "duration_seconds": 100,
            "first_response_seconds": 20, "last_ai_message_at": null, "last_customer_message_at": null,
            "customer_replied_after_last_ai": null, "observed_silence_hours": null,
        },
        "evidence": [{ "message_external_id": message, "author_type": "ai", "quote": quote, "start": start, "end": start + quote.len() }],
        "flags": [],
        "scorer": { "type": "builtin", "version": "2.0.0", "weights_sha256": "cd".repeat(32), "judge_model": null },
    })
}

/// A transcript of these texts, by customer and AI agent in turn; their ids are m-1, m-2 and so on.
pub fn transcript(subject: &str, texts: &[&str]) -> Value {
    let messages: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let author = if at % 2 == 0 {
                json!({ "type": "contact", "external_id": "c", "name": "Ann <i>" })
            } else {
                json!({ "type": "ai", "external_id": "bot" })
            };
            json!({ "author": author, "content": text, "external_id": format!("m-{}", at + 1),
                    "timestamp": 1_767_225_600_000_i64 + at as i64 * 1000, "kind": "message" })
        })
        .collect();
    json!({
        "ticket_id": new_id::<TicketId>(), "external_id": "t-1", "source": "custom", "subject": subject,
        "started_at": 1_767_225_600_000_i64, "ended_at": 1_767_225_700_000_i64, "imported_at": 1_767_225_700_000_i64,
        "agents": [], "messages": messages,
    })
}

/// The only page of a list with these rows.
pub fn page_of(rows: &[Value]) -> Value {
    json!({ "data": rows, "page_info": { "has_next_page": false, "limit": 100 } })
}

/// A summary without evaluations.
pub fn summary() -> Value {
    let period = Period { from: Timestamp::MIN, to: Timestamp::MIN };
    let (totals, distributions) = (Measures::default(), Distributions::default());
    json!({ "period": period, "totals": totals, "distributions": distributions, "charge_reasons": [] })
}

/// A page of the list with these subjects.
pub fn listed(subjects: &[&str], total: u64, next_cursor: Option<&str>) -> Value {
    let rows: Vec<Value> = subjects
        .iter()
        .map(|subject| {
            json!({
                "ticket": { "id": new_id::<TicketId>(), "external_id": "t-1", "source": "custom", "subject": subject,
                    "started_at": 1_767_225_600_000_i64, "ended_at": 1_767_225_700_000_i64,
                    "imported_at": 1_767_225_700_000_i64, "agents": [] },
                "evaluation": { "id": new_id::<TicketId>(), "status": "scored", "evaluated_at": 1_767_225_700_000_i64,
                    "scores": { "axis": 2.2, "band": "poor", "resolution_accuracy": 1.6, "interaction_effort": 2.4,
                        "handoff_smoothness": 2.5, "confidence": 0.8 },
                    "resolution": "not_resolved", "resolved_by": "none", "basis": "customer_rejected",
                    "charge": "disputed", "charge_reasons": ["CUSTOMER_REJECTED"] },
            })
        })
        .collect();
    let mut page_info = json!({ "has_next_page": next_cursor.is_some(), "limit": 25 });
    if let Some(cursor) = next_cursor {
        page_info["next_cursor"] = json!(cursor);
    }
    json!({ "data": rows, "page_info": page_info, "total": { "count": total, "exact": true } })
}
