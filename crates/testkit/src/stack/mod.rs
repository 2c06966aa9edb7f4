//! The local stack: every role as its own process on PostgreSQL and RabbitMQ, supervised in the foreground.
//!
//! [`up`] starts and supervises, [`down`] cleans up after a supervisor that crashed, [`print_key`] creates an API key.
//! What they share is a folder, by default `.local/stack`:
//!
//! | path | what |
//! |---|---|
//! | `postgres/`, `rabbitmq/`, `objects/` | data |
//! | `logs/NAME.log` | the output of each process |
//! | `pids/NAME.pid` | the process id of each service, of `postgres` and of `rabbitmq` |
//! | `processes/NAME` | the same with the start time, for `down`: a pid alone may have been reused |
//! | `secrets` | generated once; readable by the owner only |
//! | `env` | the settings of all processes, rewritten at every start; readable by the owner only |
//! | `lock` | held by the supervisor while it lives |

mod backends;
mod down;
mod environment;
mod folder;
mod gateway_address;
mod key;
mod pid_files;
mod readiness;
mod secrets;
mod server_names;
mod settings;
mod supervisor;
mod unit;
mod up;
mod variables;

use std::time::Duration;

pub use self::{
    down::down,
    key::print_key,
    settings::StackSettings,
    up::{UpOptions, up},
};

/// Default grace period before a process is killed.
pub const GRACE: Duration = Duration::from_secs(15);
