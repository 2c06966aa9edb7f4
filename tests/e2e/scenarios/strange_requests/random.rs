//! Seeded generator of random requests.

use assay_testkit::Rng;

/// Long, but below the limit of the HTTP parser.
const LONG: usize = 6_000;

const METHODS: [&str; 8] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];

const SEGMENTS: &str = "\
    .. . %2e%2e %2E ..%2f..%2fetc%2fpasswd %2F %5c %00 %0d%0aX-Injected:%20yes %ff %c0%af %f0%9f%92%a9 % \
    %z %zz %u0041 ~ * null -1 '%20OR%201=1-- $%7Bjndi:x%7D 0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11 \
    0199F5A4-3C1E-7C52-9D0A-5B0F6B8F3A11 {0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11} \
    0199f5a43c1e7c529d0a5b0f6b8f3a11";

const QUERIES: &str = "\
    limit=0 limit=1 limit=101 limit=-1 limit=%30 limit=1&limit=2 limit=9999999999999999999999 limit \
    cursor= cursor=. cursor=a.b.c cursor=%00 cursor=%F0%9F%92%A9.k1.AAAA cursor=.... &&&=&= %=% \
    expires=1&key=k1&signature=AAAA bom=1&bom=0&expires=18446744073709551616";

const NAMES: &str = "\
    Accept Accept-Encoding Accept-Language Authorization Content-Encoding Content-Type Cookie Forwarded \
    Idempotency-Key If-Modified-Since If-None-Match If-Range Origin Range Referer Traceparent Tracestate \
    X-Forwarded-For X-Forwarded-Host X-Http-Method-Override X-Request-Id";

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

/// Generator of requests.
pub struct Generator(Rng);

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// A syntactically valid request with one `Host`, which the HTTP parser accepts.
    pub fn request(&mut self, paths: &[String], key: &str) -> Vec<u8> {
        let method = if self.0.one_in(3) { self.0.one_of(&METHODS) } else { self.0.one_of(&["GET", "POST"]) };
        let mut request = format!("{method} {} HTTP/1.1\r\n", self.target(paths)).into_bytes();
        let host = if self.0.one_in(5) { self.0.one_of(&VALUES) } else { "localhost" };
        request.extend(format!("Host: {host}\r\n").bytes());
        if !self.0.one_in(5) {
            request.extend(format!("Authorization: Bearer {key}\r\n").bytes());
        }
        for _ in 0..self.0.below(6) {
            self.header(&mut request);
        }
        let body = if method == "GET" { String::new() } else { self.body() };
        if !body.is_empty() && self.0.one_in(4) {
            let size = body.len();
            request
                .extend(format!("Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n").bytes());
        } else {
            request.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).bytes());
        }
        request
    }

    /// The head with one to four bytes changed, but not its end, so that the server does not wait for more.
    pub fn mutated(&mut self, head: &[u8]) -> Vec<u8> {
        let mut head = head.to_vec();
        let end = head.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(head.len());
        for _ in 0..=self.0.below(4) {
            let (at, byte) = (self.0.below(end), u8::try_from(self.0.below(256)).unwrap_or_default());
            head[at] = byte;
        }
        head
    }

    fn target(&mut self, paths: &[String]) -> String {
        let mut path = paths[self.0.below(paths.len())].clone();
        while let Some((before, rest)) = path.split_once('{') {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            path = format!("{before}{}{after}", self.segment());
        }
        match self.0.below(10) {
            0 => path = format!("/{path}"),
            1 => path = format!("{path}/{}", self.segment()),
            2 => path = path.replacen("/v1", &format!("/{}/v1", self.segment()), 1),
            3 => path = path.to_uppercase(),
            4 => path = format!("{path}/"),
            _ => {}
        }
        // Braces are not valid in a URL.
        path = path.replace(['{', '}'], "");
        match self.0.below(3) {
            0 => path,
            1 => format!("{path}?{}", self.word(QUERIES)),
            _ => format!("{path}?{}&{}={}", self.word(QUERIES), self.segment(), self.segment())
                .replace(['{', '}'], ""),
        }
    }

    /// One of the words of a text.
    fn word(&mut self, words: &'static str) -> &'static str {
        let words: Vec<&str> = words.split(' ').collect();
        self.0.one_of(&words)
    }

    fn segment(&mut self) -> String {
        match self.0.below(8) {
            0 => "a".repeat(self.0.below(LONG)),
            1 => (0..self.0.below(40)).map(|_| format!("%{:02x}", self.0.below(256))).collect(),
            _ => self.word(SEGMENTS).to_owned(),
        }
    }

    fn header(&mut self, request: &mut Vec<u8>) {
        let name = self.word(NAMES);
        let times = if self.0.one_in(6) { 2 } else { 1 };
        for _ in 0..times {
            request.extend(format!("{name}: ").bytes());
            match self.0.below(4) {
                // Visible characters, spaces and non-ASCII bytes: everything a header may hold (RFC 9110, section 5.5).
                0 => (0..self.0.below(200)).for_each(|_| {
                    let byte = u8::try_from(self.0.below(256)).unwrap_or_default();
                    request.push(if byte < 0x20 || byte == 0x7F { b' ' } else { byte });
                }),
                1 => request.extend("x".repeat(self.0.below(LONG)).bytes()),
                _ => request.extend(self.0.one_of(&VALUES).bytes()),
            }
            request.extend(b"\r\n");
        }
    }

    fn body(&mut self) -> String {
        match self.0.below(4) {
            0 => "[".repeat(self.0.below(20_000)),
            1 => format!("{{\"external_id\":\"{}\",\"name\":\"n\"}}", "x".repeat(self.0.below(3_000))),
            _ => self.0.one_of(&BODIES).to_owned(),
        }
    }
}
