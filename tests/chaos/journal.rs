//! Requests and answers of the clients, in order: written to disk as they happen, and kept in memory for the verdict.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use anyhow::Result;
use assay_platform::runtime::LockExt as _;
use serde::Serialize;
use serde_json::json;

use crate::client::Answer;
use assay_testkit::Rng;

/// The log of a run, shared by all clients.
pub struct Journal {
    begun: Instant,
    contents: Mutex<Contents>,
}

struct Contents {
    file: BufWriter<File>,
    observed: Observed,
}

/// The state that clients can infer from answers alone.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Requests of all kinds.
    pub requests: u64,
    /// Answers 202.
    pub accepted_answers: u64,
    /// By external ticket id: the ids in answers 202, and those in answers 409. More than one id is a violation.
    pub accepted: HashMap<String, BTreeSet<String>>,
    pub duplicates: HashMap<String, BTreeSet<String>>,
    /// External ids that were sent, whatever the answer.
    pub sent: HashSet<String>,
    /// Tickets that a client has seen evaluated.
    pub seen_evaluated: HashSet<String>,
    /// Tickets whose deletion was requested, and those whose deletion was confirmed.
    pub deleting: HashSet<String>,
    pub deleted: HashSet<String>,
    pub exports: Vec<Export>,
    /// Failures by cause.
    pub failures: BTreeMap<String, u64>,
    /// Answers that must never occur.
    pub violations: Vec<String>,
}

/// An export that a client created.
#[derive(Debug, Clone)]
pub struct Export {
    pub id: String,
    pub kind: &'static str,
    /// Tickets seen evaluated before the request: its file must hold them.
    pub must_hold: HashSet<String>,
}

impl Journal {
    pub fn create(path: &Path) -> Result<Self> {
        let contents = Contents { file: BufWriter::new(File::create(path)?), observed: Observed::default() };
        Ok(Self { begun: Instant::now(), contents: Mutex::new(contents) })
    }

    pub fn record_import(&self, external_id: &str, answer: &Answer) {
        let mut contents = self.record("assess", external_id, answer);
        let observed = &mut contents.observed;
        observed.sent.insert(external_id.to_owned());
        match answer {
            Answer::Done { status: 202, id } => {
                observed.accepted_answers += 1;
                observed.accepted.entry(external_id.to_owned()).or_default().insert(id.clone());
            }
            Answer::Done { id, .. } => {
                observed.duplicates.entry(external_id.to_owned()).or_default().insert(id.clone());
            }
            Answer::Refused { .. } | Answer::Silent { .. } => {}
        }
    }

    /// Records the answer to the creation of an export.
    pub fn record_export(&self, kind: &'static str, must_hold: HashSet<String>, answer: &Answer) {
        let mut contents = self.record("export", kind, answer);
        if let Answer::Done { id, .. } = answer {
            contents.observed.exports.push(Export { id: id.clone(), kind, must_hold });
        }
    }

    /// Records that a deletion begins: from now on the ticket may exist or not.
    pub fn record_deletion_begin(&self, ticket_id: &str) {
        self.lock().observed.deleting.insert(ticket_id.to_owned());
    }

    pub fn record_deletion(&self, ticket_id: &str, answer: &Answer) {
        let mut contents = self.record("delete", ticket_id, answer);
        if matches!(answer, Answer::Done { .. }) {
            contents.observed.deleted.insert(ticket_id.to_owned());
        }
    }

    /// A random accepted ticket; `None` if its deletion was requested.
    pub fn any_accepted(&self, rng: &mut Rng) -> Option<String> {
        let contents = self.lock();
        let observed = &contents.observed;
        let ids: Vec<&String> = observed.accepted.values().flatten().collect();
        let id = (*ids.get(rng.below(ids.len()))?).clone();
        (!observed.deleting.contains(&id)).then_some(id)
    }

    /// Records that a ticket was seen evaluated.
    pub fn record_evaluated(&self, ticket_id: &str) {
        self.lock().observed.seen_evaluated.insert(ticket_id.to_owned());
    }

    /// Records the answer to any other request.
    pub fn record_answer(&self, request: &str, subject: &str, answer: &Answer) {
        drop(self.record(request, subject, answer));
    }

    /// Records an event that is not a request.
    pub fn record_event(&self, what: &str, detail: impl Serialize) {
        let line = json!({"at_ms": self.millis(), "what": what, "detail": json!(detail)});
        let _ = writeln!(self.lock().file, "{line}");
    }

    pub fn observed(&self) -> Observed {
        let mut contents = self.lock();
        let _ = contents.file.flush();
        contents.observed.clone()
    }

    /// Tickets that were accepted and not seen evaluated yet, `limit` at most.
    pub fn not_seen_evaluated(&self, limit: usize) -> Vec<String> {
        let contents = self.lock();
        let observed = &contents.observed;
        let is_unseen =
            |id: &&String| !observed.seen_evaluated.contains(*id) && !observed.deleting.contains(*id);
        let ids = observed.accepted.values().flatten().filter(is_unseen);
        ids.take(limit).cloned().collect()
    }

    fn record(&self, request: &str, subject: &str, answer: &Answer) -> MutexGuard<'_, Contents> {
        let line = json!({"at_ms": self.millis(), "what": request, "of": subject, "answer": answer});
        let mut contents = self.lock();
        let _ = writeln!(contents.file, "{line}");
        contents.observed.requests += 1;
        if let Some(cause) = answer.failure() {
            *contents.observed.failures.entry(cause).or_default() += 1;
        }
        let is_gone = matches!(answer, Answer::Refused { status: 404, .. })
            && contents.observed.deleting.contains(subject);
        if let Some(violation) = violation(request, subject, answer)
            && !is_gone
        {
            contents.observed.violations.push(violation);
        }
        contents
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.locked()
    }
}

/// Acceptable failures are a 503 with `Retry-After` and a broken connection; every other failure is a violation.
fn violation(request: &str, subject: &str, answer: &Answer) -> Option<String> {
    match answer {
        Answer::Refused { status: 503, retry_after: false, code } => {
            Some(format!("{request} of {subject}: 503 {code} without Retry-After"))
        }
        Answer::Refused { status: 503, .. } => None,
        Answer::Refused { status, code, .. } => Some(format!("{request} of {subject}: {status} {code}")),
        Answer::Silent { why: "no answer in time" } => {
            Some(format!("{request} of {subject}: no answer in time"))
        }
        Answer::Done { id, status } if id.is_empty() => {
            Some(format!("{request} of {subject}: {status} without an id"))
        }
        Answer::Done { .. } | Answer::Silent { .. } => None,
    }
}
