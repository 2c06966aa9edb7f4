//! Exports of the organization.

use assay_clients::{Call, ClientError};
use assay_contracts::export::{DownloadAddress, Export, NewExport};
use assay_contracts::ids::ExportId;
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_contracts::page::Page;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;

use super::services::OrganizationServices;

const EXPORTS: &str = "/internal/v1/exports";

impl OrganizationServices<'_> {
    /// A page of exports, newest first.
    pub(crate) async fn list_exports(
        self,
        base_url: &str,
        cursor: Option<&str>,
    ) -> Result<Page<Export>, ClientError> {
        let query: Vec<(&str, &str)> =
            [("limit", "25")].into_iter().chain(cursor.map(|cursor| ("cursor", cursor))).collect();
        let path = format!("{EXPORTS}?{}", assay_contracts::evaluations::encode_query(query));
        self.get_json(base_url, &path).await
    }

    /// The signed address of a file.
    pub(crate) async fn download_address(self, base_url: &str, id: ExportId) -> Result<String, ClientError> {
        let address: DownloadAddress = self.get_json(base_url, &format!("{EXPORTS}/{id}/download")).await?;
        Ok(address.download_url)
    }

    pub(crate) async fn create_export(self, new: &NewExport) -> Result<Export, ClientError> {
        self.services.export.post_json(self.claims, EXPORTS, new).await
    }

    /// Sends the public base URL, too: the addresses of files begin with it.
    async fn get_json<T: DeserializeOwned>(self, base_url: &str, path: &str) -> Result<T, ClientError> {
        let mut headers = HeaderMap::new();
        if let Ok(base_url) = HeaderValue::from_str(base_url) {
            headers.insert(PUBLIC_BASE_URL_HEADER, base_url);
        }
        let call = Call { method: Method::GET, path, headers, body: None };
        self.services.export.call_json(self.claims, call).await
    }
}
