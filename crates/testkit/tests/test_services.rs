//! The runner `assay-test-services`.

use std::{
    process::{Command, Output, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use assay_testkit::wait::wait_for;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

fn runner(arguments: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay-test-services"));
    command.args(arguments).args(["--", "sh", "-c", script]).stdin(Stdio::null());
    command.env_remove("ASSAY_TEST_POSTGRES_URL").env_remove("ASSAY_TEST_AMQP_URL");
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn command_gets_the_requested_servers() -> Result<()> {
    let show = "echo \"${ASSAY_TEST_POSTGRES_URL%%:*} ${ASSAY_TEST_AMQP_URL%%:*}\"";
    for (arguments, expected) in [
        (&["--postgres"][..], "postgres"),
        (&["--rabbit"], "amqp"),
        (&["--postgres", "--rabbit"], "postgres amqp"),
    ] {
        let output = runner(arguments, show).output()?;
        ensure!(text(&output) == expected, "{arguments:?}: {output:?}");
    }
    Ok(())
}

#[test]
fn exit_code_is_the_commands() -> Result<()> {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + 9)] {
        let output = runner(&["--postgres"], script).output()?;
        ensure!(output.status.code() == Some(code), "{script}: {output:?}");
    }
    Ok(())
}

#[test]
fn stop_signal_is_forwarded_to_the_command() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let ready = folder.path().join("ready");
    let script = format!("trap 'exit 21' TERM; touch {}; while :; do sleep 0.1; done", ready.display());
    let mut child = runner(&["--postgres"], &script).spawn()?;
    wait_for("the command", Duration::from_secs(60), || Ok(ready.exists().then_some(())))?;
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM)?;
    let status = wait_for("the runner to end", Duration::from_secs(20), || Ok(child.try_wait()?))?;
    ensure!(status.code() == Some(21), "{status}");
    Ok(())
}

#[test]
fn server_and_command_are_required() -> Result<()> {
    for arguments in [&["--", "true"][..], &["--postgres"], &["--postgres", "--"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_assay-test-services")).args(arguments).output()?;
        ensure!(output.status.code() == Some(2), "{arguments:?}: {output:?}");
    }
    Ok(())
}

#[test]
fn tests_use_the_runners_servers() -> Result<()> {
    let url = std::env::var_os("ASSAY_TEST_POSTGRES_URL");
    let found = assay_testkit::services::postgres()?;
    if let Some(url) = url {
        ensure!(found == url.to_str().context("a URL is text")?);
    } else {
        ensure!(found.starts_with("postgres://assay_admin:"), "without a runner the server is our own");
    }
    Ok(())
}
