//! Simultaneous downloads, and downloads without progress.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context as _, Result, ensure};
use assay_platform::runtime::new_id;
use assay_testkit::{eventually, on_both_databases};
use reqwest::Response;

use crate::test_app::{DEADLINE, PreparedDatabase, TestApp, header, problem};

/// More than the buffers of a connection take, so that a response waits for its reader.
const LARGE: usize = 48 * 1024 * 1024;

async fn get(app: &TestApp, address: &str) -> Result<Response> {
    Ok(app.http.get(address).send().await?)
}

/// Starts a download of which only the status is read.
fn start_download(app: &TestApp, address: &str) -> Result<TcpStream> {
    let server = app.address.strip_prefix("http://").context("no scheme")?;
    let path = address.strip_prefix(&app.address).context("another server")?;
    let mut connection = TcpStream::connect(server)?;
    connection.set_read_timeout(Some(DEADLINE))?;
    write!(connection, "GET {path} HTTP/1.1\r\nhost: {server}\r\n\r\n")?;
    let mut status = [0; 12];
    connection.read_exact(&mut status)?;
    ensure!(&status == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&status));
    Ok(connection)
}

async fn simultaneous_downloads_of_a_file_are_bounded(prepared: PreparedDatabase) -> Result<()> {
    let app = prepared.start_with(|config| config.max_downloads_per_export = 2)?;
    let organization = new_id();
    let address = app.create_download(organization, &vec![b'x'; LARGE]).await?;
    let first = get(&app, &address).await?;
    let part = app.http.get(&address).header("range", "bytes=1-").send().await?;
    ensure!((first.status().as_u16(), part.status().as_u16()) == (200, 206));
    let refused = get(&app, &address).await?;
    ensure!(header(&refused, "retry-after").is_some());
    ensure!(header(&refused, "cache-control").as_deref() == Some("private, no-store"));
    problem(refused, 429, "too-many-downloads").await?;
    // Other files are served, and a response without a body needs no permit.
    ensure!(app.http.head(&address).send().await?.status() == 200);
    let other = app.create_download(organization, b"small").await?;
    ensure!(get(&app, &other).await?.bytes().await? == b"small".as_slice());
    // The end of the body frees a permit, and so does the end of the connection.
    ensure!(first.bytes().await?.len() == LARGE);
    eventually("a free permit", || async { Ok(get(&app, &address).await?.status() == 200) }).await?;
    drop(part);
    eventually("both free permits", || async {
        let both = [get(&app, &address).await?, get(&app, &address).await?];
        Ok(both.iter().all(|response| response.status() == 200))
    })
    .await
}

async fn organization_takes_half_of_all_downloads(prepared: PreparedDatabase) -> Result<()> {
    let app = prepared.start_with(|config| config.max_downloads = 2)?;
    let (greedy, other) = (new_id(), new_id());
    let large = app.create_download(greedy, &vec![b'x'; LARGE]).await?;
    let _held = get(&app, &large).await?;
    let second = app.create_download(greedy, b"small").await?;
    problem(get(&app, &second).await?, 429, "too-many-downloads").await?;
    let of_other = app.create_download(other, &vec![b'x'; LARGE]).await?;
    let _held_by_other = get(&app, &of_other).await?;
    let third = app.create_download(new_id(), b"small").await?;
    let refused = get(&app, &third).await?;
    ensure!(header(&refused, "retry-after").is_some());
    problem(refused, 503, "unavailable").await?;
    Ok(())
}

#[cfg(target_os = "linux")]
async fn download_without_progress_ends_and_frees_its_permit(prepared: PreparedDatabase) -> Result<()> {
    let app = prepared.start_with(|config| {
        config.max_downloads_per_export = 1;
        config.response_stall_seconds = 1;
    })?;
    let address = app.create_download(new_id(), &vec![b'x'; LARGE]).await?;
    let mut stalled = start_download(&app, &address)?;
    // On a slow machine the first may end before another is refused: then the other takes its permit and keeps it.
    let mut unread = Vec::new();
    let refused = loop {
        let response = get(&app, &address).await?;
        if response.status() != 200 {
            break response;
        }
        unread.push(response);
    };
    problem(refused, 429, "too-many-downloads").await?;
    eventually("its end", || async { Ok(get(&app, &address).await?.status() == 200) }).await?;
    let mut received = Vec::new();
    ensure!(stalled.read_to_end(&mut received).is_err(), "the response was complete");
    ensure!(received.len() < LARGE);
    Ok(())
}

on_both_databases! { PreparedDatabase {
    simultaneous_downloads_of_a_file_are_bounded,
    organization_takes_half_of_all_downloads,
    download_without_progress_ends_and_frees_its_permit,
} }
