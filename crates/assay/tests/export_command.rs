//! `assay export` against a faulty service: broken connections, expired URLs, damaged files. A stub replaces the
//! service, with one connection per request.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_testkit::process::Signal;
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

/// The received requests: the first line of each, and its headers in lower case.
type Requests = Arc<Mutex<Vec<(String, String)>>>;

struct StubService {
    url: String,
    requests: Requests,
}

impl StubService {
    fn new(statuses: &[Value], answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Requests::default();
        let (mut statuses, mut answers) = (statuses.to_vec(), answers.to_vec());
        let (base, log) = (url.clone(), Arc::clone(&requests));
        // Ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let (line, headers) = read_request(&stream);
                log.lock().unwrap().push((line.clone(), headers.clone()));
                if line.contains("/file") {
                    let answer = next(&mut answers);
                    send_file(stream, &answer, &headers);
                } else {
                    let state = if line.starts_with("POST") {
                        json!({"status": "pending"})
                    } else {
                        next(&mut statuses)
                    };
                    let status = if line.starts_with("POST") { 201 } else { 200 };
                    send(
                        stream,
                        status,
                        "application/json",
                        "",
                        export(&base, &state).to_string().as_bytes(),
                    );
                }
            }
        });
        Self { url, requests }
    }

    fn export(&self, folder: &std::path::Path, more: &[&str]) -> Output {
        self.command(folder, more).output().unwrap()
    }

    fn command(&self, folder: &std::path::Path, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.args(["export", "--kind", "axis", "--url", &self.url, "--key", "some-key"]);
        command.args(more).current_dir(folder);
        command
    }

    /// The requests for the file.
    fn downloads(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|(line, _)| line.contains("/file"))
            .map(|(_, headers)| headers.clone())
            .collect()
    }
}

fn next<T: Clone>(script: &mut Vec<T>) -> T {
    if script.len() > 1 { script.remove(0) } else { script[0].clone() }
}

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

fn read_request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let headers = lines[1..].join("\n").to_lowercase();
    let length = headers
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse().unwrap());
    reader.read_exact(&mut vec![0; length]).unwrap();
    (lines[0].clone(), headers)
}

fn send_file(stream: TcpStream, answer: &Answer, headers: &str) {
    let digest = format!("Repr-Digest: sha-256=:{}:\r\n", STANDARD.encode(Sha256::digest(FILE)));
    let tagged = |tag: &str, digest: &str| format!("ETag: {tag}\r\n{digest}");
    match answer {
        Answer::Whole => send_range(stream, headers, FILE, &tagged(TAG, &digest), FILE.len()),
        Answer::CutAfter(bytes) => send_range(stream, headers, FILE, &tagged(TAG, &digest), *bytes),
        Answer::Damaged => {
            let mut damaged = FILE.to_vec();
            damaged[20] ^= 1;
            send_range(stream, headers, &damaged, &tagged(TAG, &digest), FILE.len());
        }
        Answer::Replaced => {
            let other = b"ticket_id,subject\r\n3,other\r\n";
            let digest = format!("Repr-Digest: sha-256=:{}:\r\n", STANDARD.encode(Sha256::digest(other)));
            send(stream, 200, "text/csv", &tagged("\"two\"", &digest), other);
        }
        Answer::WithoutDigest => send(stream, 200, "text/csv", &tagged(TAG, ""), FILE),
        Answer::Problem(status, code) => {
            let body = json!({"status": status, "code": code, "detail": "as the test wants it"}).to_string();
            send(stream, *status, "application/problem+json", "", body.as_bytes());
        }
    }
}

fn send_range(mut stream: TcpStream, headers: &str, file: &[u8], more: &str, cut: usize) {
    let first = headers.lines().find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-'));
    let first: usize = first.map_or(0, |first| first.parse().unwrap());
    let status = if first > 0 { "206 Partial Content" } else { "200 OK" };
    let length = file.len();
    let range = if first > 0 {
        format!("Content-Range: bytes {first}-{}/{length}\r\n", length - 1)
    } else {
        String::new()
    };
    let rest = &file[first..];
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{range}{more}Connection: close\r\n\r\n",
        rest.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&rest[..rest.len().min(cut)]).unwrap();
}

fn send(mut stream: TcpStream, status: u16, media_type: &str, more: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} x\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
}

