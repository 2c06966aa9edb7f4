//! TLS to PostgreSQL: libpq has it in builds with the feature `postgres-tls` (ADR 27), and the address says what is verified.

use super::DatabaseError;

/// Whether libpq has TLS in this build.
const IS_BUILT_IN: bool = cfg!(feature = "postgres-tls");

/// Initialises TLS, and refuses an address that demands it in a build without it: libpq would refuse each connection, which looks
/// like an outage.
pub(super) fn prepare(url: &str, schema: &'static str) -> Result<(), DatabaseError> {
    init_openssl();
    match demanded(url) {
        Some(demand) if !IS_BUILT_IN => Err(DatabaseError::NoTls { schema, demand }),
        _ => Ok(()),
    }
}

/// The parameter of `url` that demands TLS. `allow` and `prefer`, libpq's default, are satisfied by an unencrypted connection.
fn demanded(url: &str) -> Option<&'static str> {
    // The last one counts, as in libpq, which reads JDBC's `ssl=true` as well.
    let parameters = url.split(['?', '&']).skip(1);
    let modes = parameters.filter_map(|parameter| match parameter.split_once('=')? {
        ("sslmode", mode) => Some(mode),
        ("ssl", "true") => Some("require"),
        _ => None,
    });
    match modes.last()? {
        "require" => Some("sslmode=require"),
        "verify-ca" => Some("sslmode=verify-ca"),
        "verify-full" => Some("sslmode=verify-full"),
        _ => None,
    }
}

/// OpenSSL must not free its tables at exit: the pools' threads may still be connecting.
#[cfg(feature = "postgres-tls")]
fn init_openssl() {
    openssl_sys::init();
}

#[cfg(not(feature = "postgres-tls"))]
fn init_openssl() {}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn demand_is_read_as_libpq_reads_it() {
        for (parameters, demand) in [
            ("", None),
            ("?sslmode=disable", None),
            ("?sslmode=prefer&sslrootcert=/ca.crt", None),
            ("?sslmode=require", Some("sslmode=require")),
            ("?connect_timeout=3&sslmode=verify-ca", Some("sslmode=verify-ca")),
            ("?sslrootcert=/ca.crt&sslmode=verify-full", Some("sslmode=verify-full")),
            ("?ssl=true", Some("sslmode=require")),
            ("?sslmode=require&sslmode=disable", None),
        ] {
            let url =
                format!("postgres://assay_ingest:secret@db.example:5432,other.example/assay{parameters}");
            assert_eq!(demanded(&url), demand, "{parameters}");
        }
    }

    #[cfg(not(feature = "postgres-tls"))]
    #[test]
    fn demand_is_refused_by_a_build_without_tls() {
        use crate::db::{Database, DatabaseSettings};

        for mode in ["require", "verify-ca", "verify-full"] {
            let database_url = format!("postgres://u:secret@db.example/assay?sslmode={mode}").into();
            let settings = DatabaseSettings { database_url, database_pool_size: 1 };
            let refusal = Database::open(&settings, "ingest").err().unwrap().to_string();
            assert!(refusal.contains(&format!("`ingest` demands TLS (sslmode={mode})")), "{refusal}");
            assert!(refusal.contains("--features postgres-tls"), "{refusal}");
            assert!(!refusal.contains("secret"), "{refusal}");
        }
    }
}
