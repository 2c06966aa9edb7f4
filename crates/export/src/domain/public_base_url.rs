//! The public base URL of the gateway, and addresses made with it.

use assay_contracts::export::Export;
use assay_contracts::time::Timestamp;
use assay_platform::auth::KeyRing;

use url::Url;

use super::download_address;
use super::job::Job;

/// Public base URL of the gateway, as in `https://assay.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicBaseUrl(String);

/// Not a public base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be http:// or https:// with a host, without user data, query or fragment")]
pub struct InvalidBaseUrl;

impl PublicBaseUrl {
    /// Strips trailing slashes.
    ///
    /// # Errors
    /// When it is not an `http` or `https` URL with a host, or has user data, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, InvalidBaseUrl> {
        let base = text.trim_end_matches('/');
        let rest =
            base.strip_prefix("https://").or_else(|| base.strip_prefix("http://")).ok_or(InvalidBaseUrl)?;
        // The parser accepts `http:///x` and spaces, but the addresses are made of the text as it is.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'"' | b'\\');
        let url = Url::parse(base).map_err(|_| InvalidBaseUrl)?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        let is_valid = !has_user && !rest.starts_with('/') && rest.bytes().all(is_plain);
        if is_valid { Ok(Self(base.to_owned())) } else { Err(InvalidBaseUrl) }
    }

    /// A new signed URL of the job's file, while it is kept.
    pub fn download_url(&self, job: &Job, keys: &KeyRing, now: Timestamp) -> Option<String> {
        job.file_at(now).map(|_| download_address::sign(keys, &self.0, job.id, now))
    }

    pub fn to_response(&self, job: Job, keys: &KeyRing, now: Timestamp) -> Export {
        let download_url = self.download_url(&job, keys, now);
        job.into_export(download_url, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_is_http_or_https_without_query() {
        for text in ["http://127.0.0.1:8080", "https://assay.example/", "https://example.com/assay"] {
            assert!(PublicBaseUrl::parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "https://",
            "ftp://x",
            "//x",
            "http:///x",
            "https://:80",
            "https://a:b@x",
            "https://x?y",
            "https://x y",
            "javascript:x",
        ] {
            assert_eq!(PublicBaseUrl::parse(text), Err(InvalidBaseUrl), "{text}");
        }
    }
}
