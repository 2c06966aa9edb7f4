//! `assay import`: sends conversations to a gateway. An interrupted import can be resumed.
//!
//! Every conversation is one request with its own idempotency key, so a retry after a lost response gets the first
//! response. The progress is stored in a checkpoint next to the file.

mod checkpoint;
mod client;
mod formats;
mod input_format;
mod item;
mod items;
mod lines;
mod report;
mod wait;

use std::fs::{File, TryLockError};
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use assay_platform::runtime::blocking;
use futures_util::stream::{self, Stream, StreamExt};
use indicatif::{ProgressBar, ProgressFinish};
use tokio::sync::mpsc;

use self::checkpoint::Checkpoint;
use self::client::Answer;
use self::formats::Format;
use self::item::Item;
use self::items::Items;
use self::report::Refusals;
use crate::api::Api;
use crate::cli::ImportArguments;
use crate::exit::{INTERRUPTED, PARTIAL};
use crate::signals::StopSignals;
use crate::terminal::{one_line, progress_style};

/// Upper limit of conversations read ahead.
const READ_AHEAD: usize = 64;

/// Exit code 0 when every conversation is accepted or a duplicate, 3 when some were refused.
pub async fn run(arguments: ImportArguments) -> Result<ExitCode> {
    let format = input_format::from_arguments(&arguments)?;
    let api = Api::new(&arguments.service, arguments.attempts)?;
    let _lock = lock_input(&arguments.file)?;
    if let Some(agents) = &arguments.agents {
        register_agents(&api, agents).await?;
    }
    let refused_path =
        arguments.refused.clone().unwrap_or_else(|| sibling_path(&arguments.file, "refused.jsonl"));
    report::ensure_replaceable(&refused_path, &arguments.file)?;
    let mut progress = Progress::resume(&arguments, &api.destination_hash(), &refused_path)?;
    let items = Items::open(&arguments.file, format, &progress.checkpoint)?;
    // Before the first request: its idempotency key contains the id of this import.
    progress.checkpoint.save()?;
    let import_id = progress.checkpoint.import_id.clone();
    let began = Instant::now();
    let bar = Bar::new(&items, progress.checkpoint.bytes, began);
    let mut stop_signals = StopSignals::listen()?;

    let mut answers = read_ahead(items)
        .map(|item| {
            let (api, import_id) = (&api, &import_id);
            async move {
                let item = item?;
                let answer = client::send(api, "/v1/assess", import_id, &item).await;
                Ok::<_, anyhow::Error>((item, answer))
            }
        })
        // Ordered, so that the checkpoint always covers a prefix of the file.
        .buffered(arguments.concurrency.into())
        .boxed_local();
    loop {
        let sent = tokio::select! {
            sent = answers.next() => sent,
            () = stop_signals.next() => {
                drop(bar);
                progress.checkpoint.save()?;
                writeln!(stderr(), "interrupted: start the same command again to go on")?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
        };
        let Some((item, answer)) = sent.transpose()? else { break };
        let notices = progress.record(&item, answer)?;
        bar.show(&progress.checkpoint, &item, &notices)?;
    }
    drop((answers, bar));
    progress.finish()?;
    let summary = &progress.checkpoint.summary;
    summary.print(began.elapsed(), (summary.refused > 0).then_some(refused_path.as_path()))?;
    if arguments.wait {
        tokio::select! {
            scored = wait_until_scored(&api, &progress, began) => scored?,
            () = stop_signals.next() => {
                writeln!(stderr(), "interrupted: everything is sent, and is scored without waiting, too")?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
        }
    }
    Ok(if summary.refused == 0 { ExitCode::SUCCESS } else { ExitCode::from(PARTIAL) })
}

async fn wait_until_scored(api: &Api, progress: &Progress, began: Instant) -> Result<()> {
    wait::until_scored(api, &progress.accepted_tickets).await?;
    writeln!(stdout(), "scored after {:.1} s", began.elapsed().as_secs_f64())?;
    let earlier = progress.checkpoint.summary.accepted.saturating_sub(progress.accepted_tickets.len() as u64);
    if earlier > 0 {
        writeln!(stderr(), "accepted before the interruption, not waited for: {earlier}")?;
    }
    Ok(())
}

/// Prevents two imports of one file from overwriting each other's checkpoint. The lock ends with the process.
fn lock_input(file: &Path) -> Result<Option<File>> {
    if !is_resumable(file) {
        return Ok(None);
    }
    let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    match opened.try_lock() {
        Err(TryLockError::WouldBlock) => bail!(
            "another import of {} is running: wait for it, or stop it and start this one again to go on from there",
            file.display()
        ),
        // Not every file system supports locks; import without one there.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(opened)),
    }
}

/// Standard input and pipes cannot be read again. A missing file counts as resumable: opening it reports the error.
fn is_resumable(file: &Path) -> bool {
    file != Path::new("-") && std::fs::metadata(file).map_or(true, |metadata| metadata.is_file())
}

/// Reads on a separate thread: a slow pipe must not delay requests in flight.
fn read_ahead(items: Items) -> impl Stream<Item = Result<Item>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let reader = blocking(move || {
        for item in items {
            if sender.blocking_send(item).is_err() {
                return;
            }
        }
    });
    let received =
        stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    // The reader ends at the end of the input or when the receiver is dropped.
    let reader_failure = stream::once(reader).filter_map(|ended| async { Some(Err(ended.err()?.into())) });
    stream::select(received, reader_failure)
}

struct Progress {
    checkpoint: Checkpoint,
    refusals: Refusals,
    /// Ids of the tickets that were accepted since this command started.
    accepted_tickets: Vec<String>,
}

impl Progress {
    fn resume(arguments: &ImportArguments, destination: &str, refused: &Path) -> Result<Self> {
        let format_options = input_format::canonical_options(arguments);
        let checkpoint = Checkpoint::load(&arguments.file, destination, &format_options)?;
        let refusals = Refusals::resume(refused, checkpoint.refused_bytes);
        Ok(Self { checkpoint, refusals, accepted_tickets: Vec::new() })
    }

    /// Records the answer and advances the checkpoint. Returns notices for the user.
    fn record(&mut self, item: &Item, answer: Result<Answer>) -> Result<Vec<String>> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.checkpoint.save()?;
                return Err(error.context(format!(
                    "stopped at line {}: start the same command again to go on from there",
                    item.position
                )));
            }
        };
        let summary = &mut self.checkpoint.summary;
        let mut notices = Vec::new();
        match answer {
            Answer::Accepted { id } => {
                summary.accepted += 1;
                self.accepted_tickets.push(id);
                notices = item
                    .request
                    .as_ref()
                    .map_or_else(|_| Vec::new(), |request| summary.count_changes(request));
            }
            Answer::Duplicate => summary.duplicate += 1,
            Answer::Refused(refusal) => {
                self.refusals.write(item, &refusal)?;
                self.checkpoint.refused_bytes = self.refusals.bytes();
                summary.refused += 1;
            }
        }
        self.checkpoint.advance(item)?;
        Ok(notices)
    }

    fn finish(&mut self) -> Result<()> {
        self.refusals.finish()?;
        self.checkpoint.remove()
    }
}

