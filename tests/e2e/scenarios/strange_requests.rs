//! Requests that nobody sends by accident: strange paths, queries, headers and bodies, made at random from scraps that
//! have broken servers before. Whatever comes, the answer is one of ours, soon, and nothing panics.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::harness::{Api, Cases, RawConnection, Reply, Stack, conversation, documented_operations};

/// Every run makes the same requests. Another seed makes others.
const SEED: u64 = 20_261_120;
const REQUESTS: usize = 800;
const HEADS: usize = 150;

/// Answers come in milliseconds; this is for a machine under heavy load.
const SOON: Duration = Duration::from_secs(5);

/// A long one is still shorter than what is refused before anybody looks at it.
const LONG: usize = 6_000;

const METHODS: [&str; 8] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];

const SEGMENTS: [&str; 26] = [
    "..",
    ".",
    "%2e%2e",
    "%2E",
    "..%2f..%2fetc%2fpasswd",
    "%2F",
    "%5c",
    "%00",
    "%0d%0aX-Injected:%20yes",
    "%ff",
    "%c0%af",
    "%f0%9f%92%a9",
    "%",
    "%z",
    "%zz",
    "%u0041",
    "~",
    "*",
    "null",
    "-1",
    "'%20OR%201=1--",
    "$%7Bjndi:x%7D",
    "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11",
    "0199F5A4-3C1E-7C52-9D0A-5B0F6B8F3A11",
    "{0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11}",
    "0199f5a43c1e7c529d0a5b0f6b8f3a11",
];

const QUERIES: [&str; 18] = [
    "limit=0",
    "limit=1",
    "limit=101",
    "limit=-1",
    "limit=%30",
    "limit=1&limit=2",
    "limit=9999999999999999999999",
    "limit",
    "cursor=",
    "cursor=.",
    "cursor=a.b.c",
    "cursor=%00",
    "cursor=%F0%9F%92%A9.k1.AAAA",
    "cursor=....",
    "&&&=&=",
    "%=%",
    "expires=1&key=k1&signature=AAAA",
    "bom=1&bom=0&expires=18446744073709551616",
];

const NAMES: [&str; 22] = [
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Content-Encoding",
    "Content-Type",
    "Cookie",
    "Forwarded",
    "Host",
    "Idempotency-Key",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "Origin",
    "Range",
    "Referer",
    "Traceparent",
    "Tracestate",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Http-Method-Override",
    "X-Request-Id",
];

const VALUES: [&str; 34] = [
    "",
    " ",
    "*",
    "*/*",
    "*/*;q=2",
    "application/json;q=0.0001",
    "application/json;q=\u{221e}",
    ";;;q=,,,",
    "text/html,,,,,",
    "application/json; charset=\"",
    "application/JSON+json+",
    "multipart/form-data",
    "gzip, gzip, br",
    "bytes=0-",
    "bytes=-0",
    "bytes=18446744073709551615-",
    "bytes=0-0,1-1,2-2",
    "bytes=5-1",
    "bytes=\u{661}-",
    "chars=0-1",
    "\"",
    "W/\"",
    "\"a\", \"b\"",
    "Bearer",
    "Bearer  ",
    "Bearer a b",
    "bearer \u{fc}ber-sixteen-characters",
    "Basic Og==",
    "localhost:99999",
    "[::1",
    "@:@:@",
    "00-00000000000000000000000000000000-0000000000000000-00",
    "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-zz",
    "Thu, 32 Foo 2026 25:61:61 GMT",
];

const BODIES: [&str; 14] = [
    "",
    "{",
    "[]",
    "null",
    "{}",
    "\u{feff}{}",
    "{\"kind\":\"axis\",\"kind\":\"axis\"}",
    "{\"kind\":\"axis\\u0000\"}",
    "\"\\ud800\"",
    "{\"external_id\":1e999,\"name\":[]}",
    "{\"messages\":{}}",
    "1e400",
    "{\"filters\":{\"from\":-0.0}}",
    "{\"a\":\"\u{0}\"}",
];

