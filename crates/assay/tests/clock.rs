//! A role whose clock is wrong, by Debian's `libfaketime` where it is installed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::Result;
use assay_agent_registry::{MIGRATIONS, SCHEMA};
use assay_platform::runtime::blocking;
use assay_testkit::ServiceDatabase;
use secrecy::ExposeSecret as _;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Runs agent-registry until it ends, for at most 20 seconds.
fn run(database_url: &str, offset: &str, library: &PathBuf) -> std::io::Result<Output> {
    Command::new("timeout")
        .args(["20", env!("CARGO_BIN_EXE_assay"), "agent-registry"])
        .env("LD_PRELOAD", library)
        .env("FAKETIME", offset)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("ASSAY_REGISTRY__DATABASE_URL", database_url)
        .env("ASSAY_REGISTRY__LISTEN", "127.0.0.1:0")
        .env("ASSAY_BUS__URL", "amqp://guest:guest@127.0.0.1:1/%2f")
        .env("ASSAY_SECURITY__SERVICE_TOKEN_SECRET", SECRET)
        .env("ASSAY_SECURITY__SIGNING_KEYS", format!("k1:{SECRET}"))
        .env_remove("ASSAY_TEST_POSTGRES_URL")
        .env_remove("ASSAY_TEST_AMQP_URL")
        .output()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn role_with_a_wrong_clock_ends_and_names_both_times() -> Result<()> {
    let library = format!("/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1", std::env::consts::ARCH);
    let library = PathBuf::from(library);
    if !library.exists() {
        println!("skipped: libfaketime is not installed");
        return Ok(());
    }
    let database = ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?;
    let url = database.settings().database_url.expose_secret().to_owned();
    for (offset, difference) in [("+3600s", "seconds ahead of"), ("-6s", "seconds behind")] {
        let (url, library) = (url.clone(), library.clone());
        let ended = blocking(move || run(&url, offset, &library)).await??;
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{errors}");
        let last = errors.lines().last().unwrap_or_default();
        let times = last.matches("Z)").count();
        assert!(last.contains(difference) && times == 2, "{last}");
    }
    Ok(())
}
