//! A gateway without services, and clients that do not read their responses.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_gateway::{Config, Dependencies, start};
use assay_platform::auth::ServiceTokens;
use assay_platform::runtime::{Readiness, Tasks};
use reqwest::StatusCode;
use socket2::{Domain, Socket, Type};
use tokio::time::sleep;
use url::Url;

/// The largest file of the reference.
pub const FILE: &str = "/docs/swagger-ui-bundle.js";

/// Responses that a client asks for at once: together more than the buffers of the kernel hold.
const PIPELINED: usize = 4;

pub struct Gateway {
    pub address: SocketAddr,
    _tasks: Tasks,
}

impl Gateway {
    /// A gateway without services.
    pub fn start(edit: impl FnOnce(&mut Config)) -> Result<Self> {
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
            max_console_in_flight: 8,
            max_connections: 1_000,
            response_stall_seconds: 60,
            workers: 2,
            key_cache_seconds: 1,
            rate_limit_per_second: 0,
            docs: true,
        };
        edit(&mut config);
        let nowhere = Url::parse("http://127.0.0.1:1")?;
        let dependencies = Dependencies {
            listener,
            tokens: ServiceTokens::new(&"a secret of the tests of the gateway".to_owned().into())?,
            registry_url: nowhere.clone(),
            ingest_url: nowhere.clone(),
            scoring_url: nowhere.clone(),
            export_url: nowhere,
            webhooks_url: None,
            console_url: None,
        };
        let mut tasks = Tasks::new(Readiness::default());
        start(config, dependencies, &mut tasks)?;
        Ok(Self { address, _tasks: tasks })
    }

    pub async fn get(&self, path: &str) -> Result<reqwest::Response> {
        Ok(reqwest::get(format!("http://{}{path}", self.address)).await?)
    }

    /// A connection that asks for the file several times.
    pub fn ask(&self) -> Result<TcpStream> {
        let connection = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        connection.set_recv_buffer_size(16 * 1024)?;
        connection.connect(&self.address.into())?;
        let mut connection = TcpStream::from(connection);
        let request = format!("GET {FILE} HTTP/1.1\r\nHost: assay\r\n\r\n");
        connection.write_all(request.repeat(PIPELINED).as_bytes())?;
        Ok(connection)
    }

    /// Waits until `/openapi.json` is answered with `status`.
    pub async fn until(&self, status: StatusCode) -> Result<reqwest::Response> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let response = self.get("/openapi.json").await?;
            if response.status() == status {
                return Ok(response);
            }
            ensure!(Instant::now() < deadline, "still {}", response.status());
            sleep(Duration::from_millis(20)).await;
        }
    }
}
