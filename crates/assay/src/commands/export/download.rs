//! Fetching the file: a connection that breaks is taken up again where it broke (RFC 9110, section 14), and what came is
//! compared with what the service says of it.

use anyhow::{Context, Result, anyhow, bail, ensure};
use assay_contracts::export::Export;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};

use super::sink::{Receipt, Sink};
use super::wait::read;
use crate::api::{Api, Problem, client_without_key, is_temporary, pauses};

/// Attempts without a single byte in between.
const ATTEMPTS: u16 = 8;

/// What the file was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// The length and the SHA-256 that the service tells.
    Sha256,
    /// The length alone: the service tells no checksum.
    LengthOnly,
}

/// What the service says of the file.
struct Announced {
    length: u64,
    tag: Option<HeaderValue>,
    digest: Option<Vec<u8>>,
}

/// Why an attempt did not bring the file to its end.
enum Broken {
    /// The next attempt may.
    Connection(anyhow::Error),
    /// The address is too old.
    Address,
    /// No attempt will.
    ForGood(anyhow::Error),
}

impl From<anyhow::Error> for Broken {
    fn from(error: anyhow::Error) -> Self {
        Self::ForGood(error)
    }
}

/// Writes the file of a complete export into `sink`, checks it and gives it its name.
pub async fn download(api: &Api, export: &Export, mut sink: Sink) -> Result<(Receipt, Checked)> {
    let id = export.id.to_string();
    let mut address = address_of(export)?;
    let client = client_without_key()?;
    let bar = progress_bar();
    let mut known = None;
    let mut pauses_left = pauses(ATTEMPTS);
    let announced = loop {
        let before = sink.bytes();
        let problem = match fetch(&client, &address, &mut known, &mut sink, &bar).await {
            Ok(announced) => break announced,
            Err(Broken::ForGood(error)) => return Err(error),
            Err(Broken::Connection(error)) => error,
            Err(Broken::Address) => {
                address = address_of(&read(api, &id).await?)?;
                anyhow!("the download address is refused, a fresh one, too: is the service's clock right?")
            }
        };
        if sink.bytes() > before {
            pauses_left = pauses(ATTEMPTS);
        }
        let pause =
            pauses_left.next().ok_or(problem).context("the file cannot be fetched: try again later")?;
        tokio::time::sleep(pause).await;
    };
    drop(bar);
    let receipt = sink.receipt();
    ensure!(
        receipt.bytes == announced.length,
        "the file has {} bytes instead of {}: fetch it again",
        receipt.bytes,
        announced.length
    );
    let checked = match announced.digest {
        Some(digest) => {
            ensure!(
                digest == receipt.digest,
                "the file was damaged on its way (its SHA-256 is another one): fetch it again"
            );
            Checked::Sha256
        }
        None => Checked::LengthOnly,
    };
    sink.publish()?;
    Ok((receipt, checked))
}

/// One attempt: the rest of the file, or all of it when it is another one than before.
async fn fetch(
    client: &Client,
    address: &str,
    known: &mut Option<HeaderValue>,
    sink: &mut Sink,
    bar: &ProgressBar,
) -> Result<Announced, Broken> {
    let mut request = client.get(address);
    if let (Some(tag), true) = (&*known, sink.bytes() > 0) {
        request = request.header(RANGE, format!("bytes={}-", sink.bytes())).header(IF_RANGE, tag);
    }
    let broken = |error: reqwest::Error| {
        Broken::Connection(anyhow::Error::new(error.without_url()).context("the connection broke"))
    };
    let response = check(request.send().await.map_err(broken)?).await?;
    let announced = announced(&response, sink)?;
    known.clone_from(&announced.tag);
    bar.set_length(announced.length);
    let mut content = response.bytes_stream();
    while let Some(piece) = content.next().await {
        match piece.map_err(broken) {
            Ok(piece) => sink.write(&piece)?,
            // Everything has come; only the end of the answer was lost.
            Err(_) if sink.bytes() == announced.length => break,
            Err(error) => return Err(error),
        }
        bar.set_position(sink.bytes());
    }
    Ok(announced)
}

/// The answer, when it brings the file or a part of it.
async fn check(response: Response) -> Result<Response, Broken> {
    let status = response.status();
    if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return Ok(response);
    }
    let problem = Problem::read(response).await;
    if problem.is("invalid-signature") {
        return Err(Broken::Address);
    }
    let error = anyhow!("the file cannot be fetched: {}", problem.describe());
    Err(if is_temporary(status) { Broken::Connection(error) } else { Broken::ForGood(error) })
}

/// Reads the headers, and makes the sink stand where the body begins.
fn announced(response: &Response, sink: &mut Sink) -> Result<Announced, Broken> {
    let headers = response.headers();
    let length = if response.status() == StatusCode::PARTIAL_CONTENT {
        let (first, length) = content_range(headers).context("the answer's Content-Range cannot be read")?;
        ensure_begins_at(first, sink.bytes())?;
        length
    } else {
        if sink.bytes() > 0 {
            sink.begin_anew()?;
        }
        response.content_length().context("the answer has no length")?
    };
    let digest = headers.get("repr-digest").and_then(|value| sha256_in(value.to_str().ok()?));
    Ok(Announced { length, tag: headers.get(ETAG).cloned(), digest })
}

fn ensure_begins_at(first: u64, expected: u64) -> Result<()> {
    if first != expected {
        bail!("asked for the file from byte {expected} on, it came from byte {first} on: fetch it again");
    }
    Ok(())
}

/// First byte and length of the whole, of `bytes 5-9/10`.
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

/// What a person at a terminal sees; nothing elsewhere.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:30} {percent:>3}% of {binary_total_bytes}, {binary_bytes_per_sec} ETA {eta}",
    );
    let bar = ProgressBar::new(0).with_finish(ProgressFinish::AndClear);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sha_256_is_found_among_digests() {
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
    fn a_range_tells_its_beginning_and_the_whole_length() {
        let headers = |text| HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static(text))]);
        assert_eq!(content_range(&headers("bytes 5-9/10")), Some((5, 10)));
        assert_eq!(content_range(&headers("bytes */10")), None);
    }
}
