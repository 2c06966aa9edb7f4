//! `proto-docs/openapi/assay.json` is what the executable prints.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Command;

#[test]
fn the_committed_document_is_the_generated_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_assay")).arg("openapi").output().unwrap();
    assert!(output.status.success());
    let generated = String::from_utf8(output.stdout).unwrap();
    let committed = include_str!("../../../proto-docs/openapi/assay.json");
    assert!(
        generated == committed,
        "the public API changed: run `make docs` and commit proto-docs/openapi/assay.json"
    );
}
