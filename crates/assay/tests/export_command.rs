//! `assay export` against a faulty service: broken connections, expired URLs, damaged files. A stub replaces the
//! service.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use assay_testkit::process::Signal;
use assay_testkit::stub_server::{Request, StubServer, respond};
use assay_testkit::wait::wait_for;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ID: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";
const FILE: &[u8] = b"ticket_id,subject\r\n1,\"two\r\nlines\"\r\n2,plain\r\n";
const TAG: &str = "\"one\"";

/// A response of the stub to a request for the file.
#[derive(Clone)]
enum Answer {
    /// The requested part of the file: all of it, or the rest after what an earlier request got.
    Whole,
    /// Closes the connection after this many bytes of the requested part.
    CutAfter(usize),
    /// A different file under the same URL.
    Replaced,
    /// Corrupted bytes with the original digest.
    Damaged,
    /// Without `Repr-Digest`.
    WithoutDigest,
    /// A problem.
    Problem(u16, &'static str),
}

struct StubService {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    _server: StubServer,
}

impl StubService {
    fn new(statuses: &[Value], answers: &[Answer]) -> Self {
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let log = Arc::clone(&requests);
        let (statuses, answers) = (Mutex::new(statuses.to_vec()), Mutex::new(answers.to_vec()));
        let server = StubServer::start(move |request, connection| {
            log.lock().unwrap().push(request.clone());
            if request.line.contains("/file") {
                return send_file(connection, &next(&answers), &request);
            }
            let (status, state) = if request.line.starts_with("POST") {
                (201, json!({"status": "pending"}))
            } else {
                (200, next(&statuses))
            };
            let base = format!("http://{}", connection.local_addr()?);
            let head = format!("{status} x\r\nContent-Type: application/json");
            respond(connection, &head, export(&base, &state).to_string())
        })
        .unwrap();
        Self { url: format!("http://{}", server.address()), requests, _server: server }
    }

    fn export(&self, folder: &Path, options: &[&str]) -> Output {
        self.command(folder, options).output().unwrap()
    }

    fn command(&self, folder: &Path, options: &[&str]) -> Command {
        let mut command =
            assay(folder, &["export", "--kind", "axis", "--url", &self.url, "--key", "some-key"]);
        command.args(options);
        command
    }

    /// The requests for the file.
    fn downloads(&self) -> Vec<Request> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.line.contains("/file")).cloned().collect()
    }
}

fn assay(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.args(arguments).current_dir(folder);
    command
}

/// The next step of a script, whose last step repeats.
fn next<T: Clone>(script: &Mutex<Vec<T>>) -> T {
    let mut script = script.lock().unwrap();
    if script.len() > 1 { script.remove(0) } else { script[0].clone() }
}

/// `state` has the members that differ, and `gone` when the file is no longer kept.
fn export(base: &str, state: &Value) -> Value {
    let mut export =
        json!({"id": ID, "kind": "axis", "format": "csv", "filters": {}, "created_at": 1, "updated_at": 1});
    export.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
    if state["status"] == "complete" && state.get("gone").is_none() {
        export["download_url"] = json!(format!("{base}/file?signature=x"));
    }
    export
}

fn complete() -> Value {
    json!({"status": "complete"})
}

fn send_file(connection: &mut TcpStream, answer: &Answer, request: &Request) -> Result<()> {
    let headers = |tag: &str, file: &[u8]| {
        let digest = STANDARD.encode(Sha256::digest(file));
        format!("Content-Type: text/csv\r\nETag: {tag}\r\nRepr-Digest: sha-256=:{digest}:")
    };
    match answer {
        Answer::Whole => send_range(connection, request, FILE, &headers(TAG, FILE), FILE.len()),
        Answer::CutAfter(bytes) => send_range(connection, request, FILE, &headers(TAG, FILE), *bytes),
        Answer::Damaged => {
            let mut damaged = FILE.to_vec();
            damaged[20] ^= 1;
            send_range(connection, request, &damaged, &headers(TAG, FILE), FILE.len())
        }
        Answer::Replaced => {
            let other = b"ticket_id,subject\r\n3,other\r\n";
            respond(connection, &format!("200 OK\r\n{}", headers("\"two\"", other)), other)
        }
        Answer::WithoutDigest => {
            respond(connection, &format!("200 OK\r\nContent-Type: text/csv\r\nETag: {TAG}"), FILE)
        }
        Answer::Problem(status, code) => {
            let body = json!({"status": status, "code": code, "detail": "as the test wants it"}).to_string();
            respond(connection, &format!("{status} x\r\nContent-Type: application/problem+json"), body)
        }
    }
}

