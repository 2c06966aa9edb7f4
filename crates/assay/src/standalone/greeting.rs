//! What a newcomer sees: the address, and on the very first start a key and a request that can be pasted.

use std::io::{Write, stdout};
use std::net::SocketAddr;

use anyhow::Result;
use assay_platform::auth::ApiKey;

/// Prints it on standard output. The key is shown this once.
pub fn print(address: SocketAddr, first_key: Option<&ApiKey>) -> Result<()> {
    let mut output = stdout();
    writeln!(output, "assay listens on http://{address}")?;
    if let Some(key) = first_key {
        let key = key.reveal();
        writeln!(output)?;
        writeln!(output, "API key of the organization `default`, shown only now:")?;
        writeln!(output)?;
        writeln!(output, "  {key}")?;
        writeln!(output)?;
        writeln!(output, "Send a first conversation:")?;
        writeln!(output)?;
        writeln!(output, "{}", first_request(address, key))?;
    }
    output.flush()?;
    Ok(())
}

fn first_request(address: SocketAddr, key: &str) -> String {
    format!(
        r#"curl -i http://{address}/v1/assess \
  -H 'Authorization: Bearer {key}' \
  -H 'Content-Type: application/json' \
  -d '{{"ticket_id":"first-ticket","subject":"Where is my refund?","messages":[
    {{"external_id":"m-1","timestamp":1763600000000,"author":{{"type":"contact","external_id":"ann"}},"content":"Where is my refund?"}},
    {{"external_id":"m-2","timestamp":1763600060000,"author":{{"type":"teammate","external_id":"bob"}},"content":"It was sent today and arrives by Friday."}},
    {{"external_id":"m-3","timestamp":1763600120000,"author":{{"type":"contact","external_id":"ann"}},"content":"Great, thank you!"}}]}}'"#
    )
}
