//! A failed start of the stack: the error names the reason, and nothing is left running.

use std::net::TcpListener;

use anyhow::{Result, ensure};

use crate::harness::TestStack;

/// Runs `assay-stack`, which must fail, and returns its error output.
fn failure(stack: &TestStack, arguments: &[&str]) -> Result<String> {
    let output = stack.run(arguments)?;
    ensure!(!output.status.success(), "expected a failure: {output:?}");
    ensure!(output.stdout.is_empty(), "standard output is for results: {output:?}");
    Ok(String::from_utf8(output.stderr)?)
}

#[test]
fn second_stack_in_one_folder_is_refused() -> Result<()> {
    let stack = TestStack::on_external_servers()?;
    let _supervisor = stack.up()?;
    let text = failure(&stack, &["up"])?;
    ensure!(text.contains("a stack already runs in"), "{text}");
    Ok(())
}

#[test]
fn gateway_address_in_use_is_refused_before_start() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let stack = TestStack::on_private_servers()?.with("ASSAY_GATEWAY__LISTEN", &address);
    let text = failure(&stack, &["up"])?;
    ensure!(text.contains(&address) && text.contains("ASSAY_GATEWAY__LISTEN"), "{text}");
    ensure!(!stack.folder().join("postgres").exists());
    stack.ensure_no_processes_left()
}

#[test]
fn failed_migration_is_shown_and_stops_everything() -> Result<()> {
    let stack = TestStack::on_external_servers()?.with("STAND_IN_FAILS", "migrate");
    let text = failure(&stack, &["up"])?;
    ensure!(
        text.contains("`assay migrate` ended with") && text.contains("migrate fails as configured"),
        "{text}"
    );
    stack.ensure_no_processes_left()
}

#[test]
fn unready_service_is_named_with_its_log() -> Result<()> {
    // A process that fails is started again and again: it "does not answer" or "does not stay alive".
    for (variable, reason) in
        [("STAND_IN_NOT_READY", "answers /readyz with 503"), ("STAND_IN_FAILS", "does not")]
    {
        let stack = TestStack::on_external_servers()?.with(variable, "gateway");
        let text = failure(&stack, &["up", "--ready-within", "5"])?;
        ensure!(text.contains("not ready after 5 s") && text.contains(reason), "{text}");
        ensure!(text.contains("logs/gateway.log") && !text.contains("logs/ingest.log"), "{text}");
        stack.ensure_no_processes_left()?;
    }
    Ok(())
}

#[test]
fn missing_executable_is_named() -> Result<()> {
    let stack = TestStack::on_private_servers()?;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_assay-stack"))
        .args(["up", "--assay", "/no/such/assay"])
        .env("ASSAY_STACK_DIR", stack.folder())
        .output()?;
    let text = String::from_utf8(output.stderr)?;
    ensure!(!output.status.success() && text.contains("/no/such/assay"), "{text}");
    Ok(())
}

#[test]
fn url_without_database_is_refused() -> Result<()> {
    let stack =
        TestStack::on_private_servers()?.with("ASSAY_POSTGRES_URL", "postgres://admin:secret@db.example");
    let text = failure(&stack, &["up"])?;
    ensure!(text.contains("ASSAY_POSTGRES_URL") && !text.contains("secret"), "{text}");
    stack.ensure_no_processes_left()
}

#[test]
fn key_needs_a_running_stack() -> Result<()> {
    let stack = TestStack::on_external_servers()?;
    let text = failure(&stack, &["key", "--organization", "acme"])?;
    ensure!(text.contains("make stack"), "{text}");
    drop(stack.up()?);
    let text = failure(&stack, &["key", "--organization", "acme"])?;
    ensure!(text.contains("no stack runs in"), "{text}");
    Ok(())
}
