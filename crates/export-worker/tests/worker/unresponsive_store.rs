//! A stub S3 store that stores nothing and, at the steps a test names, refuses or never responds.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use assay_platform::objects::Objects;
use assay_testkit::stub_server::{Request, StubServer, respond};

/// The S3 operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Create,
    SendPart,
    Complete,
    Abort,
    Other,
}

#[derive(Debug, Clone, Copy)]
pub struct Behaviour {
    pub hangs_at: &'static [Step],
    pub refused_steps: &'static [Step],
}

pub struct UnresponsiveStore {
    server: StubServer,
    seen: Arc<Mutex<Vec<Step>>>,
}

impl UnresponsiveStore {
    pub fn start(behaviour: Behaviour) -> Result<Self> {
        Self::start_at("127.0.0.1:0".parse()?, behaviour)
    }

    pub fn start_at(address: SocketAddr, behaviour: Behaviour) -> Result<Self> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seen_steps = seen.clone();
        let server = StubServer::start_at(address, move |request, connection| {
            serve(&request, connection, behaviour, &seen_steps)
        })?;
        Ok(Self { server, seen })
    }

    pub fn open(&self) -> Result<Objects> {
        Self::open_at(self.server.address())
    }

    /// A client for this address; the store may start later.
    pub fn open_at(address: SocketAddr) -> Result<Objects> {
        let endpoint = format!("http://{address}");
        let options = [
            ("aws_endpoint", endpoint.as_str()),
            ("aws_allow_http", "true"),
            ("aws_access_key_id", "id"),
            ("aws_secret_access_key", "secret"),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Objects::open("s3://files/of/assay", options)?)
    }

    pub fn has_seen(&self, step: Step) -> bool {
        self.seen.lock().is_ok_and(|seen| seen.contains(&step))
    }
}

fn serve(
    request: &Request,
    connection: &mut TcpStream,
    behaviour: Behaviour,
    seen: &Mutex<Vec<Step>>,
) -> Result<()> {
    let step = step_of(&request.line);
    if let Ok(mut seen) = seen.lock() {
        seen.push(step);
    }
    if behaviour.hangs_at.contains(&step) {
        // Until the client disconnects.
        io::copy(connection, &mut io::sink())?;
        return Ok(());
    }
    let (status, body) = match step {
        _ if behaviour.refused_steps.contains(&step) => ("400 Bad Request", ""),
        Step::Create => ("200 OK", "<R><UploadId>an upload</UploadId></R>"),
        Step::SendPart => ("200 OK", ""),
        Step::Complete => ("200 OK", "<R><ETag>tag</ETag></R>"),
        Step::Abort | Step::Other => ("204 No Content", ""),
    };
    respond(connection, &format!("{status}\r\netag: tag"), body)
}

fn step_of(request_line: &str) -> Step {
    let (uploads, upload) = (request_line.contains("?uploads"), request_line.contains("uploadId="));
    match request_line.split(' ').next() {
        Some("POST") if uploads => Step::Create,
        Some("PUT") if upload => Step::SendPart,
        Some("POST") if upload => Step::Complete,
        Some("DELETE") if upload => Step::Abort,
        _ => Step::Other,
    }
}
