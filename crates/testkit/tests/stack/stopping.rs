//! The end of a stack: by one stop signal, by two, or by a crash.

use std::time::Duration;

use anyhow::{Result, ensure};
use assay_testkit::wait::wait_for;
use nix::sys::signal::Signal;

use crate::harness::{PROCESSES, TestStack};

/// Four phases of 15 s are the worst case.
const STOP_LIMIT: Duration = Duration::from_secs(75);

#[test]
fn stop_signal_stops_everything() -> Result<()> {
    let stack = TestStack::on_private_servers()?;
    let mut supervisor = stack.up()?;
    ensure!(stack.processes()?.len() > PROCESSES.len(), "the test sees the processes that must go");
    supervisor.signal(Signal::SIGTERM)?;
    let status = supervisor.wait(STOP_LIMIT)?;
    ensure!(status.success(), "{status}");
    stack.ensure_no_processes_left()
}

#[test]
fn sigint_and_sighup_stop_the_stack() -> Result<()> {
    for signal in [Signal::SIGINT, Signal::SIGHUP] {
        let stack = TestStack::on_external_servers()?;
        let mut supervisor = stack.up()?;
        supervisor.signal(signal)?;
        ensure!(supervisor.wait(STOP_LIMIT)?.success(), "{signal}");
        stack.ensure_no_processes_left()?;
    }
    Ok(())
}

#[test]
fn second_stop_signal_kills_at_once() -> Result<()> {
    let stack = TestStack::on_external_servers()?.with("STAND_IN_STUBBORN", "ingest");
    // Without a second signal it would take longer than the limit.
    let mut supervisor = stack.up_with(&["--grace", "3600"])?;
    supervisor.signal(Signal::SIGTERM)?;
    wait_for("the gateway to stop", STOP_LIMIT, || {
        Ok((!stack.pid_files()?.contains(&"gateway".to_owned())).then_some(()))
    })?;
    ensure!(stack.pid_files()?.contains(&"ingest".to_owned()), "the stubborn service still runs");
    supervisor.signal(Signal::SIGTERM)?;
    supervisor.wait(STOP_LIMIT)?;
    stack.ensure_no_processes_left()
}

#[test]
fn down_stops_a_supervised_stack() -> Result<()> {
    let stack = TestStack::on_external_servers()?;
    let mut supervisor = stack.up()?;
    let output = stack.run(&["down"])?;
    ensure!(output.status.success(), "{output:?}");
    ensure!(supervisor.wait(Duration::from_secs(5))?.success());
    stack.ensure_no_processes_left()
}

#[test]
fn down_cleans_up_after_a_crashed_supervisor() -> Result<()> {
    let stack = TestStack::on_private_servers()?;
    let mut supervisor = stack.up()?;
    supervisor.crash()?;
    ensure!(stack.processes()?.len() > PROCESSES.len(), "everything still runs without its supervisor");

    let refused = stack.run(&["up"])?;
    let complaint = String::from_utf8(refused.stderr)?;
    ensure!(!refused.status.success() && complaint.contains("make stack-down"), "{complaint}");

    let output = stack.run(&["down"])?;
    ensure!(output.status.success(), "{output:?}");
    stack.ensure_no_processes_left()?;

    let mut again = stack.up()?;
    again.signal(Signal::SIGTERM)?;
    ensure!(again.wait(STOP_LIMIT)?.success());
    stack.ensure_no_processes_left()
}

#[test]
fn down_without_a_stack_succeeds() -> Result<()> {
    let stack = TestStack::on_private_servers()?;
    let output = stack.run(&["down"])?;
    ensure!(output.status.success(), "{output:?}");
    ensure!(!stack.folder().exists(), "nothing is created either");
    Ok(())
}
