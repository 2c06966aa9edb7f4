//! A judge, its endpoint, and conversations to judge.

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{Evaluation, FallbackReason, ScorerKind};
use assay_judge::{Judge, JudgeConfig, JudgePolicy};
use assay_scoring::Scorer;
use assay_testkit::stub_judge::{Question, Reply, StubJudge};
use serde_json::{Value, json};

pub type Behaviour = fn(&Question) -> Reply;

/// Author types and texts; the customer confirms the solution.
pub const SOLVED: [(&str, &str); 3] = [
    ("contact", "Please cancel order 5521."),
    ("ai", "I have cancelled order 5521, the money is on its way."),
    ("contact", "Perfect, that solved it. Thank you!"),
];
/// Author types and texts; the customer denies the solution.
pub const REJECTED: [(&str, &str); 3] = [
    ("contact", "Where is my refund?"),
    ("ai", "Refunds take five working days after the return has arrived."),
    ("contact", "No, that did not help. It is still not here."),
];

/// A stub endpoint and a judge that uses it.
pub struct Fixture {
    pub stub: StubJudge,
    pub judge: Judge,
    pub scorer: Scorer,
}

impl Fixture {
    pub fn new(answer: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(answer, |_| ())
    }

    pub fn with(
        answer: impl Fn(&Question) -> Reply + Send + Sync + 'static,
        change: impl FnOnce(&mut JudgeConfig),
    ) -> Self {
        let stub = StubJudge::start(answer).unwrap();
        let mut config = config(&stub.url());
        change(&mut config);
        let judge = Judge::open(&config).unwrap().unwrap();
        Self { stub, judge, scorer: Scorer::builtin().unwrap() }
    }

    pub fn builtin(&self, items: &[(&str, &str)]) -> Evaluation {
        self.scorer.evaluate(&conversation(items))
    }

    pub async fn evaluate(&self, items: &[(&str, &str)]) -> Evaluation {
        self.judge.evaluate(&self.scorer, &conversation(items), self.builtin(items)).await
    }

    pub fn requests(&self) -> usize {
        self.stub.questions().len()
    }

    /// Evaluates; asserts that the evaluation is the built-in one, marked as a fallback with this reason.
    pub async fn assert_falls_back(&self, items: &[(&str, &str)], reason: FallbackReason) -> Evaluation {
        let (mut expected, evaluation) = (self.builtin(items), self.evaluate(items).await);
        assert_eq!(evaluation.scorer.kind, ScorerKind::Fallback, "{:?}", evaluation.scorer);
        assert_eq!(evaluation.scorer.judge_model.as_deref(), Some("judge-1"));
        let judge = evaluation.scorer.judge.as_ref().unwrap();
        assert_eq!(judge.fallback_reason, Some(reason), "{judge:?}");
        expected.scorer = evaluation.scorer.clone();
        assert_eq!(evaluation, expected);
        evaluation
    }
}

/// The timeout is longer than a judgement ever takes, unless a test shortens it.
pub fn config(url: &str) -> JudgeConfig {
    JudgeConfig {
        url: url.to_owned(),
        model: "judge-1".to_owned(),
        policy: JudgePolicy::Decide,
        key: "a-secret-key".to_owned().into(),
        timeout_milliseconds: 60_000,
        concurrency: 4,
        attempts: 2,
        max_answer_tokens: 1000,
        max_answer_bytes: 65_536,
        max_transcript_bytes: 100_000,
        prompt_usd_per_million_tokens: 1.0,
        completion_usd_per_million_tokens: 4.0,
        daily_usd_cap: 0.0,
    }
}

pub fn conversation(items: &[(&str, &str)]) -> Conversation {
    let messages: Vec<Value> = items
        .iter()
        .enumerate()
        .map(|(index, (author, content))| {
            json!({
                "external_id": format!("m-{index}"), "timestamp": 1_763_600_000_000_i64 + 60_000 * index as i64,
                "author": {"type": author, "external_id": author}, "content": content,
            })
        })
        .collect();
    let body = json!({"ticket_id": "T-1", "messages": messages});
    Conversation::parse(body.to_string().as_bytes()).unwrap()
}

/// A good answer about [`SOLVED`].
pub fn good(question: &Question) -> Reply {
    Reply::Text(question.answer(4.6, 4.2, "resolved", "customer_confirmed").to_string())
}

/// A good answer with one change.
pub fn changed(question: &Question, pointer: &str, value: Value) -> Reply {
    let mut answer = question.answer(4.6, 4.2, "resolved", "customer_confirmed");
    *answer.pointer_mut(pointer).unwrap() = value;
    Reply::Text(answer.to_string())
}

/// A response with this status and error message.
pub fn status(status: u16, message: &str) -> Reply {
    Reply::Raw(status, String::new(), json!({"error": {"message": message}}).to_string())
}