#[track_caller]
fn assert_ends(output: &Output, code: i32, messages: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    for part in messages {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[track_caller]
fn assert_nothing_left(folder: &std::path::Path) {
    let names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn broken_download_is_resumed() {
    let stub = StubService::new(&[complete()], &[Answer::CutAfter(5), Answer::CutAfter(9), Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    assert_ends(&stub.export(folder.path(), &[]), 0, &["2 rows", "SHA-256 verified", "assay-axis.csv"]);
    assert_eq!(std::fs::read(folder.path().join("assay-axis.csv")).unwrap(), FILE);
    let downloads = stub.downloads();
    assert_eq!(downloads.len(), 3, "{downloads:?}");
    for (headers, begin) in downloads.iter().zip([0, 5, 14]) {
        let range = format!("range: bytes={begin}-");
        assert_eq!(headers.contains(&range), begin > 0, "{headers}");
        assert_eq!(headers.contains("if-range: \"one\""), begin > 0, "{headers}");
        assert!(!headers.contains("authorization"), "the key was sent to the file host: {headers}");
    }
}

#[test]
fn changed_file_is_downloaded_again() {
    let stub = StubService::new(&[complete()], &[Answer::CutAfter(30), Answer::Replaced]);
    let folder = tempfile::tempdir().unwrap();
    assert_ends(&stub.export(folder.path(), &["--out", "x.csv"]), 0, &["1 row,"]);
    assert_eq!(std::fs::read(folder.path().join("x.csv")).unwrap(), b"ticket_id,subject\r\n3,other\r\n");
    // Standard output cannot be rewound.
    let stub = StubService::new(&[complete()], &[Answer::CutAfter(30), Answer::Replaced]);
    assert_ends(&stub.export(folder.path(), &["--out", "-"]), 1, &["cannot be taken back"]);
}

#[test]
fn damaged_file_is_not_published() {
    let stub = StubService::new(&[complete()], &[Answer::Damaged]);
    let folder = tempfile::tempdir().unwrap();
    assert_ends(&stub.export(folder.path(), &[]), 1, &["damaged", "SHA-256"]);
    assert_nothing_left(folder.path());
}

#[test]
fn file_without_checksum_is_reported_as_not_verified() {
    let stub = StubService::new(&[complete()], &[Answer::WithoutDigest]);
    let folder = tempfile::tempdir().unwrap();
    let output = stub.export(folder.path(), &["--out", "-"]);
    assert_ends(&output, 0, &["not verified: no checksum", "standard output"]);
    assert_eq!(output.stdout, FILE);
    assert_nothing_left(folder.path());
}

#[test]
fn expired_download_url_is_refreshed() {
    let stub = StubService::new(&[complete()], &[Answer::Problem(403, "invalid-signature"), Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    assert_ends(&stub.export(folder.path(), &[]), 0, &["2 rows"]);
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
        assert_ends(&stub.export(folder.path(), &[]), 1, &messages);
        assert_nothing_left(folder.path());
    }
}

#[test]
fn timed_out_export_can_be_fetched_later() {
    let stub = StubService::new(&[json!({"status": "running"})], &[Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    let output = stub.export(folder.path(), &["--timeout", "1"]);
    assert_ends(
        &output,
        4,
        &["not complete after 1 s", &format!("assay export --id {ID} --out assay-axis.csv")],
    );
    let stub = StubService::new(&[complete()], &[Answer::Whole]);
    let arguments = ["export", "--id", ID, "--url", &stub.url, "--key", "some-key", "--out", "later.csv"];
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_ends(&output, 0, &["2 rows", "later.csv"]);
}

#[test]
fn existing_file_is_kept_without_force() {
    let stub = StubService::new(&[complete()], &[Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("assay-axis.csv");
    std::fs::write(&path, "mine").unwrap();
    assert_ends(&stub.export(folder.path(), &[]), 1, &["assay-axis.csv exists", "--force"]);
    assert!(stub.requests.lock().unwrap().is_empty(), "an export was created for nothing");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    assert_ends(&stub.export(folder.path(), &["--force"]), 0, &[]);
    assert_eq!(std::fs::read(&path).unwrap(), FILE);
    let missing = stub.export(folder.path(), &["--out", "nowhere/x.csv"]);
    assert_ends(&missing, 1, &["there is no folder nowhere"]);
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
    assert_ends(&output, 130, &["interrupted: nothing was written", &format!("assay export --id {ID}")]);
    assert_nothing_left(folder.path());
}

#[test]
fn contradictory_arguments_are_refused() {
    let stub = StubService::new(&[complete()], &[Answer::Whole]);
    let folder = tempfile::tempdir().unwrap();
    let reversed = stub.export(folder.path(), &["--from", "2026-02-01", "--to", "2026-01-01"]);
    assert_ends(&reversed, 2, &["--from 2026-02-01", "exchange"]);
    assert_ends(&stub.export(folder.path(), &["--from", "yesterday"]), 2, &["--from", "2026-01-31"]);
    assert_ends(&stub.export(folder.path(), &["--id", ID]), 2, &["--kind"]);
    // Without --kind and --id the command would run the role.
    for option in [&["--timeout", "5"][..], &["--force"], &["--url", "http://127.0.0.1:9", "--key", "k"]] {
        let arguments = [&["export"][..], option].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_ends(&output, 2, &["--kind"]);
    }
    assert!(stub.requests.lock().unwrap().is_empty());
}
