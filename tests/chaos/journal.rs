//! What the clients did and were told, in order: on disk as it happens, and in memory for the verdict.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use crate::client::Answer;
use crate::dice::Dice;

/// Everything that was asked and answered. Shared by all clients of a run.
pub struct Journal {
    begun: Instant,
    contents: Mutex<Contents>,
}

struct Contents {
    file: BufWriter<File>,
    told: Told,
}

/// What the clients know from answers alone.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// Requests of all kinds.
    pub requests: u64,
    /// Answers 202.
    pub accepted_answers: u64,
    /// By external ticket id: the ids in answers 202, and those in answers 409. More than one id is a violation.
    pub accepted: HashMap<String, BTreeSet<String>>,
    pub duplicates: HashMap<String, BTreeSet<String>>,
    /// External ids that were ever sent, whatever came back.
    pub sent: HashSet<String>,
    /// Tickets that a client has seen evaluated.
    pub seen_evaluated: HashSet<String>,
    /// Tickets whose deletion was asked for, and those of which a client was told that it is done.
    pub deleting: HashSet<String>,
    pub deleted: HashSet<String>,
    /// Exports that were created.
    pub exports: Vec<Export>,
    /// Failures by cause.
    pub failures: BTreeMap<String, u64>,
    /// What must never be answered, in words.
    pub violations: Vec<String>,
}

/// An export that a client created.
#[derive(Debug, Clone)]
pub struct Export {
    pub id: String,
    pub kind: &'static str,
    /// Tickets that were seen evaluated before it was asked for: its file must hold them.
    pub must_hold: HashSet<String>,
}

impl Journal {
    pub fn create(path: &Path) -> Result<Self> {
        let contents = Contents { file: BufWriter::new(File::create(path)?), told: Told::default() };
        Ok(Self { begun: Instant::now(), contents: Mutex::new(contents) })
    }

    /// An import was answered.
    pub fn assess(&self, external_id: &str, answer: &Answer) {
        let mut contents = self.note("assess", external_id, answer);
        let told = &mut contents.told;
        told.sent.insert(external_id.to_owned());
        match answer {
            Answer::Done { status: 202, id } => {
                told.accepted_answers += 1;
                told.accepted.entry(external_id.to_owned()).or_default().insert(id.clone());
            }
            Answer::Done { id, .. } => {
                told.duplicates.entry(external_id.to_owned()).or_default().insert(id.clone());
            }
            Answer::Refused { .. } | Answer::Silent { .. } => {}
        }
    }

    /// An export was created, or not.
    pub fn export(&self, kind: &'static str, must_hold: HashSet<String>, answer: &Answer) {
        let mut contents = self.note("export", kind, answer);
        if let Answer::Done { id, .. } = answer {
            contents.told.exports.push(Export { id: id.clone(), kind, must_hold });
        }
    }

    /// The deletion of a ticket begins: from now on it may be there or not.
    pub fn deleting(&self, ticket_id: &str) {
        self.lock().told.deleting.insert(ticket_id.to_owned());
    }

    /// A deletion was answered.
    pub fn delete(&self, ticket_id: &str, answer: &Answer) {
        let mut contents = self.note("delete", ticket_id, answer);
        if matches!(answer, Answer::Done { .. }) {
            contents.told.deleted.insert(ticket_id.to_owned());
        }
    }

    /// A ticket that was accepted and is not being deleted.
    pub fn any_accepted(&self, dice: &mut Dice) -> Option<String> {
        let contents = self.lock();
        let told = &contents.told;
        let ids: Vec<&String> = told.accepted.values().flatten().collect();
        let id = (*ids.get(dice.below(ids.len()))?).clone();
        (!told.deleting.contains(&id)).then_some(id)
    }

    /// A ticket was seen evaluated.
    pub fn evaluated(&self, ticket_id: &str) {
        self.lock().told.seen_evaluated.insert(ticket_id.to_owned());
    }

    /// Any other request was answered.
    pub fn other(&self, what: &str, of: &str, answer: &Answer) {
        drop(self.note(what, of, answer));
    }

    /// Something began or ended that is no request.
    pub fn event(&self, what: &str, detail: impl Serialize) {
        let line = json!({"at_ms": self.millis(), "what": what, "detail": json!(detail)});
        let _ = writeln!(self.lock().file, "{line}");
    }

    /// What the clients were told until now.
    pub fn told(&self) -> Told {
        let mut contents = self.lock();
        let _ = contents.file.flush();
        contents.told.clone()
    }

    /// Tickets that were accepted and not seen evaluated yet, `limit` at most.
    pub fn unseen(&self, limit: usize) -> Vec<String> {
        let contents = self.lock();
        let told = &contents.told;
        let is_unseen = |id: &&String| !told.seen_evaluated.contains(*id) && !told.deleting.contains(*id);
        let ids = told.accepted.values().flatten().filter(is_unseen);
        ids.take(limit).cloned().collect()
    }

    /// Tickets that were seen evaluated.
    pub fn seen(&self) -> HashSet<String> {
        self.lock().told.seen_evaluated.clone()
    }

    fn note(&self, what: &str, of: &str, answer: &Answer) -> MutexGuard<'_, Contents> {
        let line = json!({"at_ms": self.millis(), "what": what, "of": of, "answer": answer});
        let mut contents = self.lock();
        let _ = writeln!(contents.file, "{line}");
        contents.told.requests += 1;
        if let Some(cause) = answer.failure() {
            *contents.told.failures.entry(cause).or_default() += 1;
        }
        let is_gone =
            matches!(answer, Answer::Refused { status: 404, .. }) && contents.told.deleting.contains(of);
        if let Some(violation) = violation(what, of, answer)
            && !is_gone
        {
            contents.told.violations.push(violation);
        }
        contents
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A service in trouble says 503, that it does, and when to come back; nothing else, and never nothing at all.
fn violation(what: &str, of: &str, answer: &Answer) -> Option<String> {
    match answer {
        Answer::Refused { status: 503, retry_after: false, code } => {
            Some(format!("{what} of {of}: 503 {code} without Retry-After"))
        }
        Answer::Refused { status: 503, .. } => None,
        Answer::Refused { status, code, .. } => Some(format!("{what} of {of}: {status} {code}")),
        Answer::Silent { why: "no answer in time" } => Some(format!("{what} of {of}: no answer in time")),
        Answer::Done { id, status } if id.is_empty() => {
            Some(format!("{what} of {of}: {status} without an id"))
        }
        Answer::Done { .. } | Answer::Silent { .. } => None,
    }
}
