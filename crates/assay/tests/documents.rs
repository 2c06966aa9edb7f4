//! Documents refer only to things that exist: files, commands with their options, make targets, settings and variables.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod repository;
mod settings;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use repository::{files_below, read, root};
use settings::{defaults, is_setting, variables};

/// Folders that are not searched: they have no documents of the project.
const SKIPPED_FOLDERS: [&str; 5] = ["target", ".git", ".local", "data", "node_modules"];

/// Whether the word is a placeholder, to be replaced by a value.
fn is_placeholder(word: &str) -> bool {
    word.chars().any(|character| character.is_ascii_uppercase() || "<{[|…$\"'".contains(character))
}

/// Every document with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let names = files_below("", &SKIPPED_FOLDERS).into_iter().filter(|name| name.ends_with(".md"));
    let found: Vec<_> = names.map(|name| (root().join(&name), read(&name))).collect();
    assert!(found.len() > 50, "{}", found.len());
    found
}

/// Lines of code: fenced blocks and inline code.
fn code_lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 1 {
            let joined = part.replace("\\\n", " ");
            found.extend(
                joined.lines().skip(1).map(|line| line.split(" #").next().unwrap_or_default().to_owned()),
            );
        } else {
            let joined = part.replace('\n', " ");
            found.extend(joined.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

#[test]
fn links_in_documents_resolve() {
    for (path, text) in documents() {
        for (at, found) in text.match_indices("](") {
            let target = text[at + found.len()..].split(')').next().unwrap();
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            // Files in `changes` become part of CHANGELOG.md.
            let folder = path.parent().unwrap();
            let linked = if folder.ends_with("changes") { root().join(file) } else { folder.join(file) };
            assert!(linked.exists(), "{}: there is no {target}", path.display());
        }
    }
}

#[test]
fn documented_commands_and_options_exist() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut commands = 0;
    for (path, text) in documents() {
        for line in code_lines(&text) {
            for words in assay_commands(&line) {
                let (help, options) = help_of(&words, &mut helps);
                let help = help.unwrap_or_else(|| panic!("{}: no such command: {line}", path.display()));
                for option in options {
                    assert!(help.contains(&option), "{}: no option {option}: {line}", path.display());
                }
                commands += 1;
            }
        }
    }
    assert!(commands > 40, "{commands}");
}

/// The arguments of each call of `assay` (or a path that ends with it) in a line.
fn assay_commands(line: &str) -> Vec<Vec<String>> {
    let calls = line.split(['|', ';', '&']).map(|part| part.trim().trim_start_matches("$("));
    calls
        .filter_map(|call| {
            let mut words = call.split_whitespace();
            let program = words.find(|word| !word.contains('='))?;
            let is_ours = program == "assay" || program.ends_with("release/assay");
            is_ours.then(|| words.map(str::to_owned).collect())
        })
        .collect()
}

/// The help of the command at the beginning of `words` (`None` if there is none), and the options in `words`.
fn help_of(words: &[String], helps: &mut BTreeMap<Vec<String>, String>) -> (Option<String>, Vec<String>) {
    let mut command: Vec<String> = Vec::new();
    let mut help = cached_help(&command, helps);
    for word in words {
        let name = word.split('|').next().unwrap_or_default();
        let is_listed = help.as_ref().is_some_and(|help| {
            help.lines().any(|line| line.split_whitespace().next() == Some(name) && line.starts_with("  "))
        });
        if !is_command_name(name) || !is_listed {
            break;
        }
        command.push(name.to_owned());
        help = cached_help(&command, helps);
    }
    let options = words.iter().filter_map(|word| {
        let option = word.trim_matches(['[', ']', ',', '.', ')']).split(['=', '|']).next()?;
        (option.starts_with("--") && option.len() > 2).then(|| option.to_owned())
    });
    let is_unknown_command = command.is_empty() && words.first().is_some_and(|first| is_command_name(first));
    (help.filter(|_| !is_unknown_command), options.collect())
}

/// Whether the word looks like a command, whether or not there is one of that name.
fn is_command_name(word: &str) -> bool {
    let is_lower_case = word.chars().all(|character| character.is_ascii_lowercase() || character == '-');
    is_lower_case && !word.is_empty() && !word.starts_with('-')
}

fn cached_help(command: &[String], helps: &mut BTreeMap<Vec<String>, String>) -> Option<String> {
    if let Some(known) = helps.get(command) {
        return Some(known.clone());
    }
    let output = Command::new(env!("CARGO_BIN_EXE_assay")).args(command).arg("--help").output().unwrap();
    if !output.status.success() {
        return None;
    }
    let help = String::from_utf8(output.stdout).unwrap();
    helps.insert(command.to_vec(), help.clone());
    Some(help)
}

#[test]
fn documented_make_targets_and_scripts_exist() {
    let makefile = read("Makefile");
    for (path, text) in documents() {
        for line in code_lines(&text) {
            if let Some(arguments) = line.trim().strip_prefix("make ") {
                let target = arguments.split_whitespace().find(|word| !word.contains('='));
                let Some(target) = target.filter(|target| !is_placeholder(target)) else { continue };
                assert!(makefile.contains(&format!("\n{target}:")), "{}: make {target}", path.display());
            }
            for word in line.split_whitespace().filter(|word| word.starts_with("scripts/")) {
                assert!(
                    root().join(word.trim_end_matches([',', '.'])).exists(),
                    "{}: {word}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn changelog_fragments_have_valid_names() {
    let mut changes = 0;
    for name in files_below("changes", &[]) {
        if name == "changes/template.md.jinja" {
            continue;
        }
        let text = read(&name);
        let kind = name.split('.').nth(1).unwrap_or_default();
        assert!(["added", "changed", "removed", "fixed", "security"].contains(&kind), "{name}");
        assert!(name.ends_with(".md") && text.starts_with("- ") && text.ends_with('\n'), "{name}");
        changes += 1;
    }
    assert!(changes > 0 || read("CHANGELOG.md").contains("## ["));
}

#[test]
fn documented_variables_are_settings() {
    let defaults = defaults();
    for (path, text) in documents() {
        for name in variables(&text) {
            let Some((section, _)) = name["ASSAY_".len()..].split_once("__") else { continue };
            let is_pattern = name.ends_with("__") || ["SECTION", "X"].contains(&section);
            assert!(is_pattern || is_setting(&name, &defaults), "{}: {name} is no setting", path.display());
        }
    }
}
