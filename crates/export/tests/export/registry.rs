//! The agent-registry of the tests: says how long organizations keep things.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::HttpResponse;
use actix_web::web::{Data, get};
use anyhow::Result;
use assay_contracts::internal::{OrganizationRetention, RetentionPage};
use assay_platform::runtime::{Phase, Tasks};
use assay_platform::web::{ServerSettings, resource, serve};
use assay_testkit::eventually;
use url::Url;

/// What it says, or nothing: then it is away.
#[derive(Clone, Default)]
pub struct Registry {
    told: Arc<Mutex<Option<Vec<OrganizationRetention>>>>,
    calls: Arc<AtomicUsize>,
}

impl Registry {
    /// Starts it as one of `tasks`.
    pub fn start(tasks: &mut Tasks) -> Result<(Self, Url)> {
        let registry = Self::default();
        registry.tell(Some(Vec::new()));
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

    /// What it says from now on.
    pub fn tell(&self, periods: Option<Vec<OrganizationRetention>>) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = periods;
    }

    /// Waits until a round of housekeeping that began after this call has ended: rounds follow each other.
    pub async fn after_a_round(&self) -> Result<()> {
        let calls = self.calls.load(Ordering::SeqCst);
        let asked = || async { Ok(self.calls.load(Ordering::SeqCst) >= calls + 2) };
        eventually("two rounds of housekeeping", asked).await
    }
}

async fn retention(registry: Data<Registry>) -> HttpResponse {
    registry.calls.fetch_add(1, Ordering::SeqCst);
    let told = registry.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match told {
        Some(organizations) => HttpResponse::Ok().json(RetentionPage { organizations, next: None }),
        None => HttpResponse::ServiceUnavailable().finish(),
    }
}
