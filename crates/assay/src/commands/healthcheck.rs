//! `assay healthcheck`: for container images without a shell or curl.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_platform::http_client::client_builder;
use url::Url;

pub async fn run(url: Url) -> Result<()> {
    let client = client_builder().timeout(Duration::from_secs(3)).no_proxy().build()?;
    let response =
        client.get(url.clone()).send().await.with_context(|| format!("{url} cannot be reached"))?;
    ensure!(response.status().is_success(), "{url} answered {}", response.status());
    Ok(())
}
