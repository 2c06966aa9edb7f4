//! `assay tickets`: a ticket and its evaluation, for people or for programs.

mod describe;

use std::io::{Write, stdout};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::describe::{evaluation_text, ticket_text};
use crate::api::{Api, Call, INTERACTIVE_ATTEMPTS};
use crate::cli::TicketsCommand;

pub async fn run(command: TicketsCommand) -> Result<()> {
    match command {
        TicketsCommand::Show { id, evaluation: only_evaluation, json, service } => {
            let api = Api::new(&service, INTERACTIVE_ATTEMPTS)?;
            // The id is user input: it must not change the path.
            let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
            let path = format!("/v1/tickets/{id}");
            let ticket = match only_evaluation {
                true => None,
                false => Some(api.send_for_json::<Value>(&Call::get(&path)).await?),
            };
            let evaluation: Value = api.send_for_json(&Call::get(&format!("{path}/evaluation"))).await?;
            let text = if json { as_json(ticket, evaluation)? } else { as_text(ticket, evaluation)? };
            stdout().write_all(text.as_bytes())?;
            Ok(())
        }
    }
}

/// The API's responses unchanged; ticket and evaluation in one object when both were requested.
fn as_json(ticket: Option<Value>, evaluation: Value) -> Result<String> {
    let value = match ticket {
        Some(ticket) => json!({"ticket": ticket, "evaluation": evaluation}),
        None => evaluation,
    };
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn as_text(ticket: Option<Value>, evaluation: Value) -> Result<String> {
    let advice = "the answer has another form than this command knows: --json shows it as it is";
    let mut text = String::new();
    if let Some(ticket) = ticket {
        text.push_str(&ticket_text(&serde_json::from_value(ticket).context(advice)?));
    }
    text.push_str(&evaluation_text(&serde_json::from_value(evaluation).context(advice)?));
    Ok(text)
}
