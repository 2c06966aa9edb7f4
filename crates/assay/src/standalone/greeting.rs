//! Start-up output: the address, a sign-in link for the console, and on the first start an API key with an example request.
//!
//! A sign-in link is a credential for an hour. It is printed on the first start, when no user has one, and later to terminals
//! only, because other output may be kept in logs.

use std::io::{IsTerminal, Write, stdout};
use std::net::SocketAddr;

use anyhow::Result;
use assay_platform::auth::ApiKey;

/// Whether a sign-in link may be printed on standard output.
pub fn may_print_sign_in_link(is_first_start: bool) -> bool {
    is_first_start || stdout().is_terminal()
}

/// Prints to standard output. Neither the sign-in link nor the key is shown again.
pub fn print(address: SocketAddr, sign_in_link: Option<&str>, first_key: Option<&ApiKey>) -> Result<()> {
    let mut output = stdout();
    writeln!(output, "assay listens on http://{address}")?;
    if let Some(link) = sign_in_link {
        writeln!(output)?;
        writeln!(
            output,
            "Console, for one sign-in within the hour (`assay console link` makes another address):"
        )?;
        writeln!(output)?;
        writeln!(output, "  {link}")?;
    }
    if let Some(key) = first_key {
        let key = key.reveal();
        writeln!(output)?;
        writeln!(output, "API key of the organization `default`, shown only now:")?;
        writeln!(output)?;
        writeln!(output, "  {key}")?;
        writeln!(output)?;
        writeln!(output, "Register an AI agent and send its first conversation:")?;
        writeln!(output)?;
        writeln!(output, "{}", first_requests(address, key))?;
    }
    output.flush()?;
    Ok(())
}

fn first_requests(address: SocketAddr, key: &str) -> String {
    format!(
        r#"curl -sS http://{address}/v1/agents \
  -H 'Authorization: Bearer {key}' \
  -H 'Content-Type: application/json' \
  -d '{{"external_id":"my-bot","name":"My bot"}}'
curl -sS http://{address}/v1/assess \
  -H 'Authorization: Bearer {key}' \
  -H 'Content-Type: application/json' \
  -d '{{"ticket_id":"first-ticket","subject":"Delivery address","messages":[
    {{"external_id":"m-1","timestamp":1763600000000,"author":{{"type":"contact","external_id":"ann"}},"content":"Can I still change my delivery address?"}},
    {{"external_id":"m-2","timestamp":1763600060000,"author":{{"type":"ai","external_id":"my-bot"}},"content":"Yes. I have changed it to 12 Mill Lane, as in your account."}},
    {{"external_id":"m-3","timestamp":1763600120000,"author":{{"type":"contact","external_id":"ann"}},"content":"Perfect, thank you!"}}]}}'"#
    )
}
