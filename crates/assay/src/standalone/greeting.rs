//! Start-up output: the address, that of the console, and on the very first start an API key with an example request.
//!
//! An address that signs in is a credential for an hour. It is printed on the first start, when nobody could have made another, and
//! later to terminals only: the output of a process without one is kept by whatever collects logs.

use std::io::{IsTerminal, Write, stdout};
use std::net::SocketAddr;

use anyhow::Result;
use assay_platform::auth::ApiKey;

/// Whether standard output may be given an address that signs in.
pub fn shows_credentials(is_first_start: bool) -> bool {
    is_first_start || stdout().is_terminal()
}

/// Prints to standard output. Neither the console's address nor the key is shown again.
pub fn print(address: SocketAddr, console: Option<&str>, first_key: Option<&ApiKey>) -> Result<()> {
    let mut output = stdout();
    writeln!(output, "assay listens on http://{address}")?;
    if let Some(console) = console {
        writeln!(output)?;
        writeln!(
            output,
            "Console, for one sign-in within the hour (`assay console link` makes another address):"
        )?;
        writeln!(output)?;
        writeln!(output, "  {console}")?;
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
        writeln!(output, "{}", first_request(address, key))?;
    }
    output.flush()?;
    Ok(())
}

fn first_request(address: SocketAddr, key: &str) -> String {
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
