//! A client that pipelines many requests and reads no response.

#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{Bytes, PayloadConfig, Query, get, post};
use anyhow::{Context as _, Result, ensure};
use assay_platform::runtime::{Phase, Readiness, Tasks};
use assay_platform::web::{ServerSettings, WebError, chunked_body, resource, serve};
use serde::Deserialize;

/// More than the buffers of a connection take.
const LENGTH: usize = 64 * 1024 * 1024;
/// How long processor time is measured. A connection that waits takes none, one that is polled again and again a fifth or more.
const OBSERVED: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Number {
    number: usize,
}

async fn large() -> Result<HttpResponse, WebError> {
    Ok(HttpResponse::Ok().body(chunked_body(Bytes::from(vec![b'x'; LENGTH]))))
}

async fn small(query: Query<Number>) -> Result<HttpResponse, WebError> {
    Ok(HttpResponse::Ok().body(format!("<{}>", query.number)))
}

fn connect() -> Result<(Tasks, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut tasks = Tasks::new(Readiness::default());
    let settings = ServerSettings { workers: 1, ..ServerSettings::default() };
    serve(&mut tasks, Phase::ServeInternal, "pipelined", listener, settings, |app| {
        app.service(resource("/large", vec![("GET", get().to(large))]))
            .service(resource("/small", vec![("GET", get().to(small))]))
            .service(resource("/length", vec![("POST", post().to(length))]))
            .app_data(PayloadConfig::new(LENGTH));
    })?;
    let connection = TcpStream::connect(address)?;
    connection.set_write_timeout(Some(Duration::from_millis(500)))?;
    connection.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok((tasks, connection))
}

/// Processor time of this process.
fn processor_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // proc_pid_stat(5): `utime` and `stime` are the 12th and 13th field after the name, in hundredths of a second.
    let fields = stat.rsplit(')').next().context("no name")?.split_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_millis(10 * ticks.iter().sum::<u64>()))
}

async fn length(body: Bytes) -> Result<HttpResponse, WebError> {
    Ok(HttpResponse::Ok().body(format!("<{}>", body.len())))
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_do_not_occupy_a_processor() -> Result<()> {
    for request in [
        "GET /large HTTP/1.1\r\nhost: assay\r\n\r\n",
        "GET /large HTTP/1.1\r\nhost: assay\r\ncontent-length: 1\r\n\r\nx",
        "GET /large HTTP/1.1\r\nhost: assay\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let busy = busy_with(request).await?;
        ensure!(busy < OBSERVED / 20, "{busy:?} of {OBSERVED:?}: {request:?}");
    }
    Ok(())
}

/// Processor time while many of these requests wait on one connection.
async fn busy_with(request: &str) -> Result<Duration> {
    let (_tasks, mut connection) = connect()?;
    let requests = request.as_bytes().repeat(20_000);
    // What the server does not read stays in the buffers of the connection, as far as there is room.
    match connection.write_all(&requests) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
        _ => {}
    }
    tokio::time::sleep(OBSERVED).await;
    let before = processor_time()?;
    tokio::time::sleep(OBSERVED).await;
    Ok(processor_time()? - before)
}

/// Reads one response, `<NUMBER>`.
fn read_number(mut connection: &TcpStream) -> Result<usize> {
    let (mut response, mut buffer) = (String::new(), [0; 1024]);
    while !response.ends_with('>') {
        let read = connection.read(&mut buffer)?;
        ensure!(read > 0, "the connection ended after {response:?}");
        response.push_str(std::str::from_utf8(&buffer[..read])?);
    }
    let number = response.rsplit('<').next().context("no number")?;
    Ok(number.trim_end_matches('>').parse()?)
}

/// Many on one connection: heads and bodies that were read before must not use up what may be read ahead.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_arrive_after_their_heads_are_read() -> Result<()> {
    let (_tasks, mut connection) = connect()?;
    connection.set_nodelay(true)?;
    let head = format!(
        "POST /length HTTP/1.1\r\nhost: assay\r\nx-padding: {}\r\ncontent-length: 50\r\n\r\n",
        "x".repeat(300)
    );
    for _ in 0..300 {
        connection.write_all(head.as_bytes())?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        connection.write_all(&[b'x'; 50])?;
        ensure!(read_number(&connection)? == 50);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_read() -> Result<()> {
    const LENGTHS: [usize; 5] = [0, 32 * 1024, 32 * 1024 + 1, 200_000, 1_000_000];
    let (_tasks, mut connection) = connect()?;
    for length in LENGTHS {
        let body = vec![b'x'; length];
        write!(connection, "POST /length HTTP/1.1\r\nhost: assay\r\ncontent-length: {length}\r\n\r\n")?;
        connection.write_all(&body)?;
        ensure!(read_number(&connection)? == length);
        write!(connection, "POST /length HTTP/1.1\r\nhost: assay\r\ntransfer-encoding: chunked\r\n\r\n")?;
        for chunk in body.chunks(1_000) {
            write!(connection, "{:x}\r\n", chunk.len())?;
            connection.write_all(chunk)?;
            connection.write_all(b"\r\n")?;
        }
        connection.write_all(b"0\r\n\r\n")?;
        ensure!(read_number(&connection)? == length);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() -> Result<()> {
    const REQUESTS: usize = 20_000;
    let (_tasks, connection) = connect()?;
    let mut sending = connection.try_clone()?;
    let sender = std::thread::spawn(move || {
        for number in 0..REQUESTS {
            sending.write_all(
                format!("GET /small?number={number} HTTP/1.1\r\nhost: assay\r\n\r\n").as_bytes(),
            )?;
        }
        // The last response: `Connection: close`.
        sending.write_all(b"GET /small?number=20000 HTTP/1.1\r\nhost: assay\r\nconnection: close\r\n\r\n")
    });
    let mut answers = String::new();
    (&connection).read_to_string(&mut answers)?;
    ensure!(sender.join().is_ok_and(|sent| sent.is_ok()), "not everything was sent");
    let numbers: Vec<usize> =
        answers.split(['<', '>']).skip(1).step_by(2).map(str::parse).collect::<Result<_, _>>()?;
    ensure!(numbers == (0..=REQUESTS).collect::<Vec<_>>(), "{} answers", numbers.len());
    Ok(())
}
