//! What holds for every page of the console, one statement in each module.

pub mod accessibility;
pub mod charts;
pub mod first_look;
pub mod hostile_texts;
pub mod keys;
pub mod neighbours;
pub mod numbers;
pub mod partial_updates;
pub mod policy;
pub mod refused_filter;
pub mod sign_in;
pub mod times;
pub mod url_state;
pub mod walks;
pub mod weight;
pub mod widths;
