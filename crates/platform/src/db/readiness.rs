//! Readiness of a service with a database: it responds, and its migrations are applied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Database, Migrations};
use crate::runtime::Readiness;

/// Adds the checks `<name> database` and `<name> migrations`. Applied migrations stay applied, so the second check queries
/// the database only until it has passed once.
pub fn register_readiness(
    readiness: &Readiness,
    name: &'static str,
    database: &Database,
    migrations: &'static [Migrations],
) {
    let pinged = database.clone();
    readiness.register(format!("{name} database"), move || {
        let database = pinged.clone();
        async move { database.ping().await.map_err(|error| error.to_string()) }
    });
    let database = database.clone();
    let applied = Arc::new(AtomicBool::new(false));
    readiness.register(format!("{name} migrations"), move || {
        let (database, applied) = (database.clone(), applied.clone());
        async move {
            if applied.load(Ordering::Relaxed) {
                return Ok(());
            }
            let pending = database.pending_migrations(migrations).await.map_err(|error| error.to_string())?;
            if !pending.is_empty() {
                return Err(format!("run `assay migrate`: pending are {}", pending.join(", ")));
            }
            applied.store(true, Ordering::Relaxed);
            Ok(())
        }
    });
}
