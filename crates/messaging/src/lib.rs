//! The bus between services: RabbitMQ or in process, outbox, inbox, retries and dead letters.
