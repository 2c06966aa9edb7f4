//! Starting the role.

use anyhow::Result;
use assay_agent_registry::{MIGRATIONS, SCHEMA};
use assay_platform::auth::ApiKey;
use assay_platform::db::{Database, DatabaseSettings};

use assay_testkit::{ServiceDatabase, eventually};

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn the_role_starts_before_its_tables_exist_and_is_ready_once_they_do() -> Result<()> {
    let place = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let settings = place.settings();
    let key = ApiKey::parse("a-bootstrap-key-of-tests")?;
    let stage = Stage::run(settings.clone(), place, Some((key.clone(), "default".to_owned())))?;
    let ready = || async {
        Ok(stage.http.get(format!("{}/readyz", stage.address)).send().await?.status().is_success())
    };
    assert!(!ready().await?);
    Database::open(&settings, SCHEMA)?.migrate(MIGRATIONS).await?;
    eventually("the role to be ready", ready).await?;
    assert!(stage.resolve(&key).await?.grant.is_some(), "ready means that the bootstrap key works");
    Ok(())
}

#[tokio::test]
async fn a_configuration_that_cannot_work_is_refused_at_start() -> Result<()> {
    let place = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let settings = place.settings();
    let key = ApiKey::parse("a-bootstrap-key-of-tests")?;
    assert!(Stage::run(settings, place, Some((key, " ".to_owned()))).is_err());
    let place = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let settings = DatabaseSettings { database_url: "mysql://host".to_owned().into(), database_pool_size: 1 };
    assert!(Stage::run(settings, place, None).is_err());
    Ok(())
}
