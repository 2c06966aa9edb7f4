//! Endpoints that never answer do not delay the messages of other organizations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use assay_platform::runtime::{new_id, now, timeout};
use assay_testkit::{eventually, on_both_databases};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::running_role::{CONCURRENCY_PER_ORGANIZATION, RunningRole};

on_both_databases! { RunningRole {
    silent_endpoints_do_not_delay_other_organizations,
} }

async fn silent_endpoints_do_not_delay_other_organizations(mut role: RunningRole) -> Result<()> {
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let answering = TcpListener::bind("127.0.0.1:0").await?;
    let (silent_url, answering_url) = (url_of(&silent)?, url_of(&answering)?);
    let attempts = Arc::new(AtomicUsize::new(0));
    let hold_connections = async {
        let mut connections = Vec::new();
        while let Ok((connection, _)) = silent.accept().await {
            attempts.fetch_add(1, Ordering::SeqCst);
            connections.push(connection);
        }
    };
    let test = async {
        for _ in 0..10 {
            role.fixture.create_endpoint_at(&silent_url).await?;
        }
        role.fixture.announce_at(40, now()).await?;
        let in_flight = || attempts.load(Ordering::SeqCst);
        let is_at_limit = || async { Ok(in_flight() >= CONCURRENCY_PER_ORGANIZATION) };
        eventually("the attempts of the first organization", is_at_limit).await?;
        role.fixture.organization_id = new_id();
        role.fixture.create_endpoint_at(&answering_url).await?;
        let started = Instant::now();
        role.fixture.announce_at(3, now()).await?;
        let received = async {
            for _ in 0..3 {
                answer(&answering).await?;
            }
            Ok::<_, anyhow::Error>(())
        };
        let received = timeout(Duration::from_secs(10), received).await;
        anyhow::ensure!(
            received.is_some_and(|received| received.is_ok()),
            "nothing was received in 10 seconds"
        );
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(in_flight(), CONCURRENCY_PER_ORGANIZATION, "the limit of one organization");
        Ok(())
    };
    tokio::select! {
        () = hold_connections => anyhow::bail!("the silent endpoint ended"),
        tested = test => tested,
    }
}

fn url_of(listener: &TcpListener) -> Result<String> {
    Ok(format!("http://{}/", listener.local_addr()?))
}

/// Accepts a connection and answers one request.
async fn answer(listener: &TcpListener) -> Result<()> {
    let (mut connection, _) = listener.accept().await?;
    let mut head = [0; 16 * 1024];
    let read = connection.read(&mut head).await?;
    anyhow::ensure!(read > 0, "the request is empty");
    connection.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await?;
    Ok(connection.shutdown().await?)
}
