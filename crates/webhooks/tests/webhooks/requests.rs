//! Limits of requests.

use anyhow::Result;
use assay_platform::runtime::new_id;
use assay_testkit::on_both_databases;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::running_role::{REQUESTED_MESSAGES_PER_MINUTE, RunningRole};

on_both_databases! { RunningRole {
    tests_and_replays_are_limited_by_organization,
    large_bodies_are_refused,
} }

async fn tests_and_replays_are_limited_by_organization(mut role: RunningRole) -> Result<()> {
    // Nothing listens on this port.
    let endpoint_id = role.fixture.create_endpoint_at("http://127.0.0.1:9999/").await?.id;
    let mut id = String::new();
    for _ in 0..REQUESTED_MESSAGES_PER_MINUTE {
        let queued = role.post(&format!("/{endpoint_id}/test"), String::new()).await?;
        assert_eq!(queued.status(), StatusCode::ACCEPTED);
        queued.json::<Value>().await?["id"].as_str().unwrap_or_default().clone_into(&mut id);
    }
    for path in [format!("/{endpoint_id}/test"), format!("/{endpoint_id}/deliveries/{id}/replay")] {
        let refused = role.post(&path, String::new()).await?;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let wait: u32 = refused.headers()["retry-after"].to_str()?.parse()?;
        assert!((5..=15).contains(&wait), "{wait}");
        assert_eq!(refused.json::<Value>().await?["code"], "rate-limited");
    }
    role.fixture.organization_id = new_id();
    let of_another = role.post(&format!("/{endpoint_id}/test"), String::new()).await?;
    assert_eq!(of_another.status(), StatusCode::NOT_FOUND, "another organization has its own quota");
    Ok(())
}

async fn large_bodies_are_refused(role: RunningRole) -> Result<()> {
    let body = |size: usize| {
        json!({"url": "http://127.0.0.1/", "events": ["export.failed"], "unknown": "x".repeat(size)})
            .to_string()
    };
    assert_eq!(role.post("", body(60 * 1024)).await?.status(), StatusCode::CREATED);
    let refused = role.post("", body(64 * 1024)).await?;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(refused.json::<Value>().await?["code"], "payload-too-large");
    Ok(())
}
