//! The import rules of ARCHITECTURE.md, checked against cargo's metadata and the sources.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cycles;
#[path = "../repository/mod.rs"]
mod repository;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use repository::{files_below, read, root};

const ROLES: [&str; 8] = [
    "gateway",
    "ingest",
    "agent-registry",
    "scoring-worker",
    "export",
    "export-worker",
    "webhooks",
    "console",
];

/// Roles without a store.
const STATELESS: [&str; 2] = ["gateway", "console"];

/// Workspace dependencies of each crate, without the prefix `assay-`.
fn imports() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours = |name: &str| name.strip_prefix("assay-").map(str::to_owned);
    let mut imports = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let shipped = dependencies.filter(|dependency| dependency["kind"].is_null());
        let imported = shipped.filter_map(|dependency| ours(dependency["name"].as_str().unwrap())).collect();
        imports.insert(ours(name).unwrap_or_else(|| name.to_owned()), imported);
    }
    imports
}

#[test]
fn crate_dependencies_follow_the_rules() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("contracts", &[][..]),
        ("platform", &["contracts"][..]),
        ("messaging", &["contracts", "platform"]),
        ("clients", &["contracts", "platform"]),
        ("encoder", &[]),
        ("scoring", &["contracts", "encoder"]),
        ("judge", &["contracts", "platform", "scoring"]),
        ("scoring-fit", &["contracts", "scoring"]),
        ("testkit", &["platform"]),
        ("gateway", &["clients", "contracts", "platform"]),
        ("console", &["clients", "contracts", "platform"]),
        ("agent-registry", &["contracts", "messaging", "platform"]),
        ("ingest", &["clients", "contracts", "messaging", "platform"]),
        ("scoring-worker", &["clients", "contracts", "judge", "messaging", "platform", "scoring"]),
        ("export", &["clients", "contracts", "messaging", "platform"]),
        ("webhooks", &["contracts", "messaging", "platform"]),
        ("export-worker", &["clients", "contracts", "export", "messaging", "platform"]),
    ]);
    for (name, imported) in imports() {
        let Some(allowed) = allowed.get(name.as_str()) else {
            assert_eq!(name, "assay", "a new crate: say in ARCHITECTURE.md and here what it may import");
            continue;
        };
        for import in imported {
            assert!(allowed.contains(&import.as_str()), "{name} must not import {import}");
        }
    }
}

/// Every source file below `crates/*/src`, with its path from the workspace's root.
fn sources() -> Vec<(String, String)> {
    let is_source = |name: &String| name.split('/').nth(2) == Some("src") && name.ends_with(".rs");
    let names = files_below("crates", &[]).into_iter().filter(is_source);
    let found: Vec<_> = names.map(|name| (name.clone(), read(&name))).collect();
    assert!(found.len() > 100, "the sources were not found");
    found
}

/// Whether code (not comments) has a path that begins with `path`: `diesel::`, not `a_diesel::`. `std::` before it is ignored.
fn uses(source: &str, path: &str) -> bool {
    source.lines().map(str::trim_start).filter(|line| !line.starts_with("//")).any(|line| {
        line.match_indices(path).any(|(at, _)| {
            let before = line[..at].trim_end_matches("std::").chars().next_back();
            !before.is_some_and(|before| before.is_alphanumeric() || "_:/\"".contains(before))
        })
    })
}

#[test]
fn libraries_are_used_in_their_modules_only() {
    let rules: [(&str, &[&str]); 4] = [
        (
            "diesel::",
            &[
                "/platform/src/db/",
                "/messaging/src/outbox/",
                "/messaging/src/inbox/",
                "/messaging/src/parking/",
                "/store/",
                "/testkit/",
            ],
        ),
        ("actix_web::", &["/platform/src/web/", "/http/", "/start.rs", "/gateway/src/app/forward_call.rs"]),
        ("lapin::", &["/messaging/src/bus/rabbit/", "/testkit/"]),
        // Also `vars`, `var_os` and `vars_os`.
        ("env::var", &["/platform/src/settings/", "/testkit/"]),
    ];
    let sources = sources();
    for (library, folders) in rules {
        let users = sources.iter().filter(|(_, source)| uses(source, library)).map(|(name, _)| name);
        let (allowed, forbidden): (Vec<_>, Vec<_>) =
            users.partition(|name| folders.iter().any(|folder| name.contains(folder)));
        assert!(forbidden.is_empty(), "{library} in {forbidden:#?}");
        assert!(!allowed.is_empty(), "nothing uses {library}: the rule cannot fail");
    }
}

#[test]
fn every_role_has_the_same_layout() {
    const FILES: [&str; 4] = ["lib.rs", "config.rs", "start.rs", "metrics.rs"];
    const FOLDERS: [&str; 5] = ["app", "consume", "domain", "http", "store"];
    let crates = root().join("crates");
    for role in ROLES {
        let has = |path: &str| crates.join(role).join(path).exists();
        let has_module = |name: &str| has(&format!("src/{name}.rs")) || has(&format!("src/{name}/mod.rs"));
        for name in ["lib", "config", "start", "app"] {
            assert!(has_module(name), "{role} has no {name}");
        }
        assert!(has("tests"), "{role} has no tests");
        assert!(
            has("src/app/run_maintenance.rs") || STATELESS.contains(&role),
            "{role} has no run_maintenance.rs"
        );
        assert_eq!(has("src/store"), has("migrations"), "{role}: a store has migrations");
        for database in ["postgres", "sqlite"].iter().filter(|_| has("src/store")) {
            assert!(has_module(&format!("store/{database}")), "{role} has no store for {database}");
            assert!(has(&format!("migrations/{database}")), "{role} has no migrations for {database}");
        }
        for entry in fs::read_dir(crates.join(role).join("src")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_known =
                FILES.contains(&name.as_str()) || (FOLDERS.contains(&name.as_str()) && has_module(&name));
            assert!(is_known, "src/{name} of {role} is not in the layout of ARCHITECTURE.md");
        }
    }
}

#[test]
fn source_files_have_at_most_400_lines() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|(name, source)| (name, source.lines().count()))
        .filter(|(_, lines)| *lines > 400)
        .map(|(name, lines)| format!("{name}: {lines}"))
        .collect();
    assert!(long.is_empty(), "split these files: {long:?}");
}

#[test]
fn every_event_type_is_fuzzed() {
    let target = read("fuzz/fuzz_targets/event.rs");
    let mut kinds = 0;
    for (name, source) in sources().iter().filter(|(name, _)| name.starts_with("crates/contracts/")) {
        for event in source.split("\nevent!(").skip(1).filter_map(|rest| rest.split(',').next()) {
            kinds += 1;
            let line = format!("decodes_and_round_trips::<{event}>");
            assert!(target.contains(&line), "{event} of {name} is not in fuzz/fuzz_targets/event.rs");
        }
    }
    assert!(kinds >= 4, "the events were not found");
}
