//! The supervisor with real PostgreSQL and RabbitMQ and a stand-in for the executable.

mod harness;
mod refusals;
mod running;
mod stopping;
