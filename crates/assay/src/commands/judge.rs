//! `assay judge`: checks the configured LLM judge.

use std::io::{Write, stdout};

use anyhow::Result;
use assay_judge::{ProbeReport, probe};

use crate::cli::JudgeCommand;
use crate::settings::Settings;

pub async fn run(command: JudgeCommand) -> Result<()> {
    match command {
        JudgeCommand::Test => {
            let config = Settings::load()?.scoring.judge;
            let report = probe(&config).await?;
            let has_prices =
                config.prompt_usd_per_million_tokens + config.completion_usd_per_million_tokens > 0.0;
            write!(stdout(), "{}", describe(&report, has_prices))?;
            Ok(())
        }
    }
}

fn describe(report: &ProbeReport, has_prices: bool) -> String {
    let tokens = match (report.prompt_tokens, report.completion_tokens) {
        (Some(prompt), Some(completion)) => format!("{prompt} for the question, {completion} for the answer"),
        _ => "not reported by the endpoint".to_owned(),
    };
    let cost = if has_prices {
        format!("{:.6} US dollars", report.cost_usd)
    } else {
        "unknown: scoring.judge has no prices".to_owned()
    };
    format!(
        "the judge is as it should be: it answers, quotes exactly, and does not obey the conversation\n\
         model    {} at {}\n\
         latency  {} ms in {} request{}\n\
         tokens   {tokens}\n\
         cost     {cost}\n",
        report.model,
        report.url,
        report.latency_ms,
        report.requests,
        if report.requests == 1 { "" } else { "s" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judge_report_has_latency_tokens_and_cost() {
        let report = ProbeReport {
            url: "https://judge.example/v1/chat/completions".to_owned(),
            model: "judge-1".to_owned(),
            latency_ms: 1234,
            requests: 2,
            prompt_tokens: Some(1000),
            completion_tokens: Some(100),
            cost_usd: 0.0014,
        };
        let text = describe(&report, true);
        assert!(text.contains("judge-1 at https://judge.example/v1/chat/completions\n"), "{text}");
        assert!(text.contains("1234 ms in 2 requests\n"), "{text}");
        assert!(text.contains("0.001400 US dollars\n"), "{text}");
        let silent = ProbeReport { prompt_tokens: None, requests: 1, ..report };
        let text = describe(&silent, false);
        assert!(text.contains("not reported by the endpoint") && text.contains("has no prices"), "{text}");
    }
}
