//! A stub agent-registry that serves retention periods.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use actix_web::HttpResponse;
use actix_web::web::{Data, get};
use anyhow::Result;
use assay_contracts::internal::{OrganizationRetention, RetentionPage};
use assay_platform::runtime::{LockExt as _, Phase, Tasks};
use assay_platform::web::{ServerSettings, resource, serve};
use assay_testkit::eventually;
use url::Url;

#[derive(Clone, Default)]
pub struct Registry {
    /// `None`: unavailable.
    retention: Arc<Mutex<Option<Vec<OrganizationRetention>>>>,
    calls: Arc<AtomicUsize>,
}

impl Registry {
    pub fn start(tasks: &mut Tasks) -> Result<(Self, Url)> {
        let registry = Self::default();
        registry.set_retention(Some(Vec::new()));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let data = Data::new(registry.clone());
        let phase = Phase::ServeInternal;
        serve(tasks, phase, "test registry", listener, ServerSettings::default(), move |app| {
            app.app_data(data.clone())
                .service(resource("/internal/v1/retention", vec![("GET", get().to(retention))]));
        })?;
        Ok((registry, url))
    }

    /// Sets the response; `None`: the registry is unavailable.
    pub fn set_retention(&self, retention: Option<Vec<OrganizationRetention>>) {
        *self.retention.locked() = retention;
    }

    /// Waits until a maintenance run that started after this call has ended: runs do not overlap.
    pub async fn next_maintenance_run(&self) -> Result<()> {
        let calls = self.calls.load(Ordering::SeqCst);
        let called = || async { Ok(self.calls.load(Ordering::SeqCst) >= calls + 2) };
        eventually("two maintenance runs", called).await
    }
}

async fn retention(registry: Data<Registry>) -> HttpResponse {
    registry.calls.fetch_add(1, Ordering::SeqCst);
    let retention = registry.retention.locked().clone();
    match retention {
        Some(organizations) => HttpResponse::Ok().json(RetentionPage { organizations, next: None }),
        None => HttpResponse::ServiceUnavailable().finish(),
    }
}