/// The headers promise the rest of the file; at most `max_bytes` of it are sent.
fn send_range(
    connection: &mut TcpStream,
    request: &Request,
    file: &[u8],
    headers: &str,
    max_bytes: usize,
) -> Result<()> {
    let range = request.headers.get("range").map(|range| range.to_str().unwrap());
    let first = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
    let first: usize = first.map_or(0, |first| first.parse().unwrap());
    let status = if first > 0 {
        format!("206 Partial Content\r\nContent-Range: bytes {first}-{}/{}", file.len() - 1, file.len())
    } else {
        "200 OK".to_owned()
    };
    let rest = &file[first..];
    let length = rest.len();
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes())?;
    connection.write_all(&rest[..length.min(max_bytes)])?;
    Ok(())
}

#[track_caller]
fn assert_exit(output: &Output, code: i32, messages: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    for part in messages {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[track_caller]
fn assert_nothing_left(folder: &Path) {
    let names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn broken_download_is_resumed() {
    let stub = StubService::new(&[complete()], &[Answer::CutAfter(5), Answer::CutAfter(9), Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    assert_exit(&stub.export(folder.path(), &[]), 0, &["2 rows", "SHA-256 verified", "assay-axis.csv"]);
    assert_eq!(std::fs::read(folder.path().join("assay-axis.csv")).unwrap(), FILE);
    let downloads = stub.downloads();
    assert_eq!(downloads.len(), 3, "{downloads:?}");
    for (Request { headers, .. }, begin) in downloads.iter().zip([0, 5, 14]) {
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
        let range = format!("bytes={begin}-");
        assert_eq!(header("range"), (begin > 0).then_some(range.as_str()));
        assert_eq!(header("if-range"), (begin > 0).then_some(TAG));
        assert_eq!(header("authorization"), None, "the key was sent to the file host");
    }
}

#[test]
fn changed_file_is_downloaded_again() {
    let stub = StubService::new(&[complete()], &[Answer::CutAfter(30), Answer::Replaced]);
    let folder = tempfile::tempdir().unwrap();
    assert_exit(&stub.export(folder.path(), &["--out", "x.csv"]), 0, &["1 row,"]);
    assert_eq!(std::fs::read(folder.path().join("x.csv")).unwrap(), b"ticket_id,subject\r\n3,other\r\n");
    // Standard output cannot be rewound.
    let stub = StubService::new(&[complete()], &[Answer::CutAfter(30), Answer::Replaced]);
    assert_exit(&stub.export(folder.path(), &["--out", "-"]), 1, &["cannot be taken back"]);
}

#[test]
fn damaged_file_is_not_published() {
    let stub = StubService::new(&[complete()], &[Answer::Damaged]);
    let folder = tempfile::tempdir().unwrap();
    assert_exit(&stub.export(folder.path(), &[]), 1, &["damaged", "SHA-256"]);
    assert_nothing_left(folder.path());
}

#[test]
fn file_without_checksum_is_reported_as_not_verified() {
    let stub = StubService::new(&[complete()], &[Answer::WithoutDigest]);
    let folder = tempfile::tempdir().unwrap();
    let output = stub.export(folder.path(), &["--out", "-"]);
    assert_exit(&output, 0, &["not verified: no checksum", "standard output"]);
    assert_eq!(output.stdout, FILE);
    assert_nothing_left(folder.path());
}

#[test]
fn expired_download_url_is_refreshed() {
    let stub = StubService::new(&[complete()], &[Answer::Problem(403, "invalid-signature"), Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    assert_exit(&stub.export(folder.path(), &[]), 0, &["2 rows"]);
}

#[test]
fn failed_download_reports_reason_and_leaves_no_file() {
    let failed = json!({"status": "failed", "error_message": "the store was full"});
    let gone = json!({"status": "complete", "gone": true});
    let cases = [
        (failed, Answer::Whole, vec![ID, "failed", "the store was full"]),
        (gone, Answer::Whole, vec!["no longer kept", "create the export again"]),
        (complete(), Answer::Problem(404, "export-file-gone"), vec!["as the test wants it", "404"]),
    ];
    for (status, answer, messages) in cases {
        let stub = StubService::new(&[status], &[answer]);
        let folder = tempfile::tempdir().unwrap();
        assert_exit(&stub.export(folder.path(), &[]), 1, &messages);
        assert_nothing_left(folder.path());
    }
}

#[test]
fn timed_out_export_can_be_fetched_later() {
    let stub = StubService::new(&[json!({"status": "running"})], &[Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    let output = stub.export(folder.path(), &["--timeout", "1"]);
    assert_exit(
        &output,
        4,
        &["not complete after 1 s", &format!("assay export --id {ID} --out assay-axis.csv")],
    );
    let stub = StubService::new(&[complete()], &[Answer::Whole]);
    let arguments = ["export", "--id", ID, "--url", &stub.url, "--key", "some-key", "--out", "later.csv"];
    let output = assay(folder.path(), &arguments).output().unwrap();
    assert_exit(&output, 0, &["2 rows", "later.csv"]);
}

#[test]
fn existing_file_is_kept_without_force() {
    let stub = StubService::new(&[complete()], &[Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("assay-axis.csv");
    std::fs::write(&path, "mine").unwrap();
    assert_exit(&stub.export(folder.path(), &[]), 1, &["assay-axis.csv exists", "--force"]);
    assert!(stub.requests.lock().unwrap().is_empty(), "an export was created for nothing");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    assert_exit(&stub.export(folder.path(), &["--force"]), 0, &[]);
    assert_eq!(std::fs::read(&path).unwrap(), FILE);
    let missing = stub.export(folder.path(), &["--out", "nowhere/x.csv"]);
    assert_exit(&missing, 1, &["there is no folder nowhere"]);
}

#[test]
fn interrupted_command_says_how_to_resume_and_leaves_no_file() {
    let stub = StubService::new(&[json!({"status": "pending"})], &[Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    let child = stub.command(folder.path(), &[]).stderr(Stdio::piped()).spawn().unwrap();
    // The export is created and its status is read again and again.
    wait_for("two requests", Duration::from_secs(30), || {
        Ok((stub.requests.lock().unwrap().len() > 1).then_some(()))
    })
    .unwrap();
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_exit(&output, 130, &["interrupted: nothing was written", &format!("assay export --id {ID}")]);
    assert_nothing_left(folder.path());
}

#[test]
fn contradictory_arguments_are_refused() {
    let stub = StubService::new(&[complete()], &[Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    let reversed = stub.export(folder.path(), &["--from", "2026-02-01", "--to", "2026-01-01"]);
    assert_exit(&reversed, 2, &["--from 2026-02-01", "exchange"]);
    assert_exit(&stub.export(folder.path(), &["--from", "yesterday"]), 2, &["--from", "2026-01-31"]);
    assert_exit(&stub.export(folder.path(), &["--id", ID]), 2, &["--kind"]);
    // Without --kind and --id the command would run the role.
    for option in [&["--timeout", "5"][..], &["--force"], &["--url", "http://127.0.0.1:9", "--key", "k"]] {
        let arguments = [&["export"][..], option].concat();
        let output = assay(folder.path(), &arguments).output().unwrap();
        assert_exit(&output, 2, &["--kind"]);
    }
    assert!(stub.requests.lock().unwrap().is_empty());
}
