//! Alerts, dashboard, runbooks and the list of metrics are consistent with each other and with the code.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

mod repository;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use repository::{files_below, read, root};

/// Metrics of other exporters.
const FOREIGN_METRICS: [&str; 3] =
    ["up", "rabbitmq_detailed_queue_messages", "rabbitmq_detailed_queue_consumers"];

/// Sections of the settings that runbooks refer to.
const SECTIONS: [&str; 8] =
    ["bus", "ingest", "gateway", "scoring", "export_worker", "telemetry", "services", "webhooks"];

/// Suffixes of a histogram's series.
const HISTOGRAM_SUFFIXES: [&str; 3] = ["_bucket", "_count", "_sum"];

#[test]
fn documented_metrics_match_the_code() {
    let in_code = metrics_in_code();
    assert!(in_code.len() > 20, "{in_code:?}");
    assert_eq!(documented_metrics(), in_code, "documented on the left, in the code on the right");
}

#[test]
fn alerts_and_dashboards_use_existing_metrics() {
    let documented = documented_metrics();
    let expressions = [alert_expressions(), dashboard_expressions()].concat();
    assert!(expressions.len() > 40, "{}", expressions.len());
    for expression in expressions {
        for name in metric_names(&expression) {
            let base =
                HISTOGRAM_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
            let is_known = documented.contains(&name) || documented.contains(base);
            assert!(is_known || FOREIGN_METRICS.contains(&name.as_str()), "{name} in: {expression}");
        }
    }
}

#[test]
fn alerts_and_runbooks_match() {
    let page = |alert: String| format!("proto-docs/runbooks/{alert}.md");
    let expected: BTreeSet<String> = alert_values("alert: ").map(page).collect();
    assert_eq!(BTreeSet::from_iter(files_below("proto-docs/runbooks", &[])), expected);
    assert_eq!(BTreeSet::from_iter(alert_values("runbook_url: ")), expected);
}

#[test]
fn runbook_commands_and_settings_exist() {
    let settings = read("config/default.toml");
    for path in files_below("proto-docs/runbooks", &[]) {
        let page = read(&path).replace("\n   ", " ").replace("\n  ", " ");
        for quoted in page.split('`').skip(1).step_by(2) {
            if let Some(arguments) = quoted.strip_prefix("assay ") {
                let subcommands = arguments.split(' ').take_while(|word| !word.starts_with('-'));
                let subcommands: Vec<_> =
                    subcommands.filter(|word| word.chars().all(is_command_character)).collect();
                let help = Command::new(env!("CARGO_BIN_EXE_assay")).args(subcommands).arg("--help").output();
                assert!(help.unwrap().status.success(), "{path}: {quoted}");
            }
            let section = quoted.split_once('.').map_or("", |(section, _)| section);
            if SECTIONS.contains(&section) && !quoted.contains('*') {
                let key = quoted.rsplit('.').next().unwrap();
                assert!(settings.contains(&format!("\n{key} = ")), "{path}: {quoted}");
            }
        }
    }
}

#[test]
fn promtool_accepts_and_tests_the_alerts() {
    if !promtool(&["--version"]) {
        assert!(std::env::var_os("CI").is_none(), "promtool is missing: install Debian's package prometheus");
        eprintln!("skipped: promtool (of Debian's package prometheus) is not installed");
        return;
    }
    assert!(promtool(&["check", "rules", "deploy/observability/alerts/assay.yml"]));
    assert!(promtool(&["test", "rules", "deploy/observability/tests/assay.yml"]));
    // The dashboard's expressions as rules, to check their syntax.
    let rules: String = dashboard_expressions()
        .iter()
        .enumerate()
        .map(|(number, expression)| {
            let expression = expression.replace("$__rate_interval", "5m");
            format!("  - record: panel:{number}\n    expr: {}\n", Value::from(expression))
        })
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("groups:\n- name: dashboard\n  rules:\n{rules}")).unwrap();
    assert!(promtool(&["check", "rules", file.path().to_str().unwrap()]), "{rules}");
    let tests = read("deploy/observability/tests/assay.yml");
    for alert in alert_values("alert: ") {
        let fires = tests
            .match_indices(&format!("alertname: {alert}\n"))
            .any(|(at, found)| tests[at + found.len()..].trim_start().starts_with("exp_alerts:"));
        assert!(fires, "no test makes {alert} fire");
    }
}

fn promtool(arguments: &[&str]) -> bool {
    let output = Command::new("promtool").args(arguments).current_dir(root()).output();
    output.is_ok_and(|output| {
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        eprintln!("{out}{error}");
        output.status.success()
    })
}

fn is_command_character(character: char) -> bool {
    character.is_ascii_lowercase() || character == '-'
}

/// Metric names in the sources' `metrics.rs` files.
fn metrics_in_code() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files_below("crates", &[]) {
        if path.contains("/src/") && path.ends_with("/metrics.rs") {
            let source = read(&path);
            let quoted = source.split('"').skip(1).step_by(2);
            names.extend(quoted.filter(|text| is_metric(text)).map(str::to_owned));
        }
    }
    names
}

fn is_metric(text: &str) -> bool {
    text.starts_with("assay_")
        && text.chars().all(|character| character.is_ascii_lowercase() || character == '_')
}

fn documented_metrics() -> BTreeSet<String> {
    let document = read("proto-docs/metrics.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

fn alerts() -> String {
    read("deploy/observability/alerts/assay.yml")
}

/// The values of `key` in the file of alerts.
fn alert_values(key: &str) -> impl Iterator<Item = String> {
    let found = |line: &str| Some(line.trim_start_matches([' ', '-']).strip_prefix(key)?.to_owned());
    alerts().lines().filter_map(found).collect::<Vec<_>>().into_iter()
}

/// The value of each `expr:`, up to the next key.
fn alert_expressions() -> Vec<String> {
    let alerts = alerts();
    let after = alerts.split("expr: ").skip(1);
    after
        .map(|text| {
            text.split("\n        for:").next().unwrap().split("\n        labels:").next().unwrap().to_owned()
        })
        .collect()
}

fn dashboard_expressions() -> Vec<String> {
    let text = read("deploy/observability/dashboards/assay.json");
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// Metric names: the words that are not functions, labels or strings.
fn metric_names(expression: &str) -> Vec<String> {
    let without_texts: String = expression.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    let words = without_texts.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let names =
        words.filter(|word| word.starts_with("assay_") || word.starts_with("rabbitmq_") || *word == "up");
    names.map(str::to_owned).collect()
}
