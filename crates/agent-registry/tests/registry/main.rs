//! The role through HTTP and its library functions, on both databases.

mod agents;
mod console_sessions;
mod keys;
mod retention;
mod start;
mod test_app;
