//! What a connection verifies, depending on the parameters of its address.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use assay_platform::db::{Database, DatabaseError, DatabaseSettings};
use assay_testkit::services;
use diesel::sql_types::Bool;
use diesel::{QueryableByName, RunQueryDsl as _, sql_query};

use crate::authority::{Authority, text};
use crate::server::{HOST, OTHER_HOST, TlsServer, verify_full};

/// How long a machine under load may take to connect, or to be refused.
const LIMIT: Duration = Duration::from_secs(20);

#[derive(QueryableByName)]
struct Encryption {
    #[diesel(sql_type = Bool)]
    ssl: bool,
}

/// Connects. Returns whether the server reports the connection as encrypted, or why it failed.
async fn is_encrypted(url: &str) -> Result<Result<bool, String>> {
    let settings = DatabaseSettings { database_url: url.to_owned().into(), database_pool_size: 1 };
    let Database::Postgres(postgres) = Database::open(&settings, "ingest")? else {
        bail!("another database")
    };
    let query_until_connected = async {
        loop {
            let query = sql_query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
            let answer = postgres.run(move |connection| {
                query.get_result::<Encryption>(connection).map_err(DatabaseError::from)
            });
            match answer.await {
                Ok(encryption) => return Ok(Ok(encryption.ssl)),
                // Without a cause the attempt is still in progress.
                Err(error) if error.to_string().ends_with("waiting for connection") => {}
                Err(DatabaseError::Unavailable(cause)) => return Ok(Err(cause)),
                Err(error) => return Err(error.into()),
            }
        }
    };
    tokio::time::timeout(LIMIT, query_until_connected).await.context("no answer")?
}

async fn refusal(url: &str) -> Result<String> {
    match is_encrypted(url).await? {
        Ok(encrypted) => bail!("connected, encrypted: {encrypted}"),
        Err(cause) => Ok(cause),
    }
}

#[tokio::test]
async fn server_that_demands_tls_is_used_over_tls() -> Result<()> {
    let server = TlsServer::start()?;
    let plain = refusal(&server.url(HOST, "sslmode=disable")).await?;
    assert!(plain.contains("no encryption"), "{plain}");
    assert_eq!(is_encrypted(&server.url(HOST, "sslmode=require")).await?, Ok(true));
    // Not verified: the name of the host is not in the certificate.
    assert_eq!(is_encrypted(&server.url(OTHER_HOST, "sslmode=require")).await?, Ok(true));
    Ok(())
}

#[tokio::test]
async fn address_without_a_mode_uses_tls_where_the_server_has_it() -> Result<()> {
    let server = TlsServer::start()?;
    assert_eq!(is_encrypted(&server.url(HOST, "application_name=test")).await?, Ok(true));
    assert_eq!(is_encrypted(services::postgres()?).await?, Ok(false));
    Ok(())
}

#[tokio::test]
async fn certificate_of_another_authority_is_refused() -> Result<()> {
    let (server, other) = (TlsServer::start()?, Authority::create()?);
    let full = verify_full(&other.certificate())?;
    for parameters in [full.as_str(), &full.replace("verify-full", "verify-ca")] {
        let cause = refusal(&server.url(HOST, parameters)).await?;
        assert!(cause.contains("certificate verify failed"), "{parameters}: {cause}");
    }
    Ok(())
}

#[tokio::test]
async fn certificate_of_another_host_is_refused() -> Result<()> {
    let server = TlsServer::start()?;
    let full = server.verify_full()?;
    let cause = refusal(&server.url(OTHER_HOST, &full)).await?;
    assert!(cause.contains("certificate for \"localhost\""), "{cause}");
    assert!(cause.contains("does not match host name \"127.0.0.1\""), "{cause}");
    // `verify-ca` does not look at the name.
    let url = server.url(OTHER_HOST, &full.replace("verify-full", "verify-ca"));
    assert_eq!(is_encrypted(&url).await?, Ok(true));
    Ok(())
}

#[tokio::test]
async fn server_without_tls_is_refused() -> Result<()> {
    let authority = Authority::create()?;
    for parameters in ["sslmode=require".to_owned(), verify_full(&authority.certificate())?] {
        let cause = refusal(&format!("{}?{parameters}", services::postgres()?)).await?;
        assert!(cause.contains("server does not support SSL, but SSL was required"), "{cause}");
    }
    Ok(())
}

#[tokio::test]
async fn missing_file_of_the_authority_is_named() -> Result<()> {
    let server = TlsServer::start()?;
    let parameters = "sslmode=verify-full&sslrootcert=/nowhere/ca.crt";
    let cause = refusal(&server.url(HOST, parameters)).await?;
    assert!(cause.contains("root certificate file \"/nowhere/ca.crt\" does not exist"), "{cause}");
    Ok(())
}

#[tokio::test]
async fn client_certificate_is_presented() -> Result<()> {
    let server = TlsServer::start_for_certified_clients()?;
    let full = server.verify_full()?;
    let cause = refusal(&server.url(HOST, &full)).await?;
    assert!(cause.contains("client certificate"), "{cause}");
    let client = server.authority().issue("client")?;
    let (certificate, key) = (text(&client.certificate)?, text(&client.key)?);
    let url = server.url(HOST, &format!("{full}&sslcert={certificate}&sslkey={key}"));
    assert_eq!(is_encrypted(&url).await?, Ok(true));
    Ok(())
}
