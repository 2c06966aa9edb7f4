//! A stub S3 store that stores nothing and, at the steps a test names, refuses or never responds.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context as _, Result};
use assay_platform::objects::Objects;

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
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Step>>>,
}

impl UnresponsiveStore {
    pub fn start(behaviour: Behaviour) -> Result<Self> {
        Self::start_at("127.0.0.1:0".parse()?, behaviour)
    }

    pub fn start_at(address: SocketAddr, behaviour: Behaviour) -> Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seen_steps = seen.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let seen_steps = seen_steps.clone();
                thread::spawn(move || serve(&connection, behaviour, &seen_steps));
            }
        });
        Ok(Self { address, seen })
    }

    pub fn open(&self) -> Result<Objects> {
        Self::open_at(self.address)
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

fn serve(connection: &TcpStream, behaviour: Behaviour, seen: &Mutex<Vec<Step>>) -> Result<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let step = read_request(&mut reader)?;
        if let Ok(mut seen) = seen.lock() {
            seen.push(step);
        }
        if behaviour.hangs_at.contains(&step) {
            // Until the client disconnects.
            reader.read_to_end(&mut Vec::new())?;
            return Ok(());
        }
        let (status, body) = match step {
            _ if behaviour.refused_steps.contains(&step) => ("400 Bad Request", ""),
            Step::Create => ("200 OK", "<R><UploadId>an upload</UploadId></R>"),
            Step::SendPart => ("200 OK", ""),
            Step::Complete => ("200 OK", "<R><ETag>tag</ETag></R>"),
            Step::Abort | Step::Other => ("204 No Content", ""),
        };
        let head = format!("HTTP/1.1 {status}\r\netag: tag\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut writer = connection;
        writer.write_all((head + body).as_bytes())?;
    }
}

fn read_request(reader: &mut impl std::io::BufRead) -> Result<Step> {
    let mut lines = reader.by_ref().lines();
    let request = lines.next().context("no further request")??;
    let mut length = 0;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let (uploads, upload) = (request.contains("?uploads"), request.contains("uploadId="));
    Ok(match request.split(' ').next() {
        Some("POST") if uploads => Step::Create,
        Some("PUT") if upload => Step::SendPart,
        Some("POST") if upload => Step::Complete,
        Some("DELETE") if upload => Step::Abort,
        _ => Step::Other,
    })
}
