//! `assay benchmark`: measures the scorer's agreement with the raters of a corpus.

use std::io::{Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use assay_contracts::evaluation::{Evaluation, ScorerKind};
use assay_judge::Judge;
use assay_scoring::Scorer;
use assay_scoring_fit::{Corpus, benchmark};
use futures_util::{StreamExt, stream};

use super::weights::with_weights;
use crate::cli::BenchmarkArguments;
use crate::settings::Settings;

pub async fn run(arguments: BenchmarkArguments) -> Result<()> {
    let corpus = Corpus::read(&arguments.corpus, arguments.part)?;
    let scorer = with_weights(load_scorer(arguments.model.as_deref())?, arguments.weights.as_deref())?;
    let evaluations = if arguments.judge {
        evaluate_by_judge(&corpus, &scorer).await?
    } else {
        corpus.conversations().map(|conversation| scorer.evaluate(conversation)).collect()
    };
    let report = benchmark(&corpus, &evaluations);
    let mut output = stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut output, &report)?;
        writeln!(output)?;
    } else {
        write!(output, "{report}")?;
        if arguments.judge {
            write!(output, "\n{}", judged_share(&evaluations))?;
        }
    }
    Ok(())
}

fn load_scorer(model: Option<&Path>) -> Result<Scorer> {
    let Some(path) = model else {
        return Ok(Scorer::builtin()?);
    };
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Scorer::with_model(&bytes).with_context(|| path.display().to_string())
}

/// Evaluations by the configured judge, up to its concurrency at a time.
async fn evaluate_by_judge(corpus: &Corpus, scorer: &Scorer) -> Result<Vec<Evaluation>> {
    let judge = &Judge::open(&Settings::load()?.scoring.judge)?
        .context("the settings name no judge (scoring.judge)")?;
    let judgements = corpus
        .conversations()
        .map(|conversation| judge.evaluate(scorer, conversation, scorer.evaluate(conversation)));
    Ok(stream::iter(judgements).buffered(judge.concurrency()).collect().await)
}

fn judged_share(evaluations: &[Evaluation]) -> String {
    let by_judge =
        evaluations.iter().filter(|evaluation| evaluation.scorer.kind == ScorerKind::Judge).count();
    format!("judged: {by_judge} of {}; the others are the built-in scorer's\n", evaluations.len())
}
