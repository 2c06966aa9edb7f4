//! `GET /v1/evaluations/exports/{id}/download`, and the signed URL that it redirects to.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::harness::{Api, Cases, Reply, Stack, conversation, text};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A complete export, its address, and clients with a key and without.
struct Download {
    api: Api,
    without_key: Api,
    path: String,
    address: String,
    file: Vec<u8>,
}

/// The redirect and the file.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let ticket = api.import(&conversation("download")).await?;
    api.evaluation(&ticket).await?;
    let export = api.export(&json!({"kind": "axis"})).await?;
    let download = Download {
        path: format!("/v1/evaluations/exports/{}/download", text(&export, "id")?),
        address: text(&export, "download_url")?,
        file: api.file(&export).await?,
        without_key: stack.api_with(None)?,
        api,
    };
    ensure!(download.address.starts_with(stack.base_url()), "it leads elsewhere: {}", download.address);
    ensure!(String::from_utf8_lossy(&download.file).contains(&ticket), "the ticket is not in the file");
    let mut cases = Cases::default();
    cases.check("negotiation", download.negotiation().await);
    cases.check("the file", download.whole_file().await);
    cases.check("HEAD", download.head().await);
    cases.check("forwarded headers", download.forwarded_headers().await);
    cases.check("byte-order mark", download.with_byte_order_mark().await);
    cases.check("not ready", not_ready(&download.api).await);
    cases.finish()
}

impl Download {
    async fn negotiation(&self) -> Result<()> {
        for (accept, is_json_expected) in [
            (None, false),
            (Some("*/*"), false),
            (Some("text/csv"), false),
            (Some("application/json"), true),
            (Some("application/json; charset=utf-8"), true),
            (Some("application/json, text/plain, */*"), true),
            (Some("application/json;q=0.5, text/csv;q=0.4"), true),
            (Some("text/html, application/json;q=0.9"), false),
            (Some("application/json;q=0"), false),
        ] {
            let mut request = self.api.request(Method::GET, &self.path);
            if let Some(accept) = accept {
                request = request.header("accept", accept);
            }
            let reply = self.api.reply(request).await?;
            ensure!(reply.header("cache-control") == "no-store", "{accept:?}: {:?}", reply.headers);
            let address = if is_json_expected {
                let body = reply.expect(200).with_context(|| format!("{accept:?}"))?;
                ensure!(body.as_object().is_some_and(|body| body.len() == 1), "{body}");
                text(&body, "download_url")?
            } else {
                reply.expect_status(302).with_context(|| format!("{accept:?}"))?;
                reply.header("location").to_owned()
            };
            let file = self.get(&address, &[]).await?;
            ensure!(file.status == 200 && file.body == self.file, "{accept:?}: another file at {address}");
        }
        Ok(())
    }

    /// Without an API key.
    async fn get(&self, address: &str, headers: &[(&str, &str)]) -> Result<Reply> {
        let request = self.without_key.request(Method::GET, address);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.without_key.reply(request).await
    }

    async fn whole_file(&self) -> Result<()> {
        let reply = self.get(&self.address, &[]).await?;
        reply.expect_status(200)?;
        let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(&self.file)));
        ensure!(reply.header("repr-digest") == digest, "Repr-Digest: {:?}", reply.header("repr-digest"));
        self.expect_headers(&reply, self.file.len())
    }

    fn expect_headers(&self, reply: &Reply, length: usize) -> Result<()> {
        ensure!(reply.header("content-type") == "text/csv; charset=utf-8", "{:?}", reply.headers);
        ensure!(reply.header("content-length") == length.to_string(), "{:?}", reply.headers);
        ensure!(reply.header("accept-ranges") == "bytes", "{:?}", reply.headers);
        let disposition = reply.header("content-disposition");
        let named = disposition.starts_with("attachment; filename=\"") && disposition.ends_with(".csv\"");
        ensure!(named, "Content-Disposition: {disposition}");
        let etag = reply.header("etag");
        ensure!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 2, "ETag: {etag}");
        Ok(())
    }

    async fn head(&self) -> Result<()> {
        let reply = self.without_key.reply(self.without_key.request(Method::HEAD, &self.address)).await?;
        reply.expect_status(200)?;
        ensure!(reply.body.is_empty(), "a body: {}", reply.text());
        self.expect_headers(&reply, self.file.len())
    }

    /// One case for each header: the gateway forwards them, and `crates/export` tests what they mean.
    async fn forwarded_headers(&self) -> Result<()> {
        let length = self.file.len();
        let part = self.get(&self.address, &[("range", "bytes=-7")]).await?;
        part.expect_status(206)?;
        let expected = format!("bytes {}-{}/{length}", length - 7, length - 1);
        ensure!(part.header("content-range") == expected, "{:?}", part.headers);
        ensure!(part.body == self.file[length - 7..], "another part: {:?}", part.body);
        let beyond = self.get(&self.address, &[("range", &format!("bytes={length}-"))]).await?;
        beyond.problem(416, "range-not-satisfiable")?;
        ensure!(beyond.header("content-range") == format!("bytes */{length}"), "{:?}", beyond.headers);
        let changed = [("range", "bytes=0-3"), ("if-range", "\"another\"")];
        self.get(&self.address, &changed).await?.expect_status(200).context("if-range")?;
        let etag = part.header("etag");
        let known = self.get(&self.address, &[("if-none-match", etag)]).await?;
        ensure!(known.status == 304 && known.body.is_empty(), "{}", known.status);
        ensure!(known.header("etag") == etag, "304 without its ETag");
        Ok(())
    }

    async fn with_byte_order_mark(&self) -> Result<()> {
        let address = format!("{}&bom=1", self.address);
        let marked = [BYTE_ORDER_MARK, &self.file].concat();
        let reply = self.get(&address, &[]).await?;
        reply.expect_status(200)?;
        self.expect_headers(&reply, marked.len())?;
        ensure!(reply.body == marked, "no mark in front, or another file");
        Ok(())
    }
}

/// Right after its creation an export is complete or the response has `Retry-After`.
async fn not_ready(api: &Api) -> Result<()> {
    for _ in 0..20 {
        let export = api.post("/v1/evaluations/exports", &json!({"kind": "axis"})).await?.expect(201)?;
        let id = text(&export, "id")?;
        let reply = api.get(&format!("/v1/evaluations/exports/{id}/download")).await?;
        if reply.status != 302 {
            reply.problem(409, "export-not-ready")?;
            ensure!(reply.header("retry-after").parse::<u32>().is_ok(), "Retry-After: {:?}", reply.headers);
            return Ok(());
        }
    }
    anyhow::bail!("twenty exports were all complete before they could be asked for")
}
