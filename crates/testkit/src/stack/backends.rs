//! PostgreSQL and RabbitMQ of the stack: private and supervised, or provided by the caller.

use anyhow::{Context as _, Result, bail};

use super::server_names::{EPMD, POSTGRES, RABBITMQ};
use super::{folder::StackFolder, settings::StackSettings, supervisor::Supervisor, unit::Unit};
use crate::{
    database_url::DatabaseUrl,
    database_users::ensure_database,
    postgres::{self, PostgresServer},
    rabbit::{self, RabbitNode},
};

/// The database of the stack on a private server.
const DATABASE: &str = "assay";

/// The addresses of the servers.
#[derive(Debug)]
pub(super) struct Backends {
    /// An administrator's URL of the stack's database.
    pub(super) administrator: DatabaseUrl,
    pub(super) amqp_url: String,
}

impl Backends {
    /// Starts the servers that the caller does not provide, and waits until they answer.
    pub(super) fn start(
        supervisor: &mut Supervisor,
        folder: &StackFolder,
        settings: &StackSettings,
    ) -> Result<Self> {
        let administrator = match &settings.postgres_url {
            Some(url) => DatabaseUrl::parse(url).context("ASSAY_POSTGRES_URL cannot be used")?,
            None => start_postgres(supervisor, folder)?,
        };
        let amqp_url = match &settings.amqp_url {
            Some(url) => url.clone(),
            None => start_rabbitmq(supervisor, folder)?,
        };
        Ok(Self { administrator, amqp_url })
    }
}

fn start_postgres(supervisor: &mut Supervisor, folder: &StackFolder) -> Result<DatabaseUrl> {
    let server = PostgresServer::prepare(&folder.postgres(), &folder.log(POSTGRES), true)?;
    let data = server.data_folder().to_owned();
    supervisor.start(Unit::with_cleanup(server.process(), move || postgres::clear_leftovers(&data)))?;
    let is_up = supervisor.wait_until(postgres::START_LIMIT, |_| Ok(server.answers()?.is_some()))?;
    if !is_up {
        let limit = postgres::START_LIMIT.as_secs();
        bail!("PostgreSQL did not start within {limit} s; {}", server.end_of_log());
    }
    let maintenance = DatabaseUrl::parse(&server.admin_url("postgres"))?;
    ensure_database(&maintenance, DATABASE)?;
    Ok(maintenance.with_database(DATABASE))
}

fn start_rabbitmq(supervisor: &mut Supervisor, folder: &StackFolder) -> Result<String> {
    let node = RabbitNode::prepare(&folder.rabbitmq(), &folder.log(RABBITMQ))?;
    supervisor.start(Unit::new(node.epmd()))?;
    // A broker that finds no port mapper exits.
    let is_up = supervisor.wait_until(rabbit::EPMD_LIMIT, |_| Ok(node.epmd_answers()))?;
    if !is_up {
        bail!("{EPMD}, the port mapper of RabbitMQ, did not start; {}", node.end_of_log());
    }
    let home = node.folder().to_owned();
    supervisor.start(Unit::with_cleanup(node.broker(), move || rabbit::clear_leftovers(&home)))?;
    let is_up =
        supervisor.wait_until(rabbit::START_LIMIT, |supervisor| match supervisor.pid_of(RABBITMQ) {
            Some(pid) => Ok(node.answers(pid)?.is_some()),
            None => Ok(false),
        })?;
    if !is_up {
        let limit = rabbit::START_LIMIT.as_secs();
        bail!("RabbitMQ did not start within {limit} s; {}", node.end_of_log());
    }
    Ok(node.amqp_url())
}
