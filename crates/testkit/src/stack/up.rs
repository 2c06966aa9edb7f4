//! `assay-stack up`: starts the stack, supervises it in the foreground and stops it.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::{
    backends::Backends,
    environment,
    folder::StackFolder,
    gateway_address::GatewayAddress,
    pid_files::{PidFiles, SUPERVISOR},
    readiness,
    secrets::Secrets,
    settings::StackSettings,
    supervisor::{Event, StopRequested, Supervisor},
    unit::Unit,
    variables,
};
use crate::{
    database_users::ensure_services,
    files::{end_of_log, remove_if_there},
    launcher::{self, ROLES, Settings},
    process::{Output, ProcessSpec},
    signals,
};

/// How to start the stack.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// The `assay` executable; by default the one next to this executable.
    pub assay: Option<PathBuf>,
    /// How long the gateway may take to become ready once it is started.
    pub ready_within: Duration,
    /// How long each process may take to stop before it is killed.
    pub grace: Duration,
}

/// Starts the stack and supervises it until SIGINT, SIGTERM or SIGHUP, then stops it in order.
///
/// Prints the address on standard output when the gateway is ready; everything else goes to the log. Call it from
/// `main`, before any other thread exists.
///
/// # Errors
/// When a stack already runs in the folder, when the gateway's address is taken, or when a step fails; everything
/// that was started is then stopped again.
pub fn up(settings: &StackSettings, options: &UpOptions) -> Result<()> {
    let (event_sender, events) = mpsc::channel();
    let interruptions = event_sender.clone();
    // The receiver is gone when the supervisor is.
    signals::listen(move |interruption| drop(interruptions.send(Event::Interrupted(interruption))))?;

    let assay = executable(options.assay.as_deref())?;
    let folder = StackFolder::create(&settings.folder)?;
    let Some(_lock) = folder.try_lock()? else {
        let folder = folder.path().display();
        bail!("a stack already runs in {folder}: stop it, or name another folder with ASSAY_STACK_DIR");
    };
    let pid_files = PidFiles::new(folder.clone());
    pid_files.refuse_leftovers()?;
    let gateway = GatewayAddress::resolve(&settings.gateway_listen)?;
    pid_files.record(SUPERVISOR, std::process::id())?;
    // `key` must not use the addresses of the last run.
    remove_if_there(&folder.environment())?;

    let mut supervisor = Supervisor::new(pid_files.clone(), events, event_sender, options.grace);
    let stack = Stack { assay, folder, settings, gateway, ready_within: options.ready_within };
    let outcome = stack.start(&mut supervisor).and_then(|()| supervisor.supervise());
    supervisor.stop();
    pid_files.remove(SUPERVISOR)?;
    match outcome {
        Err(error) if !error.is::<StopRequested>() => Err(error),
        _ => Ok(()),
    }
}

/// The `assay` executable to run: a given one, or the one next to this executable.
pub(super) fn executable(given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => env::current_exe().context("cannot find this executable")?.with_file_name("assay"),
    };
    path.canonicalize().with_context(|| {
        format!(
            "there is no executable {}: build it with `cargo build` or name another with --assay",
            path.display()
        )
    })
}

struct Stack<'a> {
    assay: PathBuf,
    folder: StackFolder,
    settings: &'a StackSettings,
    gateway: GatewayAddress,
    ready_within: Duration,
}

impl Stack<'_> {
    fn start(&self, supervisor: &mut Supervisor) -> Result<()> {
        let secrets = Secrets::load_or_generate(&self.folder.secrets())?;
        let backends = Backends::start(supervisor, &self.folder, self.settings)?;
        ensure_services(&backends.administrator, &launcher::owners(), |user| secrets.password_of(user))?;
        let objects_url = self.settings.objects_url.as_deref();
        let settings = environment::settings(&self.folder, &backends, &secrets, self.gateway, objects_url)?;
        variables::write(&self.folder.environment(), &settings)?;
        self.migrate(supervisor, &settings)?;
        for role in ROLES {
            supervisor.start(Unit::new(self.process(role.name, &settings)))?;
        }
        readiness::wait(supervisor, &self.folder, &settings, self.gateway, self.ready_within)?;
        self.announce();
        Ok(())
    }

    fn migrate(&self, supervisor: &mut Supervisor, settings: &Settings) -> Result<()> {
        let spec = self.process("migrate", settings);
        let status = supervisor.run_to_end(&spec)?;
        if !status.success() {
            bail!("`assay migrate` ended with {status}; {}", end_of_log(&self.folder.log("migrate")));
        }
        Ok(())
    }

    /// The subcommand `name` of the executable as a process of that name.
    fn process(&self, name: &str, settings: &Settings) -> ProcessSpec {
        let spec = ProcessSpec::new(name, &self.assay, Output::File(self.folder.log(name))).arguments([name]);
        environment::apply(spec, settings)
    }

    /// Prints the address and what to do next. A closed standard output must not stop the stack.
    fn announce(&self) {
        let _ = writeln!(
            io::stdout(),
            "assay is ready at http://{}\n\
             make an API key: make stack-key ORGANIZATION=acme\n\
             logs: {}\n\
             stop everything: Ctrl-C",
            self.gateway.reachable(),
            self.folder.path().join("logs").display(),
        );
    }
}