/// Heads that are no HTTP: some are refused by the parser, without a problem object, all of them at once.
const NO_HTTP: [&[u8]; 14] = [
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

/// Strange requests, one on each connection; then the service is asked a sane one.
pub async fn run(stack: &mut Stack) -> Result<()> {
    let document = stack.api_with(None)?.get("/openapi.json").await?.expect(200)?;
    let paths: Vec<String> =
        documented_operations(&document)?.into_iter().map(|operation| operation.path).collect();
    let mut random = Random(SEED);
    let mut cases = Cases::default();
    for number in 0..REQUESTS {
        let request = random.request(&paths, stack.bootstrap_key());
        let name =
            format!("request {number} {:?}", String::from_utf8_lossy(&request[..request.len().min(400)]));
        let answer = exchange(stack, &request).await;
        cases.check(name, answer.and_then(|reply| is_one_of_ours(&reply)));
    }
    for number in 0..HEADS {
        let head = random.spoiled(NO_HTTP[number % NO_HTTP.len()], number >= NO_HTTP.len());
        let name = format!("head {number} {:?}", String::from_utf8_lossy(&head));
        cases.check(name, is_answered_or_closed(stack, &head).await);
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

/// No failure of the service; and every refusal is a problem object (RFC 9457) with the request's id.
fn is_one_of_ours(reply: &Reply) -> Result<()> {
    ensure!(reply.status < 500, "{}: {}", reply.status, reply.text());
    ensure!(reply.headers.get("x-injected").is_none(), "a header of the client's: {:?}", reply.headers);
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
async fn is_answered_or_closed(stack: &Stack, head: &[u8]) -> Result<()> {
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

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number() % limit.max(1) as u64).unwrap_or_default()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }

    fn request(&mut self, paths: &[String], key: &str) -> Vec<u8> {
        let method = if self.one_in(3) { self.pick(&METHODS) } else { self.pick(&["GET", "POST"]) };
        let mut request = format!("{method} {} HTTP/1.1\r\n", self.target(paths)).into_bytes();
        if !self.one_in(20) {
            request.extend(b"Host: localhost\r\n");
        }
        if !self.one_in(5) {
            request.extend(format!("Authorization: Bearer {key}\r\n").bytes());
        }
        for _ in 0..self.below(6) {
            self.header(&mut request);
        }
        let body = if method == "GET" { String::new() } else { self.body() };
        if !body.is_empty() && self.one_in(4) {
            let size = body.len();
            request
                .extend(format!("Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n").bytes());
        } else {
            request.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).bytes());
        }
        request
    }

    fn target(&mut self, paths: &[String]) -> String {
        let mut path = paths[self.below(paths.len())].clone();
        while let Some((before, rest)) = path.split_once('{') {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            path = format!("{before}{}{after}", self.segment());
        }
        match self.below(10) {
            0 => path = format!("/{path}"),
            1 => path = format!("{path}/{}", self.segment()),
            2 => path = path.replacen("/v1", &format!("/{}/v1", self.segment()), 1),
            3 => path = path.to_uppercase(),
            4 => path = format!("{path}/"),
            _ => {}
        }
        // Braces are no part of an address.
        path = path.replace(['{', '}'], "");
        match self.below(3) {
            0 => path,
            1 => format!("{path}?{}", self.pick(&QUERIES)),
            _ => format!("{path}?{}&{}={}", self.pick(&QUERIES), self.segment(), self.segment())
                .replace(['{', '}'], ""),
        }
    }

    fn segment(&mut self) -> String {
        match self.below(8) {
            0 => "a".repeat(self.below(LONG)),
            1 => (0..self.below(40)).map(|_| format!("%{:02x}", self.below(256))).collect(),
            _ => self.pick(&SEGMENTS).to_owned(),
        }
    }

    fn header(&mut self, request: &mut Vec<u8>) {
        let name = self.pick(&NAMES);
        let times = if self.one_in(6) { 2 } else { 1 };
        for _ in 0..times {
            request.extend(format!("{name}: ").bytes());
            match self.below(4) {
                // Visible characters, spaces and what is not ASCII: all that a header may hold (RFC 9110, section 5.5).
                0 => (0..self.below(200)).for_each(|_| {
                    let byte = u8::try_from(self.below(256)).unwrap_or_default();
                    request.push(if byte < 0x20 || byte == 0x7F { b' ' } else { byte });
                }),
                1 => request.extend("x".repeat(self.below(LONG)).bytes()),
                _ => request.extend(self.pick(&VALUES).bytes()),
            }
            request.extend(b"\r\n");
        }
    }

    fn body(&mut self) -> String {
        match self.below(4) {
            0 => "[".repeat(self.below(20_000)),
            1 => format!("{{\"external_id\":\"{}\",\"name\":\"n\"}}", "x".repeat(self.below(3_000))),
            _ => self.pick(&BODIES).to_owned(),
        }
    }

    /// A head with some bytes of it changed; its end stays, so that nobody waits for it.
    fn spoiled(&mut self, head: &[u8], change: bool) -> Vec<u8> {
        let mut head = head.to_vec();
        let end = head.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(head.len());
        for _ in 0..if change { 1 + self.below(4) } else { 0 } {
            let (at, byte) = (self.below(end), u8::try_from(self.below(256)).unwrap_or_default());
            head[at] = byte;
        }
        head
    }
}
