//! Random hostile requests: paths, queries, headers and bodies from fragments that have broken servers before. Every
//! response is well-formed and fast, and nothing panics.

mod random;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::random::Generator;
use crate::harness::{Api, Cases, RawConnection, Reply, Stack, conversation, documented_operations};

/// The same requests in every run.
const SEED: u64 = 20_261_120;
const REQUESTS: usize = 800;
const HEADS: usize = 150;

/// Responses take milliseconds; this is for a machine under heavy load.
const SOON: Duration = Duration::from_secs(5);

/// Invalid HTTP heads: some are refused by the parser, without a problem object.
const INVALID_HEADS: [&[u8]; 16] = [
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /healthz\r\n\r\n",
    b"GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /healthz HTTP/1.2\r\nHost: a\r\n\r\n",
    b"GET /healthz HTTP/3.0\r\nHost: a\r\n\r\n",
    b"GET /health\x00z HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /health\xffz HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\n: z\r\n\r\n",
    b"POST /v1/agents HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/agents HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"POST /v1/agents HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
];

/// Sends hostile requests, one per connection, then a valid one.
pub async fn run(stack: &Stack) -> Result<()> {
    let document = stack.api_with(None)?.get("/openapi.json").await?.expect(200)?;
    let paths: Vec<String> =
        documented_operations(&document)?.into_iter().map(|operation| operation.path).collect();
    let mut random = Generator::new(SEED);
    let mut cases = Cases::default();
    for number in 0..REQUESTS {
        let request = random.request(&paths, stack.key());
        let name =
            format!("request {number} {:?}", String::from_utf8_lossy(&request[..request.len().min(200)]));
        let answer = exchange(stack, &request).await;
        cases.check(name, answer.and_then(|reply| expect_valid_response(&reply)));
    }
    for number in 0..HEADS {
        // Each head as it is, then again and again with changed bytes.
        let head = INVALID_HEADS[number % INVALID_HEADS.len()];
        let head = if number < INVALID_HEADS.len() { head.to_vec() } else { random.mutated(head) };
        let name = format!("head {number} {:?}", String::from_utf8_lossy(&head));
        cases.check(name, expect_answered_or_closed(stack, &head).await);
    }
    cases.check("afterwards", afterwards(&stack.api()?).await);
    let logs = stack.logs()?;
    let panics: Vec<&str> = logs.lines().filter(|line| line.contains("panicked")).collect();
    ensure!(panics.is_empty(), "panics: {panics:?}");
    cases.finish()
}

async fn exchange(stack: &Stack, request: &[u8]) -> Result<Reply> {
    let began = Instant::now();
    let exchanged = async {
        let mut connection = RawConnection::open(stack.base_url()).await?;
        connection.send(request).await?;
        connection.reply().await
    };
    let reply = tokio::time::timeout(SOON, exchanged).await.context("no answer")??;
    ensure!(began.elapsed() < SOON, "an answer after {:?}", began.elapsed());
    Ok(reply)
}

/// Not a server error; and every refusal is a problem object (RFC 9457) with the request's id.
fn expect_valid_response(reply: &Reply) -> Result<()> {
    ensure!(reply.status < 500, "{}: {}", reply.status, reply.text());
    ensure!(reply.headers.get("x-injected").is_none(), "an injected header: {:?}", reply.headers);
    let request_id = reply.header("x-request-id");
    ensure!(!request_id.is_empty(), "no request id: {} {:?}", reply.status, reply.headers);
    if reply.status < 400 {
        return Ok(());
    }
    let problem: Value =
        serde_json::from_slice(&reply.body).with_context(|| format!("{}: {}", reply.status, reply.text()))?;
    let code = problem["code"].as_str().context("no code")?;
    reply.problem(reply.status, code)?;
    Ok(())
}

/// The parser may close the connection, or answer without a problem object; it may not wait for more.
async fn expect_answered_or_closed(stack: &Stack, head: &[u8]) -> Result<()> {
    let began = Instant::now();
    let mut connection = RawConnection::open(stack.base_url()).await?;
    connection.send(head).await?;
    let Ok(reply) = tokio::time::timeout(SOON, connection.reply()).await.context("no answer")? else {
        return Ok(());
    };
    ensure!(reply.status < 500 && began.elapsed() < SOON, "{}: {}", reply.status, reply.text());
    Ok(())
}

async fn afterwards(api: &Api) -> Result<()> {
    api.import(&conversation("after-strange-requests")).await?;
    api.get("/v1/evaluations/exports").await?.expect(200).map(drop)
}
