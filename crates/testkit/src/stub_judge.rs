//! A stub of a chat completions endpoint with scripted responses and faults, on a free port.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Result;
use assay_platform::runtime::LockExt as _;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::stub_server::{Request, StubServer, respond};

/// A running endpoint. Dropping it stops it.
pub struct StubJudge {
    server: StubServer,
    questions: Arc<Mutex<Vec<Question>>>,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Question {
    /// The number of requests before it.
    pub index: usize,
    /// When it was complete.
    pub at: Instant,
    /// Method, target and version.
    pub line: String,
    pub headers: HeaderMap,
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
        let questions: Arc<Mutex<Vec<Question>>> = Arc::default();
        let asked = questions.clone();
        let server = StubServer::start(move |request, connection| {
            let question = record(request, &asked)?;
            send(answer(&question), &question, connection)
        })?;
        Ok(Self { server, questions })
    }

    /// Its URL, for the setting `scoring.judge.url`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.server.address())
    }

    /// Every request so far.
    pub fn questions(&self) -> Vec<Question> {
        self.questions.locked().clone()
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

fn record(request: Request, questions: &Mutex<Vec<Question>>) -> Result<Question> {
    let Request { line, headers, body } = request;
    let body = serde_json::from_slice(&body)?;
    let mut questions = questions.locked();
    let question = Question { index: questions.len(), at: Instant::now(), line, headers, body };
    questions.push(question.clone());
    Ok(question)
}

fn send(reply: Reply, question: &Question, connection: &mut TcpStream) -> Result<()> {
    match reply {
        Reply::Text(text) => {
            let completion = json!({
                "id": "stub", "object": "chat.completion", "model": question.body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
            });
            respond(connection, "200 OK\r\nContent-Type: application/json", completion.to_string())
        }
        Reply::Raw(status, headers, body) => {
            respond(connection, &format!("{status} Stub\r\n{headers}Content-Type: application/json"), body)
        }
        Reply::Cut => {
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"choices\": [")?;
            Ok(())
        }
        Reply::Hold => {
            io::copy(connection, &mut io::sink())?;
            Ok(())
        }
        Reply::Endless => {
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")?;
            loop {
                connection.write_all(&[b' '; 4096])?;
            }
        }
    }
}
