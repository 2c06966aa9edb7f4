//! Times are in the viewer's zone, with UTC in the title; a legend explains the bands of scores.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::browser::Viewer;
use crate::console::visit::Visit;
use crate::harness::{conversation, edited, set};

/// 2025-11-20T00:53:20Z is the first message of the harness's conversation.
const TITLE: &str = "2025-11-20 00:53:20 UTC";

/// The zone, whether scripts run, the expected time, and the expected text of the footer.
const ZONES: [(&str, bool, &str, &str); 4] = [
    // With summer time: an offset in the footer would be wrong for half of the times.
    ("America/New_York", true, "19 Nov, 19:53", "Times in America/New York"),
    ("Pacific/Marquesas", true, "19 Nov, 15:23", "Times in Pacific/Marquesas"),
    ("Etc/UTC", true, "20 Nov, 00:53", "Times in UTC"),
    // The server cannot know the zone.
    ("America/New_York", false, "20 Nov, 00:53", "Times in UTC"),
];

pub async fn run(visit: &mut Visit) -> Result<()> {
    let body = edited(conversation("zones"), &[set("/subject", json!("Which zone?"))]);
    let id = visit.import(&body).await?;
    for (zone, scripts, expected, foot) in ZONES {
        visit.reset(&Viewer { zone, scripts, ..Viewer::default() }).await?;
        // The list shows the year of a time in another year; the transcript has it above.
        let with_year = expected.replace(',', " 2025,");
        for (page, style, expected) in [
            ("/console/conversations?external_id=zones".to_owned(), "long", with_year.as_str()),
            (format!("/console/conversations/{id}"), "short", expected),
        ] {
            let browser = &mut visit.browser;
            browser.open(&page).await?;
            let times: Vec<(String, String)> =
                browser.all(&format!("main time[data-style={style}]"), "[it.textContent, it.title]").await?;
            ensure!(
                times.first() == Some(&(expected.to_owned(), TITLE.to_owned())),
                "{zone}, scripts {scripts}, {page}: {times:?}"
            );
            browser.expect_text("#zone", foot).await.with_context(|| format!("{zone}, scripts {scripts}"))?;
            let legend = browser.text("footer").await?;
            ensure!(
                legend.contains("excellent from 4.5, good from 3.5, mixed from 2.5"),
                "no legend: {legend}"
            );
        }
    }
    Ok(())
}
