//! The LLM judge: the API, the files and the command line show which scorer an evaluation is from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use assay_testkit::stub_judge::{Findings, Question, Reply, StubJudge};
use serde_json::{Value, json};

use crate::harness::{PrivateStack, Stack, exits_with, resolved_by};

/// Evaluations are from the built-in scorer without a judge, from the judge with one, and a fallback when it fails.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let is_broken = Arc::new(AtomicBool::new(false));
    let flag = is_broken.clone();
    let judge = StubJudge::start(move |question: &Question| match flag.load(Ordering::SeqCst) {
        true => Reply::Raw(500, String::new(), "oops".to_owned()),
        false => Reply::Text(answer(question)),
    })?;
    stack.api()?.register("judged-bot").await?;

    let builtin = evaluation(stack, "before").await?;
    ensure!(builtin["scorer"]["type"] == "builtin", "{}", builtin["scorer"]);
    ensure!(builtin["scorer"].get("judge").is_none(), "{}", builtin["scorer"]);
    exits_with(&stack.assay(&["judge", "test"]).output().await?, 1, &["no judge is set"])?;

    let url = judge.url();
    let mut settings = vec![
        ("ASSAY_SCORING__JUDGE__URL", url.as_str()),
        ("ASSAY_SCORING__JUDGE__MODEL", "judge-1"),
        ("ASSAY_SCORING__JUDGE__KEY", "a-secret-key"),
        ("ASSAY_SCORING__JUDGE__ATTEMPTS", "1"),
        ("ASSAY_SCORING__JUDGE__PROMPT_USD_PER_MILLION_TOKENS", "1.0"),
        ("ASSAY_SCORING__JUDGE__COMPLETION_USD_PER_MILLION_TOKENS", "4"),
    ];
    stack.restart_with("scoring-worker", &settings).await?;
    let tried = stack.assay(&["judge", "test"]).output().await?;
    ensure!(tried.status.success(), "{tried:?}");
    ensure!(String::from_utf8_lossy(&tried.stdout).contains("0.001400 US dollars"), "{tried:?}");
    judged(&evaluation(stack, "with").await?, &builtin)?;

    settings.push(("ASSAY_SCORING__JUDGE__POLICY", "advise"));
    stack.restart_with("scoring-worker", &settings).await?;
    let advised = evaluation(stack, "advised").await?;
    ensure!(advised["resolution"]["resolved_by"] == "customer", "{}", advised["resolution"]);
    ensure!(advised["charge"]["assessment"] == "review", "{}", advised["charge"]);

    is_broken.store(true, Ordering::SeqCst);
    fallen_back(&evaluation(stack, "without").await?, &builtin)?;
    let tried = stack.assay(&["judge", "test"]).output().await?;
    exits_with(&tried, 1, &["fails on its side (status 500)"])?;
    files(stack).await
}

/// Findings that differ from the built-in scorer's.
const FOUND: Findings<'_> = Findings {
    accuracy: 3.3,
    effort: 2.7,
    handoff: 4.2,
    status: "resolved",
    basis: "customer_confirmed",
    resolved_by: Some("customer"),
    charge: Some("disputed"),
};

fn answer(question: &Question) -> String {
    // The conversation of `assay judge test`.
    let is_trial = question.conversation()["subject"] == "Refund of order 4711";
    let answer = if is_trial {
        question.answer(1.2, 1.4, "not_resolved", "customer_rejected")
    } else {
        question.whole_answer(&FOUND)
    };
    answer.to_string()
}

async fn evaluation(stack: &Stack, ticket_id: &str) -> Result<Value> {
    let api = stack.api()?;
    let id = api.import(&resolved_by(ticket_id, "judged-bot")).await?;
    api.evaluation(&id).await
}

fn judged(evaluation: &Value, builtin: &Value) -> Result<()> {
    let scorer = &evaluation["scorer"];
    ensure!(scorer["type"] == "judge" && scorer["judge_model"] == "judge-1", "{scorer}");
    // The stub reports 1,000 prompt tokens at 1 dollar per million, and 100 completion tokens at 4 dollars.
    ensure!(scorer["judge"]["cost_usd"] == 0.0014 && scorer["judge"]["latency_ms"].is_u64(), "{scorer}");
    let dimensions = &evaluation["axis"]["dimensions"];
    ensure!(dimensions["resolution_accuracy"]["score"] == 3.3, "{dimensions}");
    ensure!(dimensions["interaction_effort"]["score"] == 2.7, "{dimensions}");
    ensure!(dimensions["handoff_smoothness"]["score"] == 4.2, "{dimensions}");
    // The mean of the three.
    ensure!(evaluation["axis"]["score"] == 3.4, "{}", evaluation["axis"]["score"]);
    ensure!(evaluation["resolution"]["resolved_by"] == "customer", "{}", evaluation["resolution"]);
    ensure!(evaluation["charge"]["assessment"] == "disputed", "{}", evaluation["charge"]);
    ensure!(evaluation["flags"] == json!(["JUDGE_DISAGREES"]), "{}", evaluation["flags"]);
    for fact in ["counts", "ai_involvement", "handoff", "effort", "timeline", "ai_tools"] {
        ensure!(evaluation[fact] == builtin[fact], "{fact}: {}", evaluation[fact]);
    }
    Ok(())
}

fn fallen_back(evaluation: &Value, builtin: &Value) -> Result<()> {
    let scorer = &evaluation["scorer"];
    ensure!(scorer["type"] == "fallback" && scorer["judge_model"] == "judge-1", "{scorer}");
    ensure!(scorer["judge"]["fallback_reason"] == "unavailable", "{scorer}");
    for part in ["axis", "resolution", "charge", "evidence"] {
        ensure!(evaluation[part] == builtin[part], "{part}: {}", evaluation[part]);
    }
    Ok(())
}

async fn files(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    for kind in ["axis", "resolution_audit"] {
        let table = api.table(&json!({"kind": kind})).await?;
        if kind == "resolution_audit" {
            let solver =
                table.row("external_ticket_id", "with")?.get("resolved_by").context("no such column")?;
            ensure!(solver == "customer", "solved by {solver:?}");
        }
        for (ticket, scorer) in [("before", "builtin"), ("with", "judge"), ("without", "fallback")] {
            let cell = table.row("external_ticket_id", ticket)?.get("scorer").context("no such column")?;
            ensure!(cell == scorer, "{kind}: {ticket} was scored by {cell:?}");
        }
    }
    Ok(())
}
