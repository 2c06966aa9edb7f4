//! Names of the servers beside the roles, in the supervisor's table and folder.

pub(super) const POSTGRES: &str = "postgres";
pub(super) const RABBITMQ: &str = "rabbitmq";
/// The port mapper of RabbitMQ.
pub(super) const EPMD: &str = "epmd";
