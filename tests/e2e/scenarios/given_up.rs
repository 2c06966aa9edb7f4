//! A conversation that cannot be evaluated has a failed evaluation and a row in the files, until an operator's retry.

use anyhow::{Result, ensure};
use assay_testkit::execute;
use serde_json::json;

use crate::harness::{Api, Kind, PrivateStack, conversation, text, until};

/// Triggers that refuse evaluations, except failed ones.
const REFUSE_ON_SQLITE: &str = "
    CREATE TRIGGER refuse BEFORE INSERT ON evaluations WHEN NEW.status <> 'failed'
    BEGIN SELECT RAISE(ABORT, 'refused by a test'); END";
const REFUSE_ON_POSTGRES: &str = "
    CREATE FUNCTION scoring.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused by a test'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON scoring.evaluations FOR EACH ROW WHEN (NEW.status <> 'failed')
        EXECUTE FUNCTION scoring.refuse()";

/// With one attempt per event, the first failure makes a dead letter.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start_with(&[("ASSAY_BUS__MAX_ATTEMPTS", "1")]).await?;
    let api = stack.api()?;
    let before = api.import(&conversation("before")).await?;
    ensure!(api.evaluation(&before).await?["status"] != "failed", "evaluated before");
    let (refuse, allow) = match stack.kind() {
        Kind::Standalone => (REFUSE_ON_SQLITE, "DROP TRIGGER refuse"),
        Kind::Distributed => (REFUSE_ON_POSTGRES, "DROP TRIGGER refuse ON scoring.evaluations"),
    };
    let database = stack.database_url("scoring");
    execute(&database, refuse)?;
    let ticket = api.import(&conversation("given-up")).await?;
    let failed = api.evaluation(&ticket).await?;
    ensure!(failed["status"] == "failed", "{failed}");
    ensure!(
        failed["error_message"].as_str().is_some_and(|text| text.contains("every attempt failed")),
        "{failed}"
    );
    for kind in ["axis", "resolution_audit"] {
        ensure!(statuses(&api, kind).await? == ["failed"], "{kind}: the file has no row of it");
    }

    execute(&database, allow)?;
    let retried = stack.operate("dead-letter", &["retry", "--all"]).await?;
    ensure!(retried.status.success(), "assay dead-letter retry: {retried:?}");
    let scored = until("the retried evaluation", async || {
        let evaluation = api.get(&format!("/v1/tickets/{ticket}/evaluation")).await?.expect(200)?;
        Ok((evaluation["status"] != "failed").then_some(evaluation))
    });
    let status = text(&scored.await?, "status")?;
    ensure!(statuses(&api, "resolution_audit").await? == [status], "the row was not replaced");
    Ok(())
}

/// The values of `evaluation_status` in the rows of the conversation.
async fn statuses(api: &Api, kind: &str) -> Result<Vec<String>> {
    let rows = api.table(&json!({"kind": kind})).await?.rows;
    let of_conversation = rows.into_iter().filter(|row| row["external_ticket_id"] == "given-up");
    Ok(of_conversation.map(|row| row["evaluation_status"].clone()).collect())
}
