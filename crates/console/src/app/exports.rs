//! Exports of the organization.

use assay_clients::{Call, ClientError};
use assay_contracts::export::{DownloadAddress, Export, NewExport};
use assay_contracts::ids::ExportId;
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_contracts::page::Page;
use assay_platform::auth::ServiceClaims;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;

use super::services::Services;

const EXPORTS: &str = "/internal/v1/exports";

/// A page of exports, newest first.
pub(crate) async fn list_exports(
    services: &Services,
    claims: &ServiceClaims,
    base: &str,
    cursor: Option<&str>,
) -> Result<Page<Export>, ClientError> {
    let query: Vec<(&str, &str)> =
        [("limit", "25")].into_iter().chain(cursor.map(|cursor| ("cursor", cursor))).collect();
    let path = format!("{EXPORTS}?{}", assay_contracts::evaluations::encode_query(query));
    get_with_base(services, claims, base, &path).await
}

/// The signed address of a file.
pub(crate) async fn download_address(
    services: &Services,
    claims: &ServiceClaims,
    base: &str,
    id: ExportId,
) -> Result<String, ClientError> {
    let address: DownloadAddress =
        get_with_base(services, claims, base, &format!("{EXPORTS}/{id}/download")).await?;
    Ok(address.download_url)
}

/// Queues an export.
pub(crate) async fn create_export(
    services: &Services,
    claims: &ServiceClaims,
    new: &NewExport,
) -> Result<Export, ClientError> {
    services.export.post_json(claims, EXPORTS, new).await
}

/// Sends the public base URL, too: the addresses of files begin with it.
async fn get_with_base<T: DeserializeOwned>(
    services: &Services,
    claims: &ServiceClaims,
    base: &str,
    path: &str,
) -> Result<T, ClientError> {
    let mut headers = HeaderMap::new();
    if let Ok(base) = HeaderValue::from_str(base) {
        headers.insert(PUBLIC_BASE_URL_HEADER, base);
    }
    services.export.call_json(claims, Call { method: Method::GET, path, headers, body: None }).await
}
