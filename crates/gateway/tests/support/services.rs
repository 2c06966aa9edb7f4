//! Stand-ins of the services, on one listener: agent-registry knows some keys, the others answer every known path.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, Data, Json, Path, ServiceConfig, get, patch, post};
use actix_web::{HttpRequest, HttpResponse};
use anyhow::Result;
use assay_contracts::internal::{FILE_OWNER_HEADER, KeyGrant, ResolveKey, ResolvedKey};
use assay_contracts::tenant::Scopes;
use assay_platform::auth::ApiKey;
use assay_platform::runtime::{LockExt as _, Phase, Readiness, Tasks, new_id};
use assay_platform::web::{ServerSettings, resource, serve};
use futures_util::stream;
use tokio::time::sleep;
use url::Url;

/// Length of the file of every download, and of every ticket: more than the buffers on its way hold.
pub const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What the services answer to a request with a body, and to a list.
pub const ANSWER: &str = r#"{"data":[],"page_info":{"has_next_page":false,"limit":20}}"#;

pub struct Services {
    pub address: Url,
    pub registry: Data<Registry>,
    _tasks: Tasks,
}

#[derive(Default)]
pub struct Registry {
    grants: Mutex<BTreeMap<String, KeyGrant>>,
    is_failing: Mutex<bool>,
    /// How long the look-up of an unknown key takes.
    unknown_delay: Mutex<Duration>,
    look_ups: AtomicUsize,
}

impl Services {
    pub fn start() -> Result<Self> {
        Self::start_with(|_| ())
    }

    /// Services that also answer these routes, or answer them instead.
    pub fn start_with(routes: impl Fn(&mut ServiceConfig) + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let registry = Data::new(Registry::default());
        let mut tasks = Tasks::new(Readiness::default());
        let shared = registry.clone();
        let settings = ServerSettings::default();
        serve(&mut tasks, Phase::ServeInternal, "services", listener, settings, move |app| {
            // First, because the first of two resources with one path answers.
            routes(app);
            app.app_data(shared.clone())
                .service(resource("/internal/v1/keys/resolve", vec![("POST", post().to(resolve))]))
                .service(resource("/v1/downloads/{id}", vec![("GET", get().to(download))]))
                .service(resource("/internal/v1/tickets/{id}", vec![("GET", get().to(file))]));
            for path in [
                "/exports",
                "/exports/{id}",
                "/agents",
                "/webhooks",
                "/conversations",
                // The gateway also asks whether the ticket was deleted; only that call has no route here, and fails.
                "/tickets/{id}/evaluation",
            ] {
                let path = format!("/internal/v1{path}");
                app.service(resource(&path, vec![("GET", get().to(answer)), ("POST", post().to(answer))]));
            }
            app.service(resource("/internal/v1/webhooks/{id}", vec![("PATCH", patch().to(answer))]));
        })?;
        Ok(Self { address, registry, _tasks: tasks })
    }

    /// A new key that agent-registry knows.
    pub fn new_key(&self) -> Result<ApiKey> {
        let key = ApiKey::generate()?;
        let scopes = Scopes::default_for_keys();
        let grant = KeyGrant { key_id: new_id(), organization_id: new_id(), scopes };
        self.registry.grants().insert(key.hash().to_string(), grant);
        Ok(key)
    }
}

impl Registry {
    fn grants(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, KeyGrant>> {
        self.grants.locked()
    }

    pub fn revoke(&self, key: &ApiKey) {
        self.grants().remove(&key.hash().to_string());
    }

    /// Whether look-ups are answered with 503 from now on.
    pub fn set_failing(&self, is_failing: bool) {
        *self.is_failing.locked() = is_failing;
    }

    pub fn delay_unknown_keys(&self, delay: Duration) {
        *self.unknown_delay.locked() = delay;
    }

    pub fn look_ups(&self) -> usize {
        self.look_ups.load(Ordering::SeqCst)
    }
}

async fn resolve(registry: Data<Registry>, asked: Json<ResolveKey>) -> HttpResponse {
    registry.look_ups.fetch_add(1, Ordering::SeqCst);
    if *registry.is_failing.locked() {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let grant = registry.grants().get(&asked.key_sha256).cloned();
    if grant.is_none() {
        let delay = *registry.unknown_delay.locked();
        sleep(delay).await;
    }
    HttpResponse::Ok().json(ResolvedKey { grant })
}

async fn answer(_request: HttpRequest, _body: Bytes) -> HttpResponse {
    HttpResponse::Ok().insert_header((CONTENT_TYPE, "application/json")).body(ANSWER)
}

/// A download without a signature is refused.
async fn download(request: HttpRequest, id: Path<String>) -> HttpResponse {
    if request.query_string().is_empty() { HttpResponse::Forbidden().finish() } else { file(id).await }
}

/// The id in the path is also the id of the organization that owns the file.
async fn file(id: Path<String>) -> HttpResponse {
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    let pieces = stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
    let count = usize::try_from(FILE_BYTES).unwrap_or(usize::MAX) / (64 * 1024);
    let body = SizedStream::new(FILE_BYTES, futures_util::StreamExt::take(pieces, count));
    HttpResponse::Ok().insert_header((FILE_OWNER_HEADER, id.into_inner())).body(body)
}
