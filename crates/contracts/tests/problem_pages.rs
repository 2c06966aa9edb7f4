//! `proto-docs/problems` has a correct page for every problem code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assay_contracts::problem::{Problem, ProblemCode};

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto-docs/problems");
    let pages: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let codes: BTreeSet<String> = ProblemCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(pages, codes);
}

#[test]
fn pages_state_status_and_title_of_the_code() {
    for code in ProblemCode::ALL {
        let page = code.page();
        let head = format!("# {}\n\nStatus {}: {}\n", code.as_str(), code.status(), code.title());
        assert!(page.starts_with(&head), "{}: begin with {head}", code.as_str());
        assert!(page.contains("\n**When.** ") && page.contains("\n**What to do.** "), "{}", code.as_str());
    }
}

#[test]
fn examples_are_problems_of_their_code() {
    for code in ProblemCode::ALL {
        let example: Problem = serde_json::from_str(code.example()).unwrap();
        let expected = Problem {
            request_id: example.request_id.clone(),
            errors: example.errors.clone(),
            ticket_id: example.ticket_id,
            ..Problem::new(*code, example.detail.clone().unwrap())
        };
        assert_eq!(example, expected);
        assert!(example.request_id.is_some(), "{}", code.as_str());
    }
}
