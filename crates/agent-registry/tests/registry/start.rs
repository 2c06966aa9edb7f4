//! Starting the role.

use anyhow::Result;
use assay_agent_registry::{MIGRATIONS, SCHEMA};
use assay_platform::auth::ApiKey;
use assay_platform::db::{Database, DatabaseSettings};

use assay_testkit::{ServiceDatabase, eventually};

use crate::test_app::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn role_starts_without_tables_and_becomes_ready() -> Result<()> {
    let service_database = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let settings = service_database.settings();
    let key = ApiKey::parse("a-bootstrap-key-of-the-tests-of-registry")?;
    let app = TestApp::run(settings.clone(), service_database, Some((key.clone(), "default".to_owned())))?;
    let ready =
        || async { Ok(app.http.get(format!("{}/readyz", app.address)).send().await?.status().is_success()) };
    assert!(!ready().await?);
    Database::open(&settings, SCHEMA)?.migrate(MIGRATIONS).await?;
    eventually("the role to be ready", ready).await?;
    assert!(app.resolve(&key).await?.grant.is_some(), "ready means that the bootstrap key works");
    Ok(())
}

#[tokio::test]
async fn invalid_configuration_is_refused_at_start() -> Result<()> {
    let service_database = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let settings = service_database.settings();
    let key = ApiKey::parse("a-bootstrap-key-of-the-tests-of-registry")?;
    assert!(TestApp::run(settings, service_database, Some((key, " ".to_owned()))).is_err());
    let service_database = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let settings = DatabaseSettings { database_url: "mysql://host".to_owned().into(), database_pool_size: 1 };
    assert!(TestApp::run(settings, service_database, None).is_err());
    Ok(())
}
