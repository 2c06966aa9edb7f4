//! The servers a test uses: those of the runner `assay-test-services`, else private ones of this test process.
//!
//! nextest runs every test in its own process. With the runner's servers a test only opens a database and a broker
//! namespace; without them each process starts its own servers. The statics here are the one exception to "no
//! process-global state": the servers belong to the process.

use std::{env, ffi::OsString, sync::OnceLock};

use anyhow::{Result, anyhow};

use crate::{PostgresOptions, PrivatePostgres, PrivateRabbit, RabbitOptions};

/// The environment variable with the administrator's URL of the PostgreSQL server that tests share.
pub const POSTGRES_URL_VARIABLE: &str = "ASSAY_TEST_POSTGRES_URL";

/// The environment variable with the AMQP URL of the broker that tests share.
pub const AMQP_URL_VARIABLE: &str = "ASSAY_TEST_AMQP_URL";

/// The URL of a server and, if this process started it, the server; or the message of the failed start.
type Service<Server> = OnceLock<Result<(String, Option<Server>), String>>;

static POSTGRES: Service<PrivatePostgres> = OnceLock::new();
static RABBIT: Service<PrivateRabbit> = OnceLock::new();

/// The administrator's URL of a PostgreSQL server for tests. Use [`crate::TestDatabase`] for a database.
///
/// # Errors
/// When the environment names no server and none can be started.
pub fn postgres() -> Result<&'static str> {
    url_of(&POSTGRES, POSTGRES_URL_VARIABLE, || {
        let server = PrivatePostgres::start(&PostgresOptions::for_tests())?;
        Ok((server.url(), server))
    })
}

/// The AMQP URL of a broker for tests. It is shared: use unique names, see [`crate::random_name`].
///
/// # Errors
/// When the environment names no broker and none can be started.
pub fn rabbit() -> Result<&'static str> {
    url_of(&RABBIT, AMQP_URL_VARIABLE, || {
        let broker = PrivateRabbit::start(&RabbitOptions::for_tests())?;
        Ok((broker.amqp_url(), broker))
    })
}

fn url_of<Server>(
    service: &'static Service<Server>,
    variable: &str,
    start: impl FnOnce() -> Result<(String, Server)>,
) -> Result<&'static str> {
    let started = service.get_or_init(|| match text_variable(variable) {
        Ok(Some(url)) => Ok((url, None)),
        Ok(None) => start().map(|(url, server)| (url, Some(server))).map_err(|error| format!("{error:#}")),
        Err(error) => Err(format!("{error:#}")),
    });
    match started {
        Ok((url, _server)) => Ok(url),
        Err(message) => Err(anyhow!(message.clone())),
    }
}

/// An empty variable counts as unset, as in `VARIABLE= make stack`.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The same as text; an error when it is not valid UTF-8.
pub(crate) fn text_variable(name: &str) -> Result<Option<String>> {
    let text = variable(name).map(OsString::into_string).transpose();
    text.map_err(|_bytes| anyhow!("the environment variable {name} is not valid UTF-8: correct it"))
}
