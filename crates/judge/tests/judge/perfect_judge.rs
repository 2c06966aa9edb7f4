//! The rules about facts must hardly change the answers of a perfect judge, which repeats the labels of the corpus.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{Evaluation, ScorerKind};
use assay_judge::Judge;
use assay_scoring::Scorer;
use assay_scoring_fit::spearman;
use assay_testkit::stub_judge::{Findings, Question, Reply, StubJudge};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::fixture::config;
use crate::measurement_data::measurement_data;

/// Minimum agreement with the labels under the default policy: rank correlation of scores, share of equal categories.
const MIN_AGREEMENT: f64 = 0.97;

#[tokio::test]
async fn perfect_answers_survive_the_rules_on_measurement_data() {
    let Some(folder) = measurement_data("corpus/dev") else {
        return;
    };
    for set in ["hard", "languages", "tricky", "everyday"] {
        let labels = Arc::new(labels(&folder.join(format!("{set}.labels.jsonl.gz"))));
        let conversations = conversations(&folder.join(format!("{set}.jsonl.gz")));
        let evaluations = judged(&conversations, labels.clone()).await;
        for (name, agreement) in agreements(&evaluations, &labels) {
            println!("{set} {name} {agreement:.4}");
            assert!(agreement >= MIN_AGREEMENT, "{set}: {name} is {agreement:.3}");
        }
    }
}

async fn judged(conversations: &[Conversation], labels: Arc<HashMap<String, Value>>) -> Vec<Evaluation> {
    // The judge gets no ticket ids: the stub identifies tickets by their first message.
    let first = |conversation: &Conversation| conversation.messages[0].content.clone();
    let tickets: HashMap<String, String> =
        conversations.iter().map(|each| (first(each), each.ticket_id.clone())).collect();
    let stub = StubJudge::start(move |question| {
        let conversation = question.conversation();
        let ticket = &tickets[conversation["messages"][0]["text"].as_str().unwrap()];
        Reply::Text(answer(question, &labels[ticket]).to_string())
    })
    .unwrap();
    let judge = Judge::open(&config(&stub.url())).unwrap().unwrap();
    let scorer = Scorer::builtin().unwrap();
    let mut evaluations = Vec::new();
    for conversation in conversations {
        let builtin = scorer.evaluate(conversation);
        let evaluation = judge.evaluate(&scorer, conversation, builtin).await;
        let kind = evaluation.scorer.kind;
        assert!(kind == ScorerKind::Judge, "{}: {:?}", conversation.ticket_id, evaluation.scorer);
        evaluations.push(evaluation);
    }
    evaluations
}

/// The answer for a label. Labels have no basis: the simplest compatible one is used. Values that the label lacks are omitted.
fn answer(question: &Question, label: &Value) -> Value {
    let status = label["status"].as_str().unwrap_or("partial");
    let resolved_by = label["by"].as_str();
    let basis = match (status, resolved_by) {
        ("resolved", Some("human")) => "human_resolved",
        ("resolved" | "partial", _) => "answer_given",
        _ => "no_answer",
    };
    let charge =
        label["charge"].as_str().map(|charge| if charge == "na" { "not_applicable" } else { charge });
    let score = |name: &str| label[name].as_f64().unwrap();
    let findings = Findings {
        accuracy: score("RA"),
        effort: score("IE"),
        handoff: score("HS"),
        status,
        basis,
        resolved_by,
        charge,
    };
    let mut answer = question.whole_answer(&findings);
    let quotes = quotable(question);
    for part in ["resolution_accuracy", "interaction_effort", "handoff_smoothness", "resolution"] {
        answer[part]["quotes"] = quotes.clone();
    }
    answer
}

/// Quotes of the first messages that may be quoted.
fn quotable(question: &Question) -> Value {
    let conversation = question.conversation();
    let messages = conversation["messages"].as_array().unwrap().iter();
    let may_be_quoted = |message: &&Value| {
        message["seen_by_customer"] == true
            && message.get("talks_to_evaluator").is_none()
            && ["customer", "ai", "human"].iter().any(|who| message["from"] == *who)
    };
    let quote = |message: &Value| serde_json::json!({"message": message["number"], "quote": message["text"]});
    messages.filter(may_be_quoted).take(3).map(quote).collect()
}

fn agreements(evaluations: &[Evaluation], labels: &HashMap<String, Value>) -> Vec<(&'static str, f64)> {
    let score = |name: &str, read: fn(&Evaluation) -> f64| {
        let pairs: Vec<(f64, f64)> = evaluations
            .iter()
            .map(|evaluation| {
                (labels[&evaluation.external_ticket_id][name].as_f64().unwrap(), read(evaluation))
            })
            .collect();
        spearman(&pairs)
    };
    let share = |name: &str, read: fn(&Evaluation) -> &'static str| {
        let given = |evaluation: &&Evaluation| !labels[&evaluation.external_ticket_id][name].is_null();
        let right =
            |evaluation: &&Evaluation| labels[&evaluation.external_ticket_id][name] == read(evaluation);
        let rated: Vec<&Evaluation> = evaluations.iter().filter(given).collect();
        rated.iter().copied().filter(|evaluation| right(evaluation)).count() as f64 / rated.len() as f64
    };
    vec![
        ("RA", score("RA", |it| it.axis.as_ref().unwrap().dimensions.resolution_accuracy.score.value())),
        ("IE", score("IE", |it| it.axis.as_ref().unwrap().dimensions.interaction_effort.score.value())),
        ("HS", score("HS", |it| it.axis.as_ref().unwrap().dimensions.handoff_smoothness.score.value())),
        ("status", share("status", |it| it.resolution.status.as_str())),
        ("by", share("by", |it| it.resolution.resolved_by.as_str())),
        ("charge", share("charge", |it| it.charge.assessment.as_str())),
    ]
}

fn labels(path: &Path) -> HashMap<String, Value> {
    let labels = lines(path).into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
    labels.map(|label| (label["ticket_id"].as_str().unwrap().to_owned(), label)).collect()
}

fn conversations(path: &Path) -> Vec<Conversation> {
    lines(path).iter().map(|line| Conversation::parse(line.as_bytes()).unwrap()).collect()
}

fn lines(path: &Path) -> Vec<String> {
    let file = GzDecoder::new(File::open(path).unwrap());
    BufReader::new(file).lines().map(Result::unwrap).collect()
}
