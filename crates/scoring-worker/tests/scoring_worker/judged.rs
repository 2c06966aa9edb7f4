//! The role with a judge, on both databases.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use assay_contracts::evaluation::{FallbackReason, ScorerKind};
use assay_contracts::event::EvaluationOutcome;
use assay_contracts::tenant::Scope;
use assay_messaging::{OutgoingEvent, PublishError};
use assay_platform::runtime::{new_id, now};
use assay_testkit::stub_judge::{Question, Reply, StubJudge};
use assay_testkit::{ServiceDatabase, eventually, on_both_databases};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::{body, by_ai, read};

on_both_databases! { Judged {
    a_conversation_is_judged_and_the_event_says_so,
    without_a_usable_answer_the_built_in_evaluation_stands_and_says_why,
    a_conversation_without_an_ai_is_not_sent_to_the_judge,
    a_redelivered_event_is_not_judged_again,
    a_slow_judge_holds_no_transaction,
    a_judgement_that_a_shutdown_interrupts_is_delivered_again,
} }

/// A stage whose judge behaves as the test says.
struct Judged {
    stage: Stage,
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
        Self::on(Stage::sqlite().await?)
    }

    async fn on_postgres() -> Result<Self> {
        Self::on(Stage::postgres().await?)
    }

    fn on(database: ServiceDatabase) -> Result<Self> {
        let behaviour = Arc::new(Mutex::new(Behaviour::Good));
        let told = behaviour.clone();
        let judge = StubJudge::start(move |question: &Question| {
            match *told.lock().unwrap_or_else(PoisonError::into_inner) {
                Behaviour::Good => {
                    Reply::Text(question.answer(4.4, 4.1, "resolved", "customer_confirmed").to_string())
                }
                Behaviour::Broken => Reply::Raw(500, String::new(), "oops".to_owned()),
                Behaviour::Silent => Reply::Hold,
            }
        })?;
        Ok(Self { stage: Stage::run(database, &judge.url())?, judge, behaviour })
    }

    fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    fn asked(&self) -> usize {
        self.judge.questions().len()
    }

    /// Waits until so many questions have arrived, without losing sight of `other`, which must not end before.
    async fn until_asked(&self, times: usize, other: impl Future) -> Result<()> {
        let other = pin!(other);
        tokio::select! {
            asked = eventually("the judge to be asked", || async { Ok(self.asked() == times) }) => asked,
            _ = other => Err(anyhow!("it ended before the judge had answered")),
        }
    }
}

async fn a_conversation_is_judged_and_the_event_says_so(judged: Judged) -> Result<()> {
    let stage = &judged.stage;
    let (accepted, _) = stage.accept(&by_ai()).await?;
    let evaluation = read(stage, accepted.ticket_id).await?;
    assert_eq!(evaluation["scorer"]["type"], "judge");
    assert_eq!(evaluation["scorer"]["judge_model"], "judge-1");
    assert_eq!(evaluation["scorer"]["judge"]["attempts"], 1);
    assert_eq!(evaluation["scorer"]["judge"]["cost_usd"], 0.0014);
    assert_eq!(evaluation["axis"]["dimensions"]["resolution_accuracy"]["score"], 4.4);
    eventually("the event", || async { Ok(stage.told(accepted.ticket_id)? == 1) }).await?;
    let heard = stage.heard.lock().map_err(|_| anyhow!("poisoned"))?;
    let EvaluationOutcome::Evaluated { evaluation } = &heard[0].outcome else {
        return Err(anyhow!("no evaluation"));
    };
    assert_eq!(evaluation.scorer.kind, ScorerKind::Judge);
    Ok(())
}

async fn without_a_usable_answer_the_built_in_evaluation_stands_and_says_why(judged: Judged) -> Result<()> {
    judged.behave(Behaviour::Broken);
    let (accepted, _) = judged.stage.accept(&by_ai()).await?;
    let evaluation = read(&judged.stage, accepted.ticket_id).await?;
    assert_eq!(evaluation["status"], "scored");
    assert_eq!(evaluation["scorer"]["type"], "fallback");
    let reason = &evaluation["scorer"]["judge"]["fallback_reason"];
    assert_eq!(*reason, FallbackReason::Unavailable.as_str());
    assert_eq!(judged.asked(), 1);
    Ok(())
}

async fn a_conversation_without_an_ai_is_not_sent_to_the_judge(judged: Judged) -> Result<()> {
    let (accepted, _) = judged.stage.accept(&by_human()).await?;
    let evaluation = read(&judged.stage, accepted.ticket_id).await?;
    assert_eq!(evaluation["scorer"]["type"], "builtin");
    assert_eq!(evaluation["scorer"].get("judge"), None);
    assert_eq!(judged.asked(), 0);
    Ok(())
}

async fn a_redelivered_event_is_not_judged_again(judged: Judged) -> Result<()> {
    let (accepted, event) = judged.stage.accept(&by_ai()).await?;
    let first = read(&judged.stage, accepted.ticket_id).await?;
    judged.behave(Behaviour::Broken);
    judged.stage.publish(&event).await?;
    judged.stage.publish(&OutgoingEvent::new(new_id(), now(), &accepted)?).await?;
    assert_eq!(judged.asked(), 1);
    assert_eq!(read(&judged.stage, accepted.ticket_id).await?, first);
    Ok(())
}

async fn a_slow_judge_holds_no_transaction(judged: Judged) -> Result<()> {
    judged.stage.accept(&by_human()).await?;
    judged.behave(Behaviour::Silent);
    let waiting = judged.stage.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &waiting)?;
    let mut publication = pin!(judged.stage.try_publish(&event));
    judged.until_asked(1, &mut publication).await?;
    // While it waits for its judge, another one is evaluated and stored.
    let others = async {
        let (other, _) = judged.stage.accept(&by_human()).await?;
        read(&judged.stage, other.ticket_id).await
    };
    let other = tokio::select! {
        other = others => other?,
        result = &mut publication => return Err(anyhow!("the judge has not answered: {result:?}")),
    };
    assert_eq!(other["status"], "not_applicable");
    Ok(())
}

async fn a_judgement_that_a_shutdown_interrupts_is_delivered_again(mut judged: Judged) -> Result<()> {
    judged.stage.accept(&by_human()).await?;
    judged.behave(Behaviour::Silent);
    let accepted = judged.stage.store(&by_ai())?;
    let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
    {
        let mut publication = pin!(judged.stage.try_publish(&event));
        judged.until_asked(1, &mut publication).await?;
        judged.stage.stop_consuming();
        let result = publication.await;
        assert!(
            matches!(&result, Err(PublishError::Retry { reason }) if reason.contains("process stopped")),
            "{result:?}"
        );
    }
    let id = accepted.ticket_id.to_string();
    assert_eq!(judged.stage.read(judged.stage.organization, Scope::Tickets, &id).await?.status(), 404);
    judged.behave(Behaviour::Good);
    judged.stage.start()?;
    judged.stage.publish(&event).await?;
    assert_eq!(read(&judged.stage, &id).await?["scorer"]["type"], "judge");
    Ok(())
}

fn by_human() -> Value {
    body(json!({"type": "teammate", "external_id": "bob"}))
}
