//! Configured limits: requests per second and key, and concurrent requests. That of bodies: `crates/gateway/tests/requests.rs`.

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;

use crate::harness::{Api, Cases, PrivateStack, RawConnection, Reply, Stack, conversation, until};

const EXPORTS: &str = "/v1/evaluations/exports";

/// 429 and 503 have `Retry-After`.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let mut cases = Cases::default();
    cases.check("without a limit", unlimited(stack).await);
    stack.restart_with("gateway", &[("ASSAY_GATEWAY__RATE_LIMIT_PER_SECOND", "1")]).await?;
    cases.check("rate limit of a key", rate_limit(stack).await);
    let none_in_flight =
        [("ASSAY_GATEWAY__RATE_LIMIT_PER_SECOND", "0"), ("ASSAY_GATEWAY__MAX_IN_FLIGHT", "0")];
    stack.restart_with("gateway", &none_in_flight).await?;
    cases.check("concurrent requests", in_flight(stack).await);
    let one_in_flight =
        [("ASSAY_GATEWAY__MAX_IN_FLIGHT", "1"), ("ASSAY_GATEWAY__BODY_DEADLINE_SECONDS", "30")];
    stack.restart_with("gateway", &one_in_flight).await?;
    cases.check("an incomplete body takes no request slot", slow_body_takes_no_slot(stack).await);
    cases.finish()
}

/// Enough concurrent requests to exceed one per second even on a slow machine.
async fn burst(api: &Api) -> Result<Vec<Reply>> {
    join_all((0..20).map(|_| api.get(EXPORTS))).await.into_iter().collect()
}

async fn unlimited(stack: &Stack) -> Result<()> {
    for reply in burst(&stack.api()?).await? {
        reply.expect_status(200)?;
    }
    Ok(())
}

async fn rate_limit(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let replies = burst(&api).await?;
    ensure!(replies.iter().any(|reply| reply.status == 200), "the first request is within the budget");
    let refused = replies.iter().find(|reply| reply.status == 429).context("nothing was refused")?;
    refused.problem(429, "rate-limited")?;
    ensure!(refused.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1), "{refused:?}");
    ensure!(refused.header("ratelimit-policy") == "\"key\";q=1;w=1", "{refused:?}");
    ensure!(refused.header("ratelimit").starts_with("\"key\";r=0;t="), "{refused:?}");
    // Each key has its own budget.
    stack.api_of("another").await?.get(EXPORTS).await?.expect_status(200)?;
    let accepted = until("the budget to be filled again", async || {
        Ok(Some(api.get(EXPORTS).await?).filter(|reply| reply.status == 200))
    });
    accepted.await.map(drop)
}

async fn in_flight(stack: &Stack) -> Result<()> {
    let refused = stack.api()?.get(EXPORTS).await?;
    refused.problem(503, "unavailable")?;
    ensure!(refused.header("retry-after").parse::<u64>().is_ok(), "{refused:?}");
    Ok(())
}

/// A request with a complete head and an incomplete body.
async fn slow_body_takes_no_slot(stack: &Stack) -> Result<()> {
    let _slow = RawConnection::hold_import(stack, 1_000).await?;
    stack.api()?.post("/v1/assess", &conversation("beside a slow one")).await?.expect_status(202)
}
