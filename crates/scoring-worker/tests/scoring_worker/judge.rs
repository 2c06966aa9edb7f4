//! The role with a judge, on both databases.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow};
use assay_contracts::evaluation::{FallbackReason, ScorerKind};
use assay_contracts::event::EvaluationOutcome;
use assay_contracts::tenant::Scope;
use assay_messaging::{OutgoingEvent, PublishError};
use assay_platform::runtime::{LockExt as _, new_id, now};
use assay_testkit::stub_judge::{Question, Reply, StubJudge};
use assay_testkit::{ServiceDatabase, eventually, on_both_databases};
use serde_json::{Value, json};

use crate::test_app::TestApp;
use crate::{body, by_ai, read};

on_both_databases! { Judged {
    judged_evaluation_is_stored_and_published,
    failed_judge_falls_back_to_the_builtin_scorer,
    conversation_without_ai_is_not_sent_to_the_judge,
    redelivered_event_is_not_judged_again,
    slow_judge_holds_no_transaction,
    shutdown_during_judge_call_redelivers_the_event,
} }

/// An app with a judge whose behaviour the test sets.
struct Judged {
    app: TestApp,
    judge: StubJudge,
    behaviour: Arc<Mutex<Behaviour>>,
}

#[derive(Clone, Copy)]
enum Behaviour {
    Good,
    Broken,
    Silent,
}

impl Judged {
    async fn on_sqlite() -> Result<Self> {
        Self::on(TestApp::sqlite().await?)
    }

    async fn on_postgres() -> Result<Self> {
        Self::on(TestApp::postgres().await?)
    }

    fn on(database: ServiceDatabase) -> Result<Self> {
        let behaviour = Arc::new(Mutex::new(Behaviour::Good));
        let current = behaviour.clone();
        let judge = StubJudge::start(move |question: &Question| match *current.locked() {
            Behaviour::Good => {
                Reply::Text(question.answer(4.4, 4.1, "resolved", "customer_confirmed").to_string())
            }
            Behaviour::Broken => Reply::Raw(500, String::new(), "oops".to_owned()),
            Behaviour::Silent => Reply::Hold,
        })?;
        Ok(Self { app: TestApp::run(database, &judge.url())?, judge, behaviour })
    }

    fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.locked() = behaviour;
    }

    fn calls(&self) -> usize {
        self.judge.questions().len()
    }

    /// Waits for `times` calls of the judge while polling `other`, which must not end first.
    async fn wait_until_called(&self, times: usize, other: impl Future) -> Result<()> {
        let other = pin!(other);
        tokio::select! {
            asked = eventually("the call of the judge", || async { Ok(self.calls() == times) }) => asked,
            _ = other => Err(anyhow!("it ended before the judge had answered")),
        }
    }
}

async fn judged_evaluation_is_stored_and_published(judged: Judged) -> Result<()> {
    let app = &judged.app;
    let (accepted, _) = app.accept(&by_ai()).await?;
    let evaluation = read(app, accepted.ticket_id).await?;
    assert_eq!(evaluation["scorer"]["type"], "judge");
    assert_eq!(evaluation["scorer"]["judge_model"], "judge-1");
    assert_eq!(evaluation["scorer"]["judge"]["attempts"], 1);
    assert_eq!(evaluation["scorer"]["judge"]["cost_usd"], 0.0014);
    assert_eq!(evaluation["axis"]["dimensions"]["resolution_accuracy"]["score"], 4.4);
    eventually("the event", || async { Ok(app.published(accepted.ticket_id)? == 1) }).await?;
    let received = app.received_evaluations.lock().map_err(|_| anyhow!("poisoned"))?;
    let EvaluationOutcome::Evaluated { evaluation } = &received[0].outcome else {
        return Err(anyhow!("no evaluation"));
    };
    assert_eq!(evaluation.scorer.kind, ScorerKind::Judge);
    Ok(())
}

async fn failed_judge_falls_back_to_the_builtin_scorer(judged: Judged) -> Result<()> {
    judged.behave(Behaviour::Broken);
    let (accepted, _) = judged.app.accept(&by_ai()).await?;
    let evaluation = read(&judged.app, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "scored");
    assert_eq!(evaluation["scorer"]["type"], "fallback");
    let reason = &evaluation["scorer"]["judge"]["fallback_reason"];
    assert_eq!(*reason, FallbackReason::Unavailable.as_str());
    assert_eq!(judged.calls(), 1);
    Ok(())
}

async fn conversation_without_ai_is_not_sent_to_the_judge(judged: Judged) -> Result<()> {
    let (accepted, _) = judged.app.accept(&by_human()).await?;
    let evaluation = read(&judged.app, accepted.ticket_id).await?;
    assert_eq!(evaluation["scorer"]["type"], "builtin");
    assert_eq!(evaluation["scorer"].get("judge"), None);
    assert_eq!(judged.calls(), 0);
    Ok(())
}

async fn redelivered_event_is_not_judged_again(judged: Judged) -> Result<()> {
    let (accepted, event) = judged.app.accept(&by_ai()).await?;
    let first = read(&judged.app, accepted.ticket_id).await?;
    judged.behave(Behaviour::Broken);
    judged.app.publish(&event).await?;
    judged.app.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(judged.calls(), 1);
    assert_eq!(read(&judged.app, accepted.ticket_id).await?, first);
    Ok(())
}

async fn slow_judge_holds_no_transaction(judged: Judged) -> Result<()> {
    judged.app.accept(&by_human()).await?;
    judged.behave(Behaviour::Silent);
    let waiting = judged.app.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &waiting)?;
    let mut publication = pin!(judged.app.try_publish(&event));
    judged.wait_until_called(1, &mut publication).await?;
    // Meanwhile another conversation is evaluated and stored.
    let others = async {
        let (other, _) = judged.app.accept(&by_human()).await?;
        read(&judged.app, other.ticket_id).await
    };
    let other = tokio::select! {
        other = others => other?,
        result = &mut publication => return Err(anyhow!("the judge has not answered: {result:?}")),
    };
    assert_eq!(other["status"], "not_applicable");
    Ok(())
}

async fn shutdown_during_judge_call_redelivers_the_event(mut judged: Judged) -> Result<()> {
    judged.app.accept(&by_human()).await?;
    judged.behave(Behaviour::Silent);
    let accepted = judged.app.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    {
        let mut publication = pin!(judged.app.try_publish(&event));
        judged.wait_until_called(1, &mut publication).await?;
        judged.app.stop_consuming();
        let result = publication.await;
        assert!(
            matches!(&result, Err(PublishError::Retry { reason }) if reason.contains("process stopped")),
            "{result:?}"
        );
    }
    let id = accepted.ticket_id.to_string();
    assert_eq!(judged.app.read(judged.app.organization, Scope::Tickets, &id).await?.status(), 404);
    judged.behave(Behaviour::Good);
    judged.app.start()?;
    judged.app.publish(&event).await?;
    assert_eq!(read(&judged.app, &id).await?["scorer"]["type"], "judge");
    Ok(())
}

fn by_human() -> Value {
    body(json!({"type": "teammate", "external_id": "bob"}))
}
