//! Runs the broker and its port mapper, and verifies that the broker that answers is ours.

use std::{
    env,
    fs::{self, Permissions},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{binaries::RabbitBinaries, handshake};
use crate::{
    files::{end_of_log, write_private},
    identity::processes_with_variable,
    ports::free_port,
    process::{Output, ProcessSpec, Signal},
    random::hex_secret,
    search_path,
};

/// The broker's user. The well-known `guest` would give access to every user of the machine.
const USER: &str = "assay";

/// The default of RabbitMQ 4; that of older brokers is larger.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Names the file into which the broker writes its process id. Its value also identifies every process that the broker starts.
const PID_FILE: &str = "RABBITMQ_PID_FILE";

/// A prepared broker, which can be started repeatedly on the same ports and data.
#[derive(Debug)]
pub(crate) struct RabbitNode {
    binaries: RabbitBinaries,
    folder: PathBuf,
    log: PathBuf,
    identity: NodeIdentity,
    port: u16,
    distribution_port: u16,
    epmd_port: u16,
}

/// Does not change while the data exists: the data belongs to the node's name, and the user is created once.
#[derive(Debug)]
struct NodeIdentity {
    name: String,
    password: String,
}

impl RabbitNode {
    /// Finds the programs, writes the node's configuration into `folder` and chooses free ports.
    pub(crate) fn prepare(folder: &Path, log: &Path) -> Result<Self> {
        let binaries = RabbitBinaries::installed().context("cannot prepare a private RabbitMQ")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = folder.canonicalize().with_context(|| format!("cannot resolve {}", folder.display()))?;
        // The folder holds the Erlang cookie and messages.
        fs::set_permissions(&folder, Permissions::from_mode(0o700))
            .with_context(|| format!("cannot close {} to others", folder.display()))?;
        let node = Self {
            binaries,
            identity: NodeIdentity::load_or_generate(&folder)?,
            log: log.to_owned(),
            port: free_port()?,
            distribution_port: free_port()?,
            epmd_port: free_port()?,
            folder,
        };
        node.write_configuration()?;
        Ok(node)
    }

    /// The Erlang port mapper, in the foreground. Without it Erlang would start one that outlives the test.
    pub(crate) fn epmd(&self) -> ProcessSpec {
        ProcessSpec::new("epmd", &self.binaries.epmd, Output::File(self.log.clone()))
            .arguments(["-port", &self.epmd_port.to_string(), "-address", "127.0.0.1"])
            .clean_environment()
            .folder("/")
    }

    /// The Erlang VM that is the broker, in the foreground.
    pub(crate) fn broker(&self) -> ProcessSpec {
        let file = |name: &str| self.folder.join(name);
        ProcessSpec::new("rabbitmq", &self.binaries.server, Output::File(self.log.clone()))
            .clean_environment()
            .folder(&self.folder)
            .variable("PATH", env::join_paths(search_path::folders()).unwrap_or_default())
            .variable("HOME", &self.folder)
            .variable("LC_ALL", "C.UTF-8")
            // The script then becomes the Erlang VM instead of running it as a child behind a signal trap.
            .variable("RUNNING_UNDER_SYSTEMD", "true")
            .variable("ERL_EPMD_ADDRESS", "127.0.0.1")
            .variable("ERL_EPMD_PORT", self.epmd_port.to_string())
            .variable("ERL_CRASH_DUMP_SECONDS", "0")
            .variable("RABBITMQ_NODENAME", format!("{}@localhost", self.identity.name))
            .variable("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .variable("RABBITMQ_NODE_PORT", self.port.to_string())
            .variable("RABBITMQ_DIST_PORT", self.distribution_port.to_string())
            .variable("RABBITMQ_MNESIA_BASE", file("data"))
            .variable("RABBITMQ_LOG_BASE", file("logs"))
            .variable("RABBITMQ_LOGS", "-")
            .variable(PID_FILE, file("pid"))
            .variable("RABBITMQ_CONFIG_FILE", file("rabbitmq.conf"))
            .variable("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .variable("RABBITMQ_ADVANCED_CONFIG_FILE", file("advanced.config"))
            .variable("RABBITMQ_ENABLED_PLUGINS_FILE", file("enabled_plugins"))
            .variable("RABBITMQ_GENERATED_CONFIG_DIR", file("generated"))
            .variable(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
            )
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn amqp_url(&self) -> String {
        format!("amqp://{USER}:{}@127.0.0.1:{}/%2f", self.identity.password, self.port)
    }

    pub(crate) fn epmd_answers(&self) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.epmd_port));
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
    }

    /// `Some` once the broker answers.
    ///
    /// # Errors
    /// When another broker answers, or ours runs as another process than our child.
    pub(crate) fn answers(&self, pid: u32) -> Result<Option<()>> {
        let Some(start) = handshake::connection_start(self.port) else { return Ok(None) };
        // The default name of a cluster is that of its first node, with the full name of the host.
        let name = format!("{}@", self.identity.name);
        let is_ours = start.windows(name.len()).any(|window| window == name.as_bytes());
        ensure!(is_ours, "the broker on port {} is not {name}localhost: it is not ours", self.port);
        let written = fs::read_to_string(self.folder.join("pid")).context("RabbitMQ wrote no pid file")?;
        ensure!(
            written.trim() == pid.to_string(),
            "RabbitMQ runs as process {}, not as our child {pid}: this version's start script is not supported",
            written.trim()
        );
        Ok(Some(()))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the last start failed because a port was in use.
    pub(crate) fn found_a_port_taken(&self) -> bool {
        let end = self.end_of_log();
        end.contains("eaddrinuse") || end.contains("Address already in use") || end.contains("port in use")
    }

    /// The end of the broker's log, for an error message.
    pub(crate) fn end_of_log(&self) -> String {
        end_of_log(&self.log)
    }

    fn write_configuration(&self) -> Result<()> {
        for folder in ["data", "logs", "generated"] {
            let folder = self.folder.join(folder);
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let configuration = format!(
            "listeners.tcp.1 = 127.0.0.1:{port}\n\
             default_user = {USER}\n\
             default_pass = {password}\n\
             log.console = true\n\
             log.console.level = warning\n\
             max_message_size = {MAX_MESSAGE_BYTES}\n\
             disk_free_limit.absolute = 50MB\n",
            port = self.port,
            password = self.identity.password,
        );
        write_private(&self.folder.join("rabbitmq.conf"), &configuration)?;
        write_private(&self.folder.join("enabled_plugins"), "[].\n")
    }
}

/// Kills the processes of an earlier run in this folder: helper programs of the Erlang VM outlive it briefly. True when
/// none is left.
///
/// Call it only while no broker of ours runs there.
pub(crate) fn clear_leftovers(folder: &Path) -> Result<bool> {
    let leftovers = processes_with_variable(PID_FILE, &folder.join("pid"))?;
    for leftover in &leftovers {
        leftover.signal(Signal::SIGKILL)?;
    }
    Ok(leftovers.is_empty())
}

impl NodeIdentity {
    fn load_or_generate(folder: &Path) -> Result<Self> {
        let file = folder.join("node");
        if !file.exists() {
            write_private(&file, &format!("assay{} {}\n", hex_secret(6)?, hex_secret(24)?))?;
        }
        let text = fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}: was it written by another user?", file.display()))?;
        let (name, password) = text
            .trim()
            .split_once(' ')
            .with_context(|| format!("{} is damaged: remove {}", file.display(), folder.display()))?;
        Ok(Self { name: name.to_owned(), password: password.to_owned() })
    }
}
