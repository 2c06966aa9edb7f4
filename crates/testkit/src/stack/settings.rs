//! Settings of the stack from the caller's environment.

use std::path::PathBuf;

use anyhow::Result;

use crate::services::{AMQP_URL_VARIABLE, POSTGRES_URL_VARIABLE, text_variable, variable};

const FOLDER: &str = "ASSAY_STACK_DIR";
const POSTGRES_URL: &str = "ASSAY_POSTGRES_URL";
const AMQP_URL: &str = "ASSAY_AMQP_URL";

/// The address on which the gateway listens: a setting of the executable that the stack reads, too.
pub(super) const GATEWAY_LISTEN: &str = "ASSAY_GATEWAY__LISTEN";

/// Location of export files: also a setting of the executable.
pub(super) const OBJECTS_URL: &str = "ASSAY_OBJECTS__URL";

/// Variables of the stack only: the `assay` executable refuses unknown settings.
pub(super) const NOT_FOR_THE_EXECUTABLE: [&str; 5] =
    [FOLDER, POSTGRES_URL, AMQP_URL, POSTGRES_URL_VARIABLE, AMQP_URL_VARIABLE];

/// Where the stack lives and which servers it uses.
#[derive(Clone, Debug)]
pub struct StackSettings {
    /// The folder of the stack.
    pub folder: PathBuf,
    /// An administrator's URL of the PostgreSQL server and database to use instead of a private server.
    /// The stack sets the passwords of its database users there, so two stacks must not share a server.
    pub postgres_url: Option<String>,
    /// The URL of the broker to use instead of a private one.
    pub amqp_url: Option<String>,
    /// `HOST:PORT` on which the gateway listens; port 0 takes a free one.
    pub gateway_listen: String,
    /// Where files of exports are kept, for example `s3://BUCKET/PREFIX`; by default in the stack's folder.
    pub objects_url: Option<String>,
}

impl StackSettings {
    /// Reads `ASSAY_STACK_DIR`, `ASSAY_POSTGRES_URL`, `ASSAY_AMQP_URL`, `ASSAY_GATEWAY__LISTEN` and `ASSAY_OBJECTS__URL`.
    ///
    /// # Errors
    /// When one of them is not valid UTF-8.
    pub fn from_environment() -> Result<Self> {
        Ok(Self {
            folder: variable(FOLDER).map_or_else(|| PathBuf::from(".local/stack"), PathBuf::from),
            postgres_url: text_variable(POSTGRES_URL)?,
            amqp_url: text_variable(AMQP_URL)?,
            gateway_listen: text_variable(GATEWAY_LISTEN)?.unwrap_or_else(|| "127.0.0.1:8080".to_owned()),
            objects_url: text_variable(OBJECTS_URL)?,
        })
    }
}
