//! The rules of the console's design, checked in a browser: what holds on its pages, and what its users can do.

pub mod accessibility;
pub mod charts;
pub mod copies;
pub mod first_look;
pub mod hostile_texts;
pub mod neighbours;
pub mod numbers;
pub mod partial_updates;
pub mod policy;
pub mod print;
pub mod refused_filter;
pub mod sessions;
pub mod shortcuts;
pub mod sign_in;
pub mod storage;
pub mod times;
pub mod url_state;
pub mod walks;
pub mod webhooks;
pub mod weight;
pub mod widths;
