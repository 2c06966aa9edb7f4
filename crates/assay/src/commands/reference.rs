//! `assay completions` and `assay reference`: shell completions and the generated reference of the command line.

use std::io::{Write, stdout};

use anyhow::Result;
use clap::Command;
use clap_complete::{Shell, generate};

use crate::cli;

/// Width of the help texts in the document.
const WIDTH: usize = 100;

pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut cli::command(), "assay", &mut script);
    stdout().write_all(&script)?;
    Ok(())
}

/// Prints `proto-docs/cli.md`: the help of every command.
pub fn markdown() -> Result<()> {
    let mut document = String::from(
        "# The command line\n\n\
         The help of every command, as `assay COMMAND --help` shows it. Made by `make docs`; a test compares it with the \
         code.\n",
    );
    let mut command = cli::command().term_width(WIDTH);
    command.build();
    describe(&mut command, "assay", &mut document);
    stdout().write_all(document.as_bytes())?;
    Ok(())
}

fn describe(command: &mut Command, name: &str, document: &mut String) {
    let help = command.clone().term_width(WIDTH).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    document.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        let name = format!("{name} {}", sub.get_name());
        describe(sub, &name, document);
    }
}
