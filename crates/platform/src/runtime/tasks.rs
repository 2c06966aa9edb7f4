//! Task supervision: every task has a name, an owner and a stop token. Shutdown runs in phases, each with a time limit:
//! not ready → stop consuming → stop serving the public → stop serving the other services → stop the background tasks, such as relays.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::readiness::Readiness;

/// Error of a task.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Shutdown phase of a task, in shutdown order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Consumers of the bus, and timers that start work.
    Consume,
    /// Public HTTP servers.
    ServePublic,
    /// HTTP servers for other services.
    ServeInternal,
    /// Relays, writers, maintenance and watchers: the earlier phases need them until they end.
    Background,
}

const PHASES: [Phase; 4] = [Phase::Consume, Phase::ServePublic, Phase::ServeInternal, Phase::Background];

/// Time limits of the shutdown.
#[derive(Debug, Clone, Copy)]
pub struct ShutdownBudgets {
    /// Limit of each phase; its remaining tasks are aborted.
    pub per_phase: Duration,
    /// Pause between "not ready" and the first phase, for load balancers.
    pub drain: Duration,
}

/// A task failure that ends the process with an error.
#[derive(Debug, thiserror::Error)]
pub enum TaskFailure {
    /// A task ended before its stop token was cancelled.
    #[error("task `{name}` ended early: {reason}")]
    EndedEarly {
        /// Name of the task.
        name: String,
        /// Its error.
        reason: String,
    },
    /// A task failed after its stop token was cancelled.
    #[error("task `{name}` failed while it stopped: {reason}")]
    FailedWhileStopping {
        /// Name of the task.
        name: String,
        /// Its error.
        reason: String,
    },
    /// A task did not stop within its limit.
    #[error("task `{name}` did not stop within its budget and was aborted")]
    Stuck {
        /// Name of the task.
        name: String,
    },
}

type TaskResult = Result<(), BoxError>;

/// The output of a task: nothing, or a result.
pub trait TaskOutput {
    /// The output as a result.
    ///
    /// # Errors
    /// The failure of the task.
    fn into_result(self) -> Result<(), BoxError>;
}

impl TaskOutput for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> TaskOutput for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// The tasks of a process, and their shutdown order.
pub struct Tasks {
    running: JoinSet<TaskResult>,
    /// Phase and name of each running task.
    names: HashMap<Id, (Phase, String)>,
    /// Stop tokens by phase.
    stops: HashMap<Phase, CancellationToken>,
    readiness: Readiness,
}

impl Tasks {
    /// An empty set. Shutdown sets the latch of `readiness`.
    pub fn new(readiness: Readiness) -> Self {
        let stops = PHASES.into_iter().map(|phase| (phase, CancellationToken::new())).collect();
        Self { running: JoinSet::new(), names: HashMap::new(), stops, readiness }
    }

    /// Starts a new role of this process with its own readiness: otherwise a role whose check calls another role of the
    /// process would check itself.
    pub fn begin_role(&mut self) {
        self.readiness = self.readiness.sibling();
    }

    /// Readiness of the current role, see [`Self::begin_role`].
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Stop token of `phase`.
    pub fn stop_token(&self, phase: Phase) -> CancellationToken {
        self.stops.get(&phase).cloned().unwrap_or_default()
    }

    /// Spawns a task. It must end soon after its token is cancelled, and not before.
    pub fn spawn<F, Fut>(&mut self, phase: Phase, name: impl Into<String>, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output: TaskOutput> + Send + 'static,
    {
        let future = task(self.stop_token(phase));
        // Boxed, so that tokio's task is compiled once and not for each task of each role.
        let boxed: Pin<Box<dyn Future<Output = TaskResult> + Send>> =
            Box::pin(async move { future.await.into_result() });
        let handle = self.running.spawn(boxed);
        self.names.insert(handle.id(), (phase, name.into()));
    }

    /// Waits until `stop` resolves or a task ends early; then ends all tasks phase by phase.
    ///
    /// # Errors
    /// The first failure, see [`TaskFailure`].
    pub async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        budgets: ShutdownBudgets,
    ) -> Result<(), TaskFailure> {
        let mut failure = tokio::select! {
            () = stop => None,
            failure = self.next_early_end() => Some(failure),
        };
        self.readiness.begin_shutdown();
        if failure.is_none() {
            tokio::time::sleep(budgets.drain).await;
        }
        for phase in PHASES {
            self.stop_token(phase).cancel();
            let phase_failure = self.end_phase(phase, Instant::now() + budgets.per_phase).await;
            failure = failure.or(phase_failure);
        }
        failure.map_or(Ok(()), Err)
    }

