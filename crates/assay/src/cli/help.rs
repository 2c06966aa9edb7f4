//! Help of `assay` itself: commands in groups, examples, environment, exit codes. clap writes the help of each command.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::Cli;

/// Every command that is not hidden. `export` is listed twice: with options it is a client, without them a role.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Use it", &["import", "export", "tickets", "score"]),
    (
        "Run it",
        &[
            "standalone",
            "migrate",
            "gateway",
            "ingest",
            "agent-registry",
            "scoring-worker",
            "export",
            "export-worker",
            "webhooks",
            "console",
        ],
    ),
    ("Operate it", &["keys", "retention", "dead-letter", "outbox", "capacity", "healthcheck"]),
    ("Judge and adapt the scorer", &["evaluate", "fit", "weights", "judge", "benchmark"]),
    ("Shells and documents", &["completions", "reference", "openapi", "help"]),
];

const EXPORT_ROLE_ABOUT: &str = "Without options, run export: the read model and the export jobs";

const EXAMPLES: [(&str, &str); 5] = [
    ("assay standalone", "everything in one process; prints a key"),
    ("assay import --agents agents.jsonl conversations.jsonl", "agents first, then conversations"),
    ("assay export --kind axis --from 2026-01-01 --to 2026-02-01 --out january.csv", "the scores of January"),
    ("assay tickets show ID", "one conversation's scores, with reasons"),
    ("assay score conversations.jsonl | jq .axis.score", "without a server"),
];

const ENVIRONMENT: [(&str, &str); 5] = [
    ("ASSAY_URL", "address of the gateway, for commands that use a service"),
    ("ASSAY_API_KEY", "API key for the gateway"),
    ("ASSAY_CONFIG", "a settings file, for commands that run or operate a service"),
    ("ASSAY_SECTION__KEY", "one setting; config/default.toml describes all of them"),
    ("NO_COLOR", "when set, help and logs have no colours"),
];

const EXIT_CODES: [(&str, &str); 7] = [
    ("0", "success; a service: orderly shutdown"),
    ("1", "failed; standard error says why and what to do"),
    ("2", "wrong usage"),
    ("3", "partial success: some conversations were refused (import, score)"),
    ("4", "timed out (export)"),
    ("130", "interrupted: a service by the second signal, import and export by the first"),
    ("141", "standard output was closed by its reader"),
];

/// Note in the help of a build without the feature `distributed` (ADR 30).
const WITHOUT_DISTRIBUTED: &str = "This build, made by `make run`, is for the standalone: it has no PostgreSQL, RabbitMQ, S3 \
                                   and OTLP. `cargo build --release` makes one that has them.";

pub fn command() -> Command {
    let mut command = Cli::command();
    // Adds the command `help`.
    command.build();
    let groups: Vec<String> = GROUPS
        .iter()
        .map(|(title, names)| {
            let lines: Vec<_> = names.iter().map(|name| (*name, about(&command, title, name))).collect();
            section(&command, title, &lines)
        })
        .collect();
    let owned = |lines: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        lines.iter().map(|(name, about)| (*name, (*about).to_owned())).collect()
    };
    let after = [
        examples(&command),
        section(&command, "Environment", &owned(&ENVIRONMENT)),
        section(&command, "Exit codes", &owned(&EXIT_CODES)),
        if cfg!(feature = "distributed") { String::new() } else { WITHOUT_DISTRIBUTED.to_owned() },
    ];
    let groups = groups.join("\n");
    let header = *command.get_styles().get_header();
    command
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{header}Options:{header:#}\n{{options}}{{after-help}}"
        ))
        .after_help(after.join("\n").trim_end().to_owned())
}

fn about(command: &Command, group: &str, name: &str) -> String {
    if (group, name) == ("Run it", "export") {
        return EXPORT_ROLE_ABOUT.to_owned();
    }
    let about = command.find_subcommand(name).and_then(Command::get_about);
    about.map(ToString::to_string).unwrap_or_default()
}

fn section(command: &Command, title: &str, lines: &[(&str, String)]) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut text = format!("{header}{title}:{header:#}\n");
    for (name, about) in lines {
        // Writing into a text cannot fail.
        let _ = writeln!(text, "  {literal}{name:width$}{literal:#}  {about}");
    }
    text
}

fn examples(command: &Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = format!("{header}Examples:{header:#}\n");
    for (example, about) in EXAMPLES {
        let _ = writeln!(text, "  {literal}{example}{literal:#}\n      {about}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_a_help_group() {
        let command = command();
        let mut commands: Vec<&str> =
            command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        grouped.dedup();
        assert_eq!(commands, grouped);
    }

    #[test]
    fn command_line_passes_debug_assert() {
        command().debug_assert();
    }

    #[test]
    fn help_examples_parse() {
        for (example, _) in EXAMPLES {
            let words = example.split(" | ").next().unwrap().split(' ');
            command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
