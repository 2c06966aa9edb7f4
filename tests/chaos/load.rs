//! The clients of a run: helpdesks that import with retries, and users that read, export and delete.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::client::{Answer, Client};
use crate::journal::Journal;
use assay_testkit::Rng;

/// Helpdesks that import at the same time.
const HELPDESKS: u64 = 6;
/// Shortest and longest delay of a helpdesk between conversations: the service is busy, but not saturated.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(60));
/// Delay before a retry.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Between two exports.
const EXPORT_PAUSE: Duration = Duration::from_millis(2_500);
/// Between two deletions.
const DELETE_PAUSE: Duration = Duration::from_millis(400);
/// Upper limit of attempts at an export or a deletion.
const MAX_ATTEMPTS: usize = 240;

/// Generator of conversations with new ids.
pub struct Conversations {
    templates: Vec<Value>,
    next: AtomicUsize,
    seed: u64,
}

impl Conversations {
    /// Reads request bodies, one per line.
    pub fn read(lines: &str, seed: u64) -> Result<Self> {
        let templates = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self { templates, next: AtomicUsize::new(0), seed })
    }

    /// The next conversation and its external id.
    pub fn next(&self) -> (String, Value) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let external_id = format!("chaos-{}-{number}", self.seed);
        let mut body = self.templates[number % self.templates.len()].clone();
        body["ticket_id"] = Value::from(external_id.clone());
        (external_id, body)
    }

    /// Index of the template of a conversation.
    pub fn template_of(&self, external_id: &str) -> Result<usize> {
        let number = external_id.rsplit('-').next().context("no number")?;
        Ok(number.parse::<usize>()? % self.templates.len())
    }
}

/// The running clients.
pub struct Load {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Load {
    /// Starts all clients.
    pub fn start(client: &Client, journal: &Arc<Journal>, conversations: &Arc<Conversations>) -> Self {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for number in 0..HELPDESKS {
            let helpdesk = Helpdesk {
                client: client.clone(),
                journal: Arc::clone(journal),
                conversations: Arc::clone(conversations),
                rng: Rng::new(conversations.seed ^ (number << 32)),
                stop: stop.clone(),
            };
            tasks.spawn(helpdesk.work());
        }
        tasks.spawn(poll_evaluations(client.clone(), Arc::clone(journal), stop.clone()));
        tasks.spawn(export(client.clone(), Arc::clone(journal), stop.clone()));
        // Another seed than those of the helpdesks.
        let rng = Rng::new(!conversations.seed);
        tasks.spawn(delete(client.clone(), Arc::clone(journal), rng, stop.clone()));
        Self { stop, tasks }
    }

    /// Stops the clients after their current requests.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

struct Helpdesk {
    client: Client,
    journal: Arc<Journal>,
    conversations: Arc<Conversations>,
    rng: Rng,
    stop: CancellationToken,
}

impl Helpdesk {
    async fn work(mut self) {
        while !self.stop.is_cancelled() {
            let (external_id, body) = self.conversations.next();
            if self.rng.one_in(8) {
                // Concurrent duplicates.
                tokio::join!(self.assess(&external_id, &body), self.assess(&external_id, &body));
            }
            self.assess_until_done(&external_id, &body).await;
            if self.rng.one_in(8) {
                self.assess(&external_id, &body).await;
            }
            sleep(self.rng.between(PAUSE.0, PAUSE.1)).await;
        }
    }

    async fn assess_until_done(&self, external_id: &str, body: &Value) {
        while !matches!(self.assess(external_id, body).await, Answer::Done { .. }) {
            // When the load stops, an import may stay unconfirmed: the verdict accepts it stored or not.
            if self.stop.is_cancelled() {
                return;
            }
            sleep(RETRY_DELAY).await;
        }
    }

    async fn assess(&self, external_id: &str, body: &Value) -> Answer {
        let answer = self.client.assess(body).await;
        self.journal.record_import(external_id, &answer);
        answer
    }
}

/// Polls the evaluations of accepted tickets.
async fn poll_evaluations(client: Client, journal: Arc<Journal>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        for ticket_id in journal.not_seen_evaluated(20) {
            match client.read(&format!("/v1/tickets/{ticket_id}/evaluation")).await {
                Ok(evaluation) if evaluation["status"] == "pending" => {}
                Ok(_) => journal.record_evaluated(&ticket_id),
                Err(answer) => journal.record_answer("evaluation", &ticket_id, &answer),
            }
        }
        sleep(RETRY_DELAY).await;
    }
}

/// Deletes tickets, evaluated or not, with retries until confirmed.
async fn delete(client: Client, journal: Arc<Journal>, mut rng: Rng, stop: CancellationToken) {
    while stop.run_until_cancelled(sleep(DELETE_PAUSE)).await.is_some() {
        let Some(ticket_id) = journal.any_accepted(&mut rng) else { continue };
        journal.record_deletion_begin(&ticket_id);
        for _ in 0..MAX_ATTEMPTS {
            let answer = client.delete(&ticket_id).await;
            journal.record_deletion(&ticket_id, &answer);
            if matches!(answer, Answer::Done { .. }) {
                break;
            }
            sleep(RETRY_DELAY).await;
        }
    }
}

async fn export(client: Client, journal: Arc<Journal>, stop: CancellationToken) {
    let kinds = ["axis", "resolution_audit"];
    let mut number = 0;
    while !stop.is_cancelled() {
        create_export(&client, &journal, kinds[number % 2], &format!("export-{number}")).await;
        number += 1;
        stop.run_until_cancelled(sleep(EXPORT_PAUSE)).await;
    }
}

/// Creates an export, with retries under one idempotency key.
pub async fn create_export(client: &Client, journal: &Journal, kind: &'static str, key: &str) {
    let must_hold = journal.observed().seen_evaluated;
    for _ in 0..MAX_ATTEMPTS {
        let answer = client.create_export(kind, key).await;
        journal.record_export(kind, must_hold.clone(), &answer);
        if matches!(answer, Answer::Done { .. }) {
            return;
        }
        sleep(RETRY_DELAY).await;
    }
}
