//! Limits that an operator sets: requests a second for each key, and requests under way.

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;

use crate::harness::{Api, Cases, Reply, Stack, until};

const EXPORTS: &str = "/v1/evaluations/exports";

/// 429 and 503 say when to come back.
pub async fn run(stack: &mut Stack) -> Result<()> {
    let mut cases = Cases::default();
    cases.check("without a limit", unlimited(stack).await);
    stack.restart_gateway_with("ASSAY_GATEWAY__RATE_LIMIT_PER_SECOND", "1").await?;
    cases.check("a second for each key", rate_limit(stack).await);
    stack.restart_gateway_with("ASSAY_GATEWAY__RATE_LIMIT_PER_SECOND", "0").await?;
    stack.restart_gateway_with("ASSAY_GATEWAY__MAX_IN_FLIGHT", "0").await?;
    cases.check("under way", in_flight(stack).await);
    cases.finish()
}

/// So many at once that a limit of one a second is passed however slow the machine is.
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
    // A fresh key has a budget of its own.
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
