//! `assay import`: sends conversations to a gateway, and can be interrupted and started again.
//!
//! Every line becomes one request with an idempotency key of its own, so that a retry after a lost answer gets the first
//! answer again. How far the file is done is written down beside it.

mod checkpoint;
mod client;
mod lines;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use assay_platform::runtime::blocking;
use assay_platform::settings::client_variable;
use futures_util::stream::{self, Stream, StreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;
use url::Url;

use self::checkpoint::Checkpoint;
use self::client::{Answer, Client};
use self::lines::{Line, Lines};
use self::report::Refusals;
use crate::cli::ImportArguments;
use crate::commands::PARTLY;

/// Lines read ahead of the requests.
const READ_AHEAD: usize = 64;

const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// Sends the file; 0 when every line is accepted or was before, 3 when some were refused.
pub async fn run(arguments: ImportArguments) -> Result<ExitCode> {
    let client = client(&arguments)?;
    if let Some(agents) = &arguments.agents {
        register_agents(&client, agents).await?;
    }
    let refused_path = arguments.refused.clone().unwrap_or_else(|| beside(&arguments.file, "refused.jsonl"));
    let mut progress = Progress::resume(&arguments.file, client.destination(), &refused_path)?;
    let lines = Lines::open(&arguments.file, &progress.checkpoint)?;
    // Before the first request, whose idempotency key holds the name of this import.
    progress.checkpoint.save()?;
    let run = progress.checkpoint.run.clone();
    let bar = progress_bar(lines.total_bytes(), progress.checkpoint.bytes);
    let began = Instant::now();

    let mut answers = read_ahead(lines)
        .map(|line| {
            let (client, run) = (&client, &run);
            async move {
                let line = line?;
                let answer = client.send("/v1/assess", run, &line).await;
                Ok::<_, anyhow::Error>((line, answer))
            }
        })
        // Answers come in the order of the lines, so that what is written down as done is a prefix of the file.
        .buffered(arguments.concurrency.into())
        .boxed_local();
    while let Some(sent) = answers.next().await {
        let (line, answer) = sent?;
        progress.record(&line, answer)?;
        bar.set_position(progress.checkpoint.bytes);
        bar.set_message(progress.checkpoint.summary.to_string());
    }
    drop(answers);
    bar.finish_and_clear();
    progress.finish()?;
    let summary = &progress.checkpoint.summary;
    summary.print(began.elapsed(), (summary.refused > 0).then_some(refused_path.as_path()))?;
    Ok(if summary.refused == 0 { ExitCode::SUCCESS } else { ExitCode::from(PARTLY) })
}

/// Reads lines on a thread of its own: a pipe that is slow to fill must not hold up requests under way.
fn read_ahead(lines: Lines) -> impl Stream<Item = Result<Line>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let reader = blocking(move || {
        for line in lines {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let received =
        stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    // The reader ends when the lines do, or when nobody receives them any more.
    let reading = stream::once(reader).filter_map(|ended| async { Some(Err(ended.err()?.into())) });
    stream::select(received, reading)
}

/// How far the file is done, and what was refused.
struct Progress {
    checkpoint: Checkpoint,
    refusals: Refusals,
}

impl Progress {
    fn resume(file: &Path, destination: &str, refused: &Path) -> Result<Self> {
        let checkpoint = Checkpoint::load(file, destination)?;
        let refusals = Refusals::open(refused, checkpoint.refused_bytes);
        Ok(Self { checkpoint, refusals })
    }

    fn record(&mut self, line: &Line, answer: Result<Answer>) -> Result<()> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.checkpoint.save()?;
                return Err(error.context(format!(
                    "stopped at line {}: start the same command again to go on from there",
                    line.number
                )));
            }
        };
        match answer {
            Answer::Accepted => self.checkpoint.summary.accepted += 1,
            Answer::Duplicate => self.checkpoint.summary.duplicate += 1,
            Answer::Refused(refusal) => {
                self.refusals.write(line, &refusal)?;
                self.checkpoint.refused_bytes = self.refusals.bytes();
                self.checkpoint.summary.refused += 1;
            }
        }
        self.checkpoint.advance(line)
    }

    fn finish(&mut self) -> Result<()> {
        self.refusals.finish()?;
        self.checkpoint.remove()
    }
}

fn client(arguments: &ImportArguments) -> Result<Client> {
    let url = match (&arguments.url, client_variable("ASSAY_URL")) {
        (Some(url), _) => url.clone(),
        (None, Some(url)) => Url::parse(&url).context("ASSAY_URL")?,
        (None, None) => Url::parse(DEFAULT_URL)?,
    };
    let Some(key) = arguments.key.clone().or_else(|| client_variable("ASSAY_API_KEY")) else {
        bail!("an API key is needed: give --key or set ASSAY_API_KEY");
    };
    Client::new(&url, &key, arguments.attempts)
}

/// Registers agents; one that exists already is fine.
async fn register_agents(client: &Client, file: &Path) -> Result<()> {
    let nothing = Checkpoint::none()?;
    for line in Lines::open(file, &nothing)? {
        let line = line?;
        match client.send("/v1/agents", &nothing.run, &line).await? {
            Answer::Accepted | Answer::Duplicate => {}
            Answer::Refused(refusal) => {
                bail!(
                    "agent in line {} of {} was refused: {}",
                    line.number,
                    file.display(),
                    refusal.describe()
                )
            }
        }
    }
    Ok(())
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    if file == Path::new("-") {
        return PathBuf::from(format!("stdin.{ending}"));
    }
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    PathBuf::from(name)
}

fn progress_bar(total: Option<u64>, position: u64) -> ProgressBar {
    let style =
        |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = match total {
        Some(total) => ProgressBar::new(total)
            .with_style(style("{bar:30} {percent:>3}% {binary_bytes_per_sec} ETA {eta} {msg}")),
        None => ProgressBar::no_length().with_style(style("{spinner} {binary_bytes} {msg}")),
    };
    bar.with_position(position)
}
