//! Process names of the third-party servers, for the supervisor and for log files. Roles have their own names.

pub(super) const POSTGRES: &str = "postgres";
pub(super) const RABBITMQ: &str = "rabbitmq";
/// The port mapper of RabbitMQ.
pub(super) const EPMD: &str = "epmd";
