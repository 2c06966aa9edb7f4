//! Reference documentation of the command line, and shell completions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::{Command, Stdio};

fn printed(arguments: &[&str]) -> String {
    // Independent of the terminal and environment of the test run.
    let output =
        Command::new(env!("CARGO_BIN_EXE_assay")).args(arguments).env_remove("COLUMNS").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn cli_reference_is_up_to_date() {
    let committed = include_str!("../../../proto-docs/cli.md");
    assert!(
        printed(&["reference"]) == committed,
        "the command line changed: run `make docs` and commit proto-docs/cli.md"
    );
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for word in ["import", "concurrency", "dead-letter"] {
            assert!(script.contains(word), "{word} is not in the completions of {shell}");
        }
    }
}

#[test]
fn bash_completes_commands_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("assay.bash");
    std::fs::write(&script, printed(&["completions", "bash"])).unwrap();
    for (words, last, expected) in [("assay im", 1, "import"), ("assay export --kind a", 3, "axis")] {
        let (before, word) = words.rsplit_once(' ').unwrap();
        let previous = before.rsplit(' ').next().unwrap();
        let test = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={last}; _assay assay '{word}' '{previous}'; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &test]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{words}: {output:?}");
    }
}

#[test]
fn closed_standard_output_is_not_an_error() {
    // Longer than a pipe's buffer.
    let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("openapi")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), b"".as_slice()), "{output:?}");
}

#[test]
fn failed_export_role_hints_at_the_client_command() {
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("export")
        .env("ASSAY_CONFIG", "/nonexistent/assay.toml")
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains("assay export --kind axis"), "{output:?}");
}
