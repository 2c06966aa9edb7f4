//! A client that takes next to nothing of a response, over a connection. The clock of the server runs ahead.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::web::{Bytes, Data, get};
use anyhow::{Result, ensure};
use assay_platform::runtime::{Phase, Readiness, Tasks};
use assay_platform::web::{ServerSettings, WebError, chunked_body, hold_until_sent, resource, serve};
use assay_testkit::eventually;
use tokio::sync::Semaphore;

/// More than the buffers of a connection take.
const LENGTH: usize = 64 * 1024 * 1024;

async fn respond(slots: Data<Semaphore>) -> Result<HttpResponse, WebError> {
    let slot = Arc::clone(&slots).try_acquire_owned().map_err(|error| WebError::internal(&error))?;
    // From now on the clock of this thread jumps to the next timer whenever the thread has nothing to do.
    tokio::time::pause();
    let body = chunked_body(Bytes::from(vec![b'x'; LENGTH]));
    let body = hold_until_sent(BoxBody::new(body), slot);
    // Here, because the clock may have run ahead when the client looks.
    assert_eq!(slots.available_permits(), 0, "the body holds its slot");
    Ok(HttpResponse::Ok().body(body))
}

#[tokio::test(flavor = "multi_thread")]
async fn response_to_a_slow_client_is_cut_off() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let slots = Data::new(Semaphore::new(1));
    let shared = slots.clone();
    let mut tasks = Tasks::new(Readiness::default());
    let settings = ServerSettings { workers: 1, ..ServerSettings::default() };
    serve(&mut tasks, Phase::ServeInternal, "slow", listener, settings, move |app| {
        app.app_data(shared.clone()).service(resource("/", vec![("GET", get().to(respond))]));
    })?;
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(Duration::from_secs(30)))?;
    connection.write_all(b"GET / HTTP/1.1\r\nhost: assay\r\n\r\n")?;
    let mut status = [0; 12];
    connection.read_exact(&mut status)?;
    ensure!(&status == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&status));
    eventually("the slot", || async { Ok(slots.available_permits() == 1) }).await?;
    let mut received = Vec::new();
    // The end of a connection may be an error.
    connection.read_to_end(&mut received).ok();
    ensure!(received.len() < LENGTH, "the response was complete");
    Ok(())
}
