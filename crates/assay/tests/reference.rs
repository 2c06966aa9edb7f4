//! What the command line tells of itself: its reference in the documentation, and completions for shells.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::{Command, Stdio};

fn printed(arguments: &[&str]) -> String {
    // Neither the terminal nor the environment of whoever runs the test counts.
    let output =
        Command::new(env!("CARGO_BIN_EXE_assay")).args(arguments).env_remove("COLUMNS").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_committed_reference_is_the_generated_one() {
    let committed = include_str!("../../../proto-docs/cli.md");
    assert!(
        printed(&["reference"]) == committed,
        "the command line changed: run `make docs` and commit proto-docs/cli.md"
    );
}

#[test]
fn the_reference_has_every_command_and_every_exit_code() {
    let reference = printed(&["reference"]);
    for part in
        ["\n## assay\n", "\n## assay import\n", "\n## assay keys create\n", "\n## assay tickets show\n"]
    {
        assert!(reference.contains(part), "{part:?} is missing");
    }
    for code in ["  0  ", "  1  ", "  2  ", "  3  ", "  4  ", "  130", "  141"] {
        assert!(reference.contains(&format!("\n{code}")), "exit code {code} is missing");
    }
    assert!(!reference.contains('\u{1b}'), "colours in a document");
}

#[test]
fn every_shell_gets_completions() {
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
fn a_reader_who_had_enough_is_no_error() {
    // Longer than a pipe holds.
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
fn the_export_role_says_how_a_file_is_fetched_when_it_cannot_start() {
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("export")
        .env("ASSAY_CONFIG", "/nonexistent/assay.toml")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && told.contains("assay export --kind axis"), "{output:?}");
}
