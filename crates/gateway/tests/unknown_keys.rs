//! API keys that agent-registry does not know, and known ones while it does not answer.

#![cfg(target_os = "linux")]

mod support;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_platform::auth::ApiKey;
use futures_util::future::join_all;
use reqwest::{Client, Response, StatusCode};
use tokio::time::sleep;

use self::support::Gateway;
use self::support::services::Services;

const LIST: &str = "/v1/evaluations/exports";

async fn list(gateway: &Gateway, key: &str) -> Result<Response> {
    static CLIENT: LazyLock<Client> = LazyLock::new(Client::new);
    Ok(CLIENT.get(gateway.url(LIST)).bearer_auth(key).send().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn mistyped_key_is_refused_without_a_look_up() -> Result<()> {
    let services = Services::start()?;
    let gateway = Gateway::start_with(&services.address, None, |_| ())?;
    let key = services.new_key()?.reveal().to_owned();
    for mistyped in
        [&key[..key.len() - 1], &format!("{key}0"), &key.replacen("asy_", "asy_0", 1), "asy_short"]
    {
        let refused = list(&gateway, mistyped).await?;
        ensure!(refused.status() == StatusCode::UNAUTHORIZED, "{mistyped}: {refused:?}");
    }
    ensure!(services.registry.look_ups() == 0);
    ensure!(list(&gateway, ApiKey::generate()?.reveal()).await?.status() == StatusCode::UNAUTHORIZED);
    let chosen = list(&gateway, "a key that an operator may have chosen").await?;
    ensure!(chosen.status() == StatusCode::UNAUTHORIZED, "{chosen:?}");
    ensure!(services.registry.look_ups() == 2);
    ensure!(list(&gateway, &key).await?.status() == StatusCode::OK);
    Ok(())
}

/// The grant of a known key is renewed every second, while made-up keys use all look-ups that they may.
#[tokio::test(flavor = "multi_thread")]
async fn flood_of_made_up_keys_does_not_affect_a_known_key() -> Result<()> {
    let services = Services::start()?;
    let gateway = Gateway::start_with(&services.address, None, |config| {
        config.max_in_flight = 4;
        config.max_unknown_key_look_ups = 2;
        config.service_deadline_milliseconds = 2_000;
    })?;
    let known = services.new_key()?;
    ensure!(list(&gateway, known.reveal()).await?.status() == StatusCode::OK);
    services.registry.delay_unknown_keys(Duration::from_millis(500));
    let end = Instant::now() + Duration::from_secs(4);
    let flood = join_all((0..40).map(|_| async {
        let mut over_limit = 0;
        while Instant::now() < end {
            let status = list(&gateway, ApiKey::generate()?.reveal()).await?.status();
            ensure!(matches!(status.as_u16(), 401 | 503), "{status}");
            over_limit += usize::from(status == StatusCode::SERVICE_UNAVAILABLE);
        }
        Ok(over_limit)
    }));
    let client = async {
        let mut answered = 0;
        while Instant::now() < end {
            let response = list(&gateway, known.reveal()).await?;
            ensure!(response.status() == StatusCode::OK, "after {answered} responses: {response:?}");
            answered += 1;
            sleep(Duration::from_millis(10)).await;
        }
        Ok(answered)
    };
    let (over_limit, answered) = tokio::join!(flood, client);
    let over_limit: usize = over_limit.into_iter().sum::<Result<usize>>()?;
    ensure!(over_limit > 0, "no request exceeded the limit of look-ups: the flood was too small");
    ensure!(answered? > 50);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn known_key_works_while_the_registry_fails_and_ends_when_revoked() -> Result<()> {
    let services = Services::start()?;
    let gateway = Gateway::start_with(&services.address, None, |_| ())?;
    let known = services.new_key()?;
    ensure!(list(&gateway, known.reveal()).await?.status() == StatusCode::OK);
    services.registry.set_failing(true);
    let unknown = list(&gateway, ApiKey::generate()?.reveal()).await?;
    ensure!(unknown.status() == StatusCode::SERVICE_UNAVAILABLE, "{unknown:?}");
    let end = Instant::now() + Duration::from_secs(4);
    let look_ups_before = services.registry.look_ups();
    while Instant::now() < end {
        let response = list(&gateway, known.reveal()).await?;
        ensure!(response.status() == StatusCode::OK, "{response:?}");
        sleep(Duration::from_millis(50)).await;
    }
    let look_ups = services.registry.look_ups() - look_ups_before;
    ensure!(
        (2..=5).contains(&look_ups),
        "{look_ups} attempts to renew a grant that was due for three seconds"
    );
    services.registry.revoke(&known);
    services.registry.set_failing(false);
    let end = Instant::now() + Duration::from_secs(2);
    while list(&gateway, known.reveal()).await?.status() != StatusCode::UNAUTHORIZED {
        ensure!(Instant::now() < end, "the revoked key still works");
        sleep(Duration::from_millis(50)).await;
    }
    services.registry.set_failing(true);
    sleep(Duration::from_millis(1_100)).await;
    ensure!(
        list(&gateway, known.reveal()).await?.status() == StatusCode::SERVICE_UNAVAILABLE,
        "the grant of the revoked key is kept"
    );
    Ok(())
}
