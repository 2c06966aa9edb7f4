//! Checks of the page that is shown.

use anyhow::{Result, ensure};

use super::Browser;

impl Browser {
    /// Checks path, query and fragment of the page.
    pub async fn expect_address(&mut self, expected: &str) -> Result<()> {
        let address = self.address().await?;
        ensure!(address == expected, "the address is {address} instead of {expected}");
        Ok(())
    }

    /// Checks that the address has all of these parts.
    pub async fn expect_in_address(&mut self, parts: &[&str]) -> Result<()> {
        let address = self.address().await?;
        for part in parts {
            ensure!(address.contains(part), "{part} is not in {address}");
        }
        Ok(())
    }

    /// Checks the visible text of the first element of a selector.
    pub async fn expect_text(&mut self, selector: &str, expected: &str) -> Result<()> {
        let text = self.text(selector).await?;
        ensure!(text == expected, "{selector} has {text:?} instead of {expected:?}");
        Ok(())
    }

    /// Whether an element, given by a JavaScript expression, is on the screen.
    pub async fn is_in_sight(&mut self, element: &str) -> Result<bool> {
        self.evaluate(&format!(
            "(() => {{ const box = {element}.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight }})()"
        ))
        .await
    }

    /// Checks that the document does not have a text, not even out of sight.
    pub async fn expect_absent(&mut self, text: &str) -> Result<()> {
        let text = serde_json::to_string(text)?;
        let is_there: bool =
            self.evaluate(&format!("document.documentElement.outerHTML.includes({text})")).await?;
        ensure!(!is_there, "the page has {text}");
        Ok(())
    }
}