    async fn next_early_end(&mut self) -> TaskFailure {
        loop {
            match self.running.join_next_with_id().await {
                Some(end) => {
                    let (name, reason) = self.remove_ended(end);
                    let reason = reason.unwrap_or_else(|| "it returned without an error".to_owned());
                    tracing::error!(task = name, reason, "task ended early: shutting down");
                    return TaskFailure::EndedEarly { name, reason };
                }
                // No tasks: wait for the stop signal.
                None => std::future::pending::<()>().await,
            }
        }
    }

    async fn end_phase(&mut self, phase: Phase, deadline: Instant) -> Option<TaskFailure> {
        let mut failure = None;
        while self.names.values().any(|(task_phase, _)| *task_phase == phase) {
            match timeout_at(deadline, self.running.join_next_with_id()).await {
                Ok(Some(end)) => {
                    let (name, reason) = self.remove_ended(end);
                    if let Some(reason) = reason {
                        tracing::error!(task = name, reason, "task failed while stopping");
                        failure = failure.or(Some(TaskFailure::FailedWhileStopping { name, reason }));
                    }
                }
                Ok(None) => break,
                Err(_) => return failure.or(self.give_up_phase(phase)),
            }
        }
        failure
    }

    /// Stops waiting for the tasks of a phase. They are aborted when [`Self::run`] drops the set.
    fn give_up_phase(&mut self, phase: Phase) -> Option<TaskFailure> {
        let stuck: Vec<Id> = self
            .names
            .iter()
            .filter(|(_, (task_phase, _))| *task_phase == phase)
            .map(|(id, _)| *id)
            .collect();
        let names: Vec<String> =
            stuck.iter().filter_map(|id| self.names.remove(id)).map(|(_, name)| name).collect();
        for name in &names {
            tracing::error!(task = name, "task did not stop within its budget");
        }
        names.into_iter().next().map(|name| TaskFailure::Stuck { name })
    }

    /// Removes a task that has ended; returns its name, and its error if it failed.
    fn remove_ended(&mut self, end: Result<(Id, TaskResult), JoinError>) -> (String, Option<String>) {
        let (id, reason) = match end {
            Ok((id, Ok(()))) => (id, None),
            Ok((id, Err(error))) => (id, Some(error.to_string())),
            Err(error) => (error.id(), Some(error.to_string())),
        };
        let name = self.names.remove(&id).map_or_else(|| "unnamed".to_owned(), |(_, name)| name);
        (name, reason)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const BUDGETS: ShutdownBudgets =
        ShutdownBudgets { per_phase: Duration::from_millis(200), drain: Duration::ZERO };

    #[tokio::test]
    async fn tasks_stop_in_phase_order() {
        let ended = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Tasks::new(Readiness::default());
        for phase in [Phase::Background, Phase::Consume, Phase::ServePublic] {
            let ended = ended.clone();
            tasks.spawn(phase, format!("{phase:?}"), move |stop| async move {
                stop.cancelled().await;
                ended.lock().unwrap().push(phase);
            });
        }
        tasks.run(async {}, BUDGETS).await.unwrap();
        assert_eq!(*ended.lock().unwrap(), [Phase::Consume, Phase::ServePublic, Phase::Background]);
    }

    #[tokio::test]
    async fn early_end_of_a_task_fails_the_process() {
        let mut tasks = Tasks::new(Readiness::default());
        tasks.spawn(Phase::Consume, "consumer", |_| async { Err::<(), BoxError>("connection lost".into()) });
        let failure = tasks.run(std::future::pending(), BUDGETS).await.unwrap_err();
        assert_eq!(failure.to_string(), "task `consumer` ended early: connection lost");
    }

    #[tokio::test]
    async fn failure_while_stopping_fails_the_process() {
        let mut tasks = Tasks::new(Readiness::default());
        tasks.spawn(Phase::Background, "relay", |stop| async move {
            stop.cancelled().await;
            Err::<(), BoxError>("connection lost".into())
        });
        let failure = tasks.run(async {}, BUDGETS).await.unwrap_err();
        assert_eq!(failure.to_string(), "task `relay` failed while it stopped: connection lost");
    }

    #[tokio::test]
    async fn stuck_task_is_named_in_the_failure() {
        let mut tasks = Tasks::new(Readiness::default());
        tasks.spawn(Phase::Consume, "deaf", |_| std::future::pending::<()>());
        let failure = tasks.run(async {}, BUDGETS).await.unwrap_err();
        assert!(matches!(failure, TaskFailure::Stuck { name } if name == "deaf"));
    }
}
