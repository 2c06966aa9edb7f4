//! How a job is shown to its owner: with a fresh signed address while its file can be fetched.

use assay_contracts::export::Export;
use assay_contracts::time::Timestamp;
use assay_platform::auth::SigningKeys;

use super::download_address;
use super::job::Job;

/// Scheme and authority under which the public reaches the gateway, as in `https://assay.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicBase(String);

/// A text that is no public base address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be http:// or https:// with a host, without a query or fragment")]
pub struct InvalidBase;

impl PublicBase {
    /// Checks an address; a slash at its end is dropped.
    ///
    /// # Errors
    /// When it is no `http` or `https` address, or has more than a path.
    pub fn parse(text: &str) -> Result<Self, InvalidBase> {
        let base = text.trim_end_matches('/');
        let rest =
            base.strip_prefix("https://").or_else(|| base.strip_prefix("http://")).ok_or(InvalidBase)?;
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'"' | b'\\');
        let sane = !rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(is_plain);
        if sane { Ok(Self(base.to_owned())) } else { Err(InvalidBase) }
    }

    /// A fresh address of the job's file, while it is kept.
    pub fn address_of(&self, job: &Job, keys: &SigningKeys, now: Timestamp) -> Option<String> {
        job.file_at(now).map(|_| download_address::sign(keys, &self.0, job.id, now))
    }

    /// The job as the specification shows it.
    pub fn show(&self, job: Job, keys: &SigningKeys, now: Timestamp) -> Export {
        let address = self.address_of(&job, keys, now);
        job.into_export(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_an_address_of_the_web() {
        for text in ["http://127.0.0.1:8080", "https://assay.example/", "https://example.com/assay"] {
            assert!(PublicBase::parse(text).is_ok(), "{text}");
        }
        for text in
            ["", "https://", "ftp://x", "//x", "http:///x", "https://x?y", "https://x y", "javascript:x"]
        {
            assert_eq!(PublicBase::parse(text), Err(InvalidBase), "{text}");
        }
    }
}
