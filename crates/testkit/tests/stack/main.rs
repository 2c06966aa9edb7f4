//! The supervisor with real PostgreSQL and RabbitMQ and a stub of the executable.

mod harness;
mod refusals;
mod running;
mod stopping;
