//! Downloads the file: resumes after a broken connection (RFC 9110, section 14), and verifies length and checksum.

use anyhow::{Context, Result, anyhow, ensure};
use assay_contracts::export::Export;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use indicatif::{ProgressBar, ProgressFinish};
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};

use super::sink::{Sink, WrittenFile};
use super::wait::read_export;
use crate::api::{Api, Problem, backoff, client_without_key, is_temporary};
use crate::terminal::progress_style;

/// Maximum number of consecutive attempts without progress.
const ATTEMPTS_WITHOUT_PROGRESS: u16 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Length and SHA-256.
    Sha256,
    /// Length only: the service sent no checksum.
    LengthOnly,
}

/// The file as the response headers describe it.
struct FileHeaders {
    length: u64,
    etag: Option<HeaderValue>,
    digest: Option<Vec<u8>>,
}

/// Why an attempt failed.
enum FetchError {
    Retryable(anyhow::Error),
    /// The signed URL was refused: a fresh one is needed.
    ExpiredUrl,
    Permanent(anyhow::Error),
}

impl From<anyhow::Error> for FetchError {
    fn from(error: anyhow::Error) -> Self {
        Self::Permanent(error)
    }
}

/// Writes the file of a complete export into `sink`, verifies it and publishes it.
pub async fn download(api: &Api, export: &Export, mut sink: Sink) -> Result<(WrittenFile, Verification)> {
    let id = export.id.to_string();
    let mut address = address_of(export)?;
    let client = client_without_key()?;
    let bar = progress_bar();
    let mut etag = None;
    let mut delays = backoff(ATTEMPTS_WITHOUT_PROGRESS);
    let headers = loop {
        let bytes_before = sink.bytes();
        let failure = match fetch(&client, &address, &mut etag, &mut sink, &bar).await {
            Ok(headers) => break headers,
            Err(FetchError::Permanent(error)) => return Err(error),
            Err(FetchError::Retryable(error)) => error,
            Err(FetchError::ExpiredUrl) => {
                address = address_of(&read_export(api, &id).await?)?;
                anyhow!("the download address is refused, a fresh one, too: is the service's clock right?")
            }
        };
        if sink.bytes() > bytes_before {
            // Progress: the attempts start anew.
            delays = backoff(ATTEMPTS_WITHOUT_PROGRESS);
        }
        let delay = delays.next().ok_or(failure).context("the file cannot be fetched: try again later")?;
        tokio::time::sleep(delay).await;
    };
    drop(bar);
    let written = sink.written_file();
    ensure!(
        written.bytes == headers.length,
        "the file has {} bytes instead of {}: fetch it again",
        written.bytes,
        headers.length
    );
    let verification = match headers.digest {
        Some(digest) => {
            ensure!(
                digest == written.digest,
                "the file was damaged on its way (its SHA-256 is another one): fetch it again"
            );
            Verification::Sha256
        }
        None => Verification::LengthOnly,
    };
    sink.publish()?;
    Ok((written, verification))
}

/// One attempt: fetches the rest of the file, or all of it when the file has changed.
async fn fetch(
    client: &Client,
    address: &str,
    etag: &mut Option<HeaderValue>,
    sink: &mut Sink,
    bar: &ProgressBar,
) -> Result<FileHeaders, FetchError> {
    let mut request = client.get(address);
    if let (Some(tag), true) = (&*etag, sink.bytes() > 0) {
        request = request.header(RANGE, format!("bytes={}-", sink.bytes())).header(IF_RANGE, tag);
    }
    let broken = |error: reqwest::Error| {
        FetchError::Retryable(anyhow::Error::new(error.without_url()).context("the connection broke"))
    };
    let response = ensure_file(request.send().await.map_err(broken)?).await?;
    let headers = read_headers(&response, sink)?;
    etag.clone_from(&headers.etag);
    bar.set_length(headers.length);
    let mut content = response.bytes_stream();
    while let Some(piece) = content.next().await {
        match piece.map_err(broken) {
            Ok(piece) => sink.write(&piece)?,
            // All bytes arrived; only the end of the response was lost.
            Err(_) if sink.bytes() == headers.length => break,
            Err(error) => return Err(error),
        }
        bar.set_position(sink.bytes());
    }
    Ok(headers)
}

/// Passes on a response that holds the file or a part of it.
async fn ensure_file(response: Response) -> Result<Response, FetchError> {
    let status = response.status();
    if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return Ok(response);
    }
    let problem = Problem::read(response).await;
    if problem.has_code("invalid-signature") {
        return Err(FetchError::ExpiredUrl);
    }
    let error = anyhow!("the file cannot be fetched: {}", problem.describe());
    Err(if is_temporary(status) { FetchError::Retryable(error) } else { FetchError::Permanent(error) })
}

/// Reads the headers; empties the sink when the body starts from the first byte.
fn read_headers(response: &Response, sink: &mut Sink) -> Result<FileHeaders, FetchError> {
    let headers = response.headers();
    let length = if response.status() == StatusCode::PARTIAL_CONTENT {
        let (first, length) = content_range(headers).context("the answer's Content-Range cannot be read")?;
        let expected = sink.bytes();
        if first != expected {
            return Err(FetchError::Permanent(anyhow!(
                "asked for the file from byte {expected} on, it came from byte {first} on: fetch it again"
            )));
        }
        length
    } else {
        if sink.bytes() > 0 {
            sink.restart()?;
        }
        response.content_length().context("the answer has no length")?
    };
    let digest = headers.get("repr-digest").and_then(|value| sha256_in(value.to_str().ok()?));
    Ok(FileHeaders { length, etag: headers.get(ETAG).cloned(), digest })
}

/// First byte and total length, from `bytes 5-9/10`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
    let (range, length) = text.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, length.parse().ok()?))
}

/// The SHA-256 among the digests of `Repr-Digest` (RFC 9530, section 3): `sha-256=:BASE64:, sha-512=:…:`.
fn sha256_in(field: &str) -> Option<Vec<u8>> {
    let digests = field.split(',').filter_map(|member| member.trim().split_once('='));
    let (_, value) = digests.into_iter().find(|(name, _)| *name == "sha-256")?;
    let encoded = value.strip_prefix(':')?.split_once(':')?.0;
    STANDARD.decode(encoded).ok().filter(|digest| digest.len() == 32)
}

fn address_of(export: &Export) -> Result<String> {
    export.download_url.clone().with_context(|| {
        format!("the file of export {} is no longer kept: create the export again for a new one", export.id)
    })
}

/// Shown at a terminal only.
fn progress_bar() -> ProgressBar {
    let template = "{bar:30} {percent:>3}% of {binary_total_bytes}, {binary_bytes_per_sec} ETA {eta}";
    ProgressBar::new(0).with_finish(ProgressFinish::AndClear).with_style(progress_style(template))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repr_digest_sha_256_is_found() {
        let digest = [7_u8; 32];
        let text = STANDARD.encode(digest);
        for field in [format!("sha-256=:{text}:"), format!("sha-512=:AAAA:, sha-256=:{text}:;x=1")] {
            assert_eq!(sha256_in(&field), Some(digest.to_vec()), "{field}");
        }
        for field in ["", "sha-256=AAAA", "sha-256=:AAAA:", "sha-512=:AAAA:", "sha-256=::"] {
            assert_eq!(sha256_in(field), None, "{field}");
        }
    }

    #[test]
    fn content_range_has_first_byte_and_total_length() {
        let headers = |text| HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static(text))]);
        assert_eq!(content_range(&headers("bytes 5-9/10")), Some((5, 10)));
        assert_eq!(content_range(&headers("bytes */10")), None);
    }
}
