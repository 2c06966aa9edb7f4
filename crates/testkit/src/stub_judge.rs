//! A stub of a chat completions endpoint with scripted responses and faults, on a free port.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use assay_platform::runtime::LockExt as _;
use serde_json::{Value, json};

/// How often a held connection checks whether the stub has stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running endpoint. Dropping it stops it.
pub struct StubJudge {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Box<Answer>,
    questions: Mutex<Vec<Question>>,
    is_stopped: AtomicBool,
}

type Answer = dyn Fn(&Question) -> Reply + Send + Sync;

/// One request.
#[derive(Debug, Clone)]
pub struct Question {
    /// The number of requests before it.
    pub index: usize,
    /// When it was complete.
    pub at: Instant,
    /// Request line and headers.
    pub head: String,
    /// The body.
    pub body: Value,
}

/// Scores and audit of a judge's answer.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'f> {
    /// `resolution_accuracy`.
    pub accuracy: f64,
    /// `interaction_effort`.
    pub effort: f64,
    /// `handoff_smoothness`.
    pub handoff: f64,
    /// `resolution.status`.
    pub status: &'f str,
    /// `resolution.basis`.
    pub basis: &'f str,
    /// `resolution.resolved_by`; `None` is `null`.
    pub resolved_by: Option<&'f str>,
    /// `resolution.charge`; `None` is `null`.
    pub charge: Option<&'f str>,
}

/// Response to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A completion with this text.
    Text(String),
    /// Any status, headers (each with its line end) and body.
    Raw(u16, String, String),
    /// An incomplete response, then the connection is closed.
    Cut,
    /// No response until the client disconnects.
    Hold,
    /// A body that does not end.
    Endless,
}

impl StubJudge {
    /// Starts the endpoint; `answer` produces the response to each request.
    ///
    /// # Errors
    /// When there is no free port.
    pub fn start(answer: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port for the stub judge")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            questions: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        let listener = thread::Builder::new().name("stub judge".to_owned()).spawn(move || {
            for connection in listener.incoming().flatten() {
                if accepting.is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let shared = accepting.clone();
                // Errors are expected: in many tests the client disconnects early.
                thread::spawn(move || drop(shared.serve(connection)));
            }
        })?;
        Ok(Self { address, shared, listener: Some(listener) })
    }

    /// Its URL, for the setting `scoring.judge.url`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far.
    pub fn questions(&self) -> Vec<Question> {
        self.shared.questions().clone()
    }
}

impl Drop for StubJudge {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees the flag.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

impl Shared {
    fn questions(&self) -> MutexGuard<'_, Vec<Question>> {
        self.questions.locked()
    }

    fn serve(&self, mut connection: TcpStream) -> Result<()> {
        let (head, body) = read_request(&connection)?;
        let question = {
            let mut questions = self.questions();
            let question = Question { index: questions.len(), at: Instant::now(), head, body };
            questions.push(question.clone());
            question
        };
        match (self.answer)(&question) {
            Reply::Text(text) => {
                let completion = json!({
                    "id": "stub", "object": "chat.completion", "model": question.body["model"],
                    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                    "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
                });
                write_response(&mut connection, 200, "", &completion.to_string())?;
            }
            Reply::Raw(status, headers, body) => write_response(&mut connection, status, &headers, &body)?,
            Reply::Cut => {
                write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{{\"choices\": [")?;
            }
            Reply::Hold => self.hold(&mut connection)?,
            Reply::Endless => {
                write!(connection, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")?;
                while !self.is_stopped.load(Ordering::SeqCst) {
                    connection.write_all(&[b' '; 4096])?;
                }
            }
        }
        Ok(())
    }

    fn hold(&self, connection: &mut TcpStream) -> Result<()> {
        connection.set_read_timeout(Some(POLL_INTERVAL))?;
        while !self.is_stopped.load(Ordering::SeqCst) {
            match connection.read(&mut [0; 64]) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Question {
    /// The number of the case, which an answer must repeat.
    pub fn case(&self) -> &str {
        let text = self.transcript_message();
        text.split_once("<<<CONVERSATION ")
            .and_then(|(_, rest)| rest.split_once(">>>"))
            .map_or("", |(case, _)| case)
    }

    /// The conversation as it was sent.
    pub fn conversation(&self) -> Value {
        let data = self.transcript_message().lines().find(|line| line.starts_with('{')).unwrap_or_default();
        serde_json::from_str(data).unwrap_or_default()
    }

    /// Whether it asks to repair a faulty answer, which it contains.
    pub fn is_repair(&self) -> bool {
        self.body["messages"].as_array().is_some_and(|messages| messages.len() > 2)
    }

    /// A valid answer with these findings, which quotes the customer's last message.
    pub fn answer(&self, accuracy: f64, effort: f64, status: &str, basis: &str) -> Value {
        let conversation = self.conversation();
        let messages = conversation["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let last = messages.iter().rfind(|message| message["from"] == "customer");
        let quotes = last.map(|message| json!([{"message": message["number"], "quote": message["text"]}]));
        json!({
            "case": self.case(),
            "resolution_accuracy": {"score": accuracy, "reason": "The judge says why.", "quotes": quotes},
            "interaction_effort": {"score": effort, "reason": "The judge says how.", "quotes": quotes},
            "resolution": {"status": status, "basis": basis, "reason": "The judge says who.", "quotes": quotes},
        })
    }

    /// A valid answer with all findings. Quotes as in [`Question::answer`].
    pub fn whole_answer(&self, findings: &Findings<'_>) -> Value {
        let Findings { accuracy, effort, handoff, status, basis, resolved_by, charge } = *findings;
        let mut answer = self.answer(accuracy, effort, status, basis);
        let quotes = answer["resolution"]["quotes"].clone();
        answer["handoff_smoothness"] =
            json!({"score": handoff, "reason": "The judge says how it was passed on.", "quotes": quotes});
        answer["resolution"]["resolved_by"] = json!(resolved_by);
        answer["resolution"]["charge"] = json!(charge);
        answer
    }

    fn transcript_message(&self) -> &str {
        self.body["messages"][1]["content"].as_str().unwrap_or_default()
    }
}

/// Request line with headers, and the body (RFC 9112, sections 2 to 6; only with `Content-Length`).
fn read_request(connection: &TcpStream) -> Result<(String, Value)> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        anyhow::ensure!(reader.read_line(&mut head)? > 0, "the client has disconnected");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok((head, serde_json::from_slice(&body)?))
}

fn write_response(connection: &mut TcpStream, status: u16, headers: &str, body: &str) -> Result<()> {
    write!(
        connection,
        "HTTP/1.1 {status} Stub\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}
