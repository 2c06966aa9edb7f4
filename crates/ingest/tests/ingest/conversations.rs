//! Identities of conversations. Receipts, duplicates, refused imports, tickets and namespaces: `tests/e2e/scenarios`, on both
//! databases.

use anyhow::Result;

use assay_testkit::on_both_databases;

use crate::test_app::{TestApp, conversation};

on_both_databases! { TestApp {
    identities_of_maximum_length_differ_by_their_last_character,
} }

async fn identities_of_maximum_length_differ_by_their_last_character(app: TestApp) -> Result<()> {
    let longest = "🦀".repeat(1_023);
    for last in ["a", "b"] {
        let mut body = conversation(&format!("{longest}{last}"));
        body["source_account_id"] = format!("{longest}c").into();
        app.accepted(&body).await?;
        assert_eq!(app.submit(&body).await?.status(), 409);
    }
    Ok(())
}