/// Registers the agents of a file. Existing ones are skipped.
async fn register_agents(api: &Api, file: &Path) -> Result<()> {
    let checkpoint = Checkpoint::empty()?;
    for item in Items::open(file, Format::Assay, &checkpoint)? {
        let item = item?;
        match client::send(api, "/v1/agents", &checkpoint.import_id, &item).await? {
            Answer::Accepted { .. } | Answer::Duplicate => {}
            Answer::Refused(refusal) => {
                bail!(
                    "agent in line {} of {} was refused: {}",
                    item.position,
                    file.display(),
                    refusal.describe()
                )
            }
        }
    }
    Ok(())
}

/// `FILE.ENDING`, next to the file.
fn sibling_path(file: &Path, ending: &str) -> PathBuf {
    if file == Path::new("-") {
        return PathBuf::from(format!("stdin.{ending}"));
    }
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    PathBuf::from(name)
}

/// Progress bar, shown at a terminal only.
struct Bar {
    bar: ProgressBar,
    began: Instant,
    sent: std::cell::Cell<u64>,
}

impl Bar {
    fn new(items: &Items, position: u64, began: Instant) -> Self {
        let bar = match items.total_bytes() {
            Some(total) => {
                ProgressBar::new(total).with_style(progress_style("{bar:30} {percent:>3}% ETA {eta} {msg}"))
            }
            None => ProgressBar::no_length().with_style(progress_style("{spinner} {binary_bytes} {msg}")),
        };
        let bar = bar.with_position(position).with_finish(ProgressFinish::AndClear);
        bar.reset_eta();
        Self { bar, began, sent: std::cell::Cell::new(0) }
    }

    fn show(&self, checkpoint: &Checkpoint, item: &Item, notices: &[String]) -> Result<()> {
        self.sent.set(self.sent.get() + 1);
        let rate = self.sent.get() as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        self.bar.set_position(checkpoint.bytes);
        self.bar.set_message(format!("{rate:.0}/s {}", checkpoint.summary));
        if notices.is_empty() {
            return Ok(());
        }
        self.bar.suspend(|| {
            notices
                .iter()
                .try_for_each(|notice| writeln!(stderr(), "line {}: {}", item.position, one_line(notice)))
        })?;
        Ok(())
    }
}
