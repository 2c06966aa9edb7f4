//! The input format and its options from the command line.

use std::collections::BTreeMap;
use std::fmt::Write;

use assay_contracts::conversation::AiTool;
use clap::ValueEnum as _;

use super::formats::{AiAuthors, Format, Mapping};
use crate::cli::{ImportArguments, ImportFormat};
use crate::exit::WrongUsage;

/// Parses the options; refuses those that do not belong to the format.
pub fn from_arguments(arguments: &ImportArguments) -> Result<Format, WrongUsage> {
    let mapping = || -> Result<Mapping, WrongUsage> {
        Ok(Mapping { account: arguments.account.clone(), ai: ai_authors(arguments)? })
    };
    match arguments.format {
        ImportFormat::Assay if arguments.has_helpdesk_options() => Err(WrongUsage::new(
            "--account, --ai-agent, --ai-author and --ai-tool are for --format zendesk and intercom: request bodies say all of \
             that themselves",
        )),
        ImportFormat::Assay => Ok(Format::Assay),
        ImportFormat::Zendesk if arguments.ai_agent.is_some() && arguments.ai_author.is_empty() => {
            Err(WrongUsage::new(
                "--ai-agent needs --ai-author ID: Zendesk does not tell which users are AI agents",
            ))
        }
        ImportFormat::Zendesk => Ok(Format::Zendesk(mapping()?)),
        ImportFormat::Intercom => Ok(Format::Intercom(mapping()?)),
    }
}

/// The options in canonical form, empty for request bodies. An import can be resumed with the same options only.
pub fn canonical_options(arguments: &ImportArguments) -> String {
    if arguments.format == ImportFormat::Assay {
        return String::new();
    }
    let format = arguments.format.to_possible_value();
    let mut text = format!("--format {}", format.as_ref().map_or("", |value| value.get_name()));
    let mut add = |name: &str, value: &str| {
        // Writing into a text cannot fail.
        let _ = write!(text, " --{name} {value}");
    };
    for (name, value) in
        [("account", &arguments.account), ("ai-agent", &arguments.ai_agent), ("ai-tool", &arguments.ai_tool)]
    {
        if let Some(value) = value {
            add(name, value);
        }
    }
    for author in &arguments.ai_author {
        add("ai-author", author);
    }
    text
}

fn ai_authors(arguments: &ImportArguments) -> Result<AiAuthors, WrongUsage> {
    let mut agents = BTreeMap::new();
    for author in &arguments.ai_author {
        let (id, agent) = match author.split_once('=') {
            Some((id, agent)) => (id, Some(agent)),
            None => (author.as_str(), arguments.ai_agent.as_deref()),
        };
        let Some(agent) = agent.filter(|agent| !agent.is_empty() && !id.is_empty()) else {
            return Err(WrongUsage::new(format!(
                "--ai-author {author}: name the registered agent, by --ai-agent AGENT or as --ai-author ID=AGENT"
            )));
        };
        agents.insert(id.to_owned(), agent.to_owned());
    }
    let tool = arguments.ai_tool.as_deref().and_then(AiTool::from_name);
    Ok(AiAuthors { agents, default_agent: arguments.ai_agent.clone(), tool })
}
