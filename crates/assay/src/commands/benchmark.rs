//! `assay benchmark`: how well the scorer agrees with the readers of a corpus.

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

/// Prints the figures on standard output.
pub async fn run(arguments: BenchmarkArguments) -> Result<()> {
    let corpus = Corpus::read(&arguments.corpus, arguments.part)?;
    let scorer = with_weights(scorer(arguments.model.as_deref())?, arguments.weights.as_deref())?;
    let evaluations = if arguments.judge {
        judged(&corpus, &scorer).await?
    } else {
        corpus.conversations().map(|conversation| scorer.evaluate(conversation)).collect()
    };
    let found = benchmark(&corpus, &evaluations);
    let mut output = stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut output, &found)?;
        writeln!(output)?;
    } else {
        write!(output, "{found}")?;
        if arguments.judge {
            write!(output, "\n{}", share_of_judge(&evaluations))?;
        }
    }
    Ok(())
}

/// With the model of a file, or with the shipped one.
fn scorer(model: Option<&Path>) -> Result<Scorer> {
    let Some(path) = model else {
        return Ok(Scorer::builtin()?);
    };
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Scorer::with_model(&bytes).with_context(|| path.display().to_string())
}

/// Evaluations by the judge of the settings, as many at a time as it takes.
async fn judged(corpus: &Corpus, scorer: &Scorer) -> Result<Vec<Evaluation>> {
    let judge = Judge::open(&Settings::load()?.scoring.judge)?
        .context("the settings name no judge (scoring.judge)")?;
    let judge = &judge;
    let asked = corpus
        .conversations()
        .map(|conversation| judge.evaluate(scorer, conversation, scorer.evaluate(conversation)));
    Ok(stream::iter(asked).buffered(judge.concurrency()).collect().await)
}

fn share_of_judge(evaluations: &[Evaluation]) -> String {
    let by_judge =
        evaluations.iter().filter(|evaluation| evaluation.scorer.kind == ScorerKind::Judge).count();
    format!("judged: {by_judge} of {}; the others are the built-in scorer's\n", evaluations.len())
}
