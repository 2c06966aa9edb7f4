//! A gateway, stand-ins of its services, and clients that do not read their responses.

#![allow(dead_code, reason = "every file of tests uses a part")]

pub mod services;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use assay_gateway::{Config, Dependencies, start};
use assay_platform::auth::ServiceTokens;
use assay_platform::http_client::client_builder;
use assay_platform::runtime::{LockExt as _, Readiness, Tasks};
use assay_testkit::eventually_within;
use reqwest::StatusCode;
use socket2::{Domain, Socket, Type};
use tokio::time::sleep;
use url::Url;

/// The largest file of the reference.
pub const LARGE_FILE: &str = "/docs/swagger-ui-bundle.js";

/// Responses that a client asks for at once: together more than the buffers of the kernel hold.
const PIPELINED: usize = 4;

pub fn tokens() -> Result<ServiceTokens> {
    Ok(ServiceTokens::new(&"a secret of the tests of the gateway".to_owned().into())?)
}

/// An address where nothing listens.
pub fn nowhere() -> Result<Url> {
    Ok(Url::parse("http://127.0.0.1:1")?)
}

pub struct Gateway {
    pub address: SocketAddr,
    _tasks: Tasks,
}

impl Gateway {
    /// A gateway without services.
    pub fn start(edit: impl FnOnce(&mut Config)) -> Result<Self> {
        Self::start_with(&nowhere()?, None, edit)
    }

    /// A gateway whose services are all at the address `services`, except the console.
    pub fn start_with(
        services: &Url,
        console_url: Option<Url>,
        edit: impl FnOnce(&mut Config),
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut config = Config {
            listen: address,
            public_url: String::new(),
            max_body_bytes: 1024,
            body_deadline_seconds: 1,
            body_memory_bytes: 1024,
            service_deadline_milliseconds: 100,
            max_in_flight: 1,
            max_keyless_in_flight: 8,
            max_downloads: 8,
            max_unknown_key_look_ups: 4,
            max_console_in_flight: 8,
            max_connections: 1_000,
            response_stall_seconds: 60,
            workers: 2,
            key_cache_seconds: 1,
            rate_limit_per_second: 0,
            docs: true,
        };
        edit(&mut config);
        let dependencies = Dependencies {
            listener,
            tokens: tokens()?,
            registry_url: services.clone(),
            ingest_url: services.clone(),
            scoring_url: services.clone(),
            export_url: services.clone(),
            webhooks_url: Some(services.clone()),
            console_url,
        };
        let mut tasks = Tasks::new(Readiness::default());
        start(&config, dependencies, &mut tasks)?;
        Ok(Self { address, _tasks: tasks })
    }

    pub async fn get(&self, path: &str) -> Result<reqwest::Response> {
        Ok(client_builder().build()?.get(self.url(path)).send().await?)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A connection that asks for a path several times, and reads nothing.
    pub fn request_unread(&self, path: &str) -> Result<TcpStream> {
        let connection = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        connection.set_recv_buffer_size(16 * 1024)?;
        connection.connect(&self.address.into())?;
        let mut connection = TcpStream::from(connection);
        let request = format!("GET {path} HTTP/1.1\r\nHost: assay\r\n\r\n");
        connection.write_all(request.repeat(PIPELINED).as_bytes())?;
        Ok(connection)
    }

    /// A connection that asks for a path until the buffers between it and the gateway are full, and reads nothing.
    pub fn fill_connection(&self, path: &str) -> Result<TcpStream> {
        let mut connection = self.request_unread(path)?;
        connection.set_write_timeout(Some(Duration::from_millis(500)))?;
        let requests = format!("GET {path} HTTP/1.1\r\nHost: assay\r\n\r\n").repeat(1_000);
        while connection.write_all(requests.as_bytes()).is_ok() {}
        Ok(connection)
    }

    /// A connection that asks for a path and reads the status of its response, which must be 200, and nothing else.
    pub fn request_and_read_status(&self, path: &str) -> Result<TcpStream> {
        let mut connection = self.request_unread(path)?;
        let mut status = [0; 12];
        connection.read_exact(&mut status)?;
        ensure!(&status == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&status));
        Ok(connection)
    }

    /// Opens connections that ask for `unread` and read nothing, until a request for `path` is answered with `status`.
    /// Returns the connections and that response. One connection per slot may not be enough: some are refused, and the
    /// others end after `response_stall_seconds`.
    pub async fn fill_slots(
        &self,
        unread: &str,
        path: &str,
        status: StatusCode,
    ) -> Result<(Vec<TcpStream>, reqwest::Response)> {
        let mut connections = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let response = self.get(path).await?;
            if response.status() == status {
                return Ok((connections, response));
            }
            ensure!(Instant::now() < deadline, "still {}", response.status());
            drop(response);
            connections.push(self.request_unread(unread)?);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a path is answered with `status`.
    pub async fn wait_for_status(&self, path: &str, status: StatusCode) -> Result<reqwest::Response> {
        let found = Mutex::new(None::<reqwest::Response>);
        eventually_within(Duration::from_secs(30), &format!("{status} for {path}"), || async {
            let response = self.get(path).await?;
            let is_expected = response.status() == status;
            // Another one must not keep its slot during the next request.
            if is_expected {
                *found.locked() = Some(response);
            }
            Ok(is_expected)
        })
        .await?;
        found.into_inner().ok().flatten().context("no response")
    }
}
