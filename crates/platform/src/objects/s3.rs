//! Opens an S3-compatible store with explicit timeouts and retries: a download may take as long as its reader needs, and
//! a misspelled option is refused.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for data from the store. The timer starts with the request, so a part must be uploaded within this time, and
/// restarts with every chunk of a download.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Retries of a request, with pauses up to [`MAX_BACKOFF`]. A retry keeps its signature, which S3 accepts for 15 minutes.
const MAX_RETRIES: usize = 8;
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// How long after its start a broken download may be resumed. Every resumption has a new signature; other requests end
/// earlier, by [`MAX_RETRIES`].
const RESUME_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The store at `s3://BUCKET/PREFIX`, or why it cannot be opened.
pub(super) fn open<I>(url: &Url, options: I) -> Result<PrefixStore<AmazonS3>, String>
where
    I: IntoIterator<Item = (String, String)>,
{
    crate::http_client::install_tls_provider();
    let prefix = Path::from_url_path(url.path()).map_err(|error| error.to_string())?;
    let store = builder(url, options)?.build().map_err(|error| error.to_string())?;
    Ok(PrefixStore::new(store, prefix))
}

fn builder<I>(url: &Url, options: I) -> Result<AmazonS3Builder, String>
where
    I: IntoIterator<Item = (String, String)>,
{
    let mut builder = AmazonS3Builder::new()
        .with_url(url.as_str())
        .with_client_options(client_options())
        .with_retry(retry_config());
    for (name, value) in options {
        let key: AmazonS3ConfigKey = name
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| format!("objects.options has the unknown option `{name}`"))?;
        builder = builder.with_config(key, value);
    }
    Ok(builder)
}

fn client_options() -> ClientOptions {
    ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_read_timeout(READ_TIMEOUT)
}

fn retry_config() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { max_backoff: MAX_BACKOFF, ..BackoffConfig::default() },
        max_retries: MAX_RETRIES,
        retry_timeout: RESUME_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use object_store::ClientConfigKey;

    use super::*;

    fn options<const N: usize>(options: [(&str, &str); N]) -> [(String, String); N] {
        options.map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    #[test]
    fn bucket_with_options_is_opened_under_its_prefix() {
        let url = Url::parse("s3://files/of/assay").unwrap();
        let given = options([
            ("aws_endpoint", "http://127.0.0.1:9000"),
            ("aws_allow_http", "true"),
            ("AWS_REGION", "eu-central-1"),
            ("aws_access_key_id", "id"),
            ("aws_secret_access_key", "secret"),
        ]);
        let configured = builder(&url, given.clone()).unwrap();
        for (name, value) in &given {
            let key = name.to_ascii_lowercase().parse().unwrap();
            assert_eq!(configured.get_config_value(&key).as_ref(), Some(value), "{name}");
        }
        assert_eq!(open(&url, given).unwrap().to_string(), "PrefixObjectStore(of/assay)");
    }

    #[test]
    fn download_has_no_total_timeout_unless_configured() {
        let url = Url::parse("s3://files").unwrap();
        let value = |options: &[(String, String)], key: ClientConfigKey| {
            let builder = builder(&url, options.to_vec()).unwrap();
            builder.get_config_value(&AmazonS3ConfigKey::Client(key))
        };
        assert_eq!(value(&[], ClientConfigKey::Timeout), None);
        assert!(value(&[], ClientConfigKey::ConnectTimeout).is_some());
        assert!(value(&[], ClientConfigKey::ReadTimeout).is_some());
        let limited = options([("timeout", "7s")]);
        assert_eq!(value(&limited, ClientConfigKey::Timeout).as_deref(), Some("7s"));
    }

    #[test]
    fn unknown_or_incomplete_option_is_refused_by_name() {
        let url = Url::parse("s3://files").unwrap();
        let refusal = open(&url, options([("aws_regoin", "eu-central-1")])).unwrap_err();
        assert!(refusal.contains("`aws_regoin`"), "{refusal}");
        assert!(open(&url, options([("aws_access_key_id", "without its secret")])).is_err());
    }
}
