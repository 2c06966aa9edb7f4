//! Stub of the `assay` executable for the supervisor's tests: records its environment, serves `/readyz` and simulates
//! failures.
//!
//! `STAND_IN_FOLDER` takes one file of settings per subcommand. `STAND_IN_FAILS`, `STAND_IN_NOT_READY` and
//! `STAND_IN_STUBBORN` name the subcommand that fails, answers 503 or ignores SIGTERM.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use assay_testkit::launcher::ROLES;
use nix::sys::signal::{SigSet, Signal};

fn main() -> Result<ExitCode> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let [name, rest @ ..] = words.as_slice() else { bail!("name a subcommand") };
    record_settings(name)?;
    writeln!(io::stderr(), "{name} starts")?;
    if is_set_for("STAND_IN_FAILS", name) {
        writeln!(io::stderr(), "{name} fails as configured")?;
        return Ok(ExitCode::from(3));
    }
    match (*name, rest) {
        ("migrate", []) => {}
        ("keys", ["create", "--organization", organization]) => {
            writeln!(io::stdout(), "key-of-{organization}")?
        }
        (role, []) => {
            let role = ROLES.iter().find(|known| known.name == role);
            serve(name, role.with_context(|| format!("no such subcommand: {name}"))?.listen)?;
        }
        _ => bail!("no such subcommand: {words:?}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn record_settings(name: &str) -> Result<()> {
    let Some(folder) = env::var_os("STAND_IN_FOLDER").map(PathBuf::from) else { return Ok(()) };
    let mut text = String::new();
    for (name, value) in env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        if name.starts_with("ASSAY_") {
            writeln!(text, "{name}={value}")?;
        }
    }
    fs::write(folder.join(name), text).context("cannot record the settings")
}

fn serve(name: &str, setting: &str) -> Result<()> {
    if is_set_for("STAND_IN_STUBBORN", name) {
        let mut ignored = SigSet::empty();
        ignored.add(Signal::SIGTERM);
        ignored.thread_block()?;
    }
    let status = if is_set_for("STAND_IN_NOT_READY", name) { "503 Service Unavailable" } else { "200 OK" };
    let address = env::var_os(setting).and_then(|value| value.into_string().ok());
    let address = address.with_context(|| format!("{setting} is not set"))?;
    let listener = TcpListener::bind(&address).with_context(|| format!("cannot listen on {address}"))?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        // Read the whole head: closing a connection with unread bytes resets it and may lose the response.
        let request: Vec<String> = BufReader::new(&stream)
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let is_known = request.first().is_some_and(|line| line.starts_with("GET /readyz "));
        let status = if is_known { status } else { "404 Not Found" };
        // The client may have disconnected.
        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    Ok(())
}

fn is_set_for(variable: &str, name: &str) -> bool {
    env::var_os(variable).is_some_and(|value| value == name)
}
