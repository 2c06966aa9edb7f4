//! Bounds of the queue and of its batches, turns, and the leader.

use std::pin::pin;

use assay_contracts::conversation::{AuthorType, Conversation};
use assay_contracts::event::ConversationAccepted;
use assay_contracts::ids::OrganizationId;
use assay_messaging::OutgoingEvent;
use assay_platform::runtime::{new_id, now};
use futures_util::poll;

use super::*;
use crate::domain::Participant;

fn import() -> Import {
    import_of(new_id())
}

fn import_of(organization_id: OrganizationId) -> Import {
    let body = br#"{"ticket_id":"T","messages":[
        {"author":{"type":"mixed"},"content":"x","external_id":"1","timestamp":1}]}"#;
    let conversation = Conversation::parse(body).unwrap();
    let (ticket_id, accepted_at) = (new_id(), now());
    let event = ConversationAccepted { organization_id, ticket_id, accepted_at };
    let event = OutgoingEvent::new(new_id(), accepted_at, &event).unwrap();
    Import::new(ticket_id, organization_id, conversation, &[], event, accepted_at).unwrap()
}

fn participant() -> Participant {
    Participant {
        organization_id: new_id(),
        identity: [0; 32],
        source: String::new(),
        source_account_id: None,
        author_type: AuthorType::Contact,
        external_id: String::new(),
        name: String::new(),
        named_at: now(),
    }
}

const LINGER: Duration = Duration::from_millis(2);

/// An import of about `bytes`.
fn large_import_of(organization_id: OrganizationId, bytes: usize) -> Import {
    let subject = String::from_utf8(vec![0; bytes]).unwrap();
    Import { subject: Some(subject), ..import_of(organization_id) }
}

fn queue(capacity: usize) -> ImportQueue {
    ImportQueue::new(capacity, LINGER)
}

fn fill(queue: &ImportQueue, imports: usize) -> Vec<oneshot::Receiver<WriteResult>> {
    (0..imports).map(|_| queue.push(import()).unwrap()).collect()
}

async fn take(queue: &ImportQueue) -> (usize, Option<LeaderPermit>) {
    let (jobs, permit) = queue.take(&CancellationToken::new()).await.unwrap();
    (jobs.len(), permit)
}

#[tokio::test]
async fn full_queue_refuses_imports_until_a_batch_is_taken() {
    let queue = queue(2);
    let waiting = fill(&queue, 2);
    assert_eq!(queue.push(import()).err(), Some(QueueFull::WholeQueue));
    assert_eq!(take(&queue).await.0, waiting.len());
    assert!(queue.push(import()).is_ok());
}

#[tokio::test]
async fn organization_may_fill_half_of_the_queue() {
    let (queue, large) = (queue(8), new_id());
    let waiting: Vec<_> = (0..4).map(|_| queue.push(import_of(large)).unwrap()).collect();
    assert_eq!(queue.push(import_of(large)).err(), Some(QueueFull::OrganizationShare));
    let _others = fill(&queue, 4);
    assert_eq!(queue.push(import()).err(), Some(QueueFull::WholeQueue));
    assert_eq!(take(&queue).await.0, waiting.len() + 4);
    assert!(queue.push(import_of(large)).is_ok());
}

#[tokio::test]
async fn import_of_a_small_organization_is_in_the_next_batch() {
    let (queue, large, small) = (queue(10 * MAX_BATCH), new_id(), new_id());
    let _many: Vec<_> = (0..4 * MAX_BATCH).map(|_| queue.push(import_of(large)).unwrap()).collect();
    let _one = queue.push(import_of(small)).unwrap();
    let (jobs, _) = queue.take(&CancellationToken::new()).await.unwrap();
    let turn = jobs.iter().position(|job| job.import.organization_id == small);
    assert_eq!((jobs.len(), turn), (MAX_BATCH, Some(1)));
}

#[tokio::test]
async fn batch_is_bounded_and_skips_withdrawn_imports() {
    let queue = queue(1_000);
    drop(queue.push(import()).unwrap());
    let waiting = fill(&queue, MAX_BATCH + 1);
    let first = take(&queue).await.0;
    let second = take(&queue).await.0;
    assert_eq!(first + second, waiting.len());
    assert!(first <= MAX_BATCH);
}

#[tokio::test]
async fn batch_is_bounded_in_bytes_and_a_larger_import_is_alone() {
    let queue = queue(1_000);
    let sizes = [MAX_BATCH_BYTES / 3, MAX_BATCH_BYTES / 3, MAX_BATCH_BYTES / 3, 2 * MAX_BATCH_BYTES, 10];
    let waiting = sizes.map(|bytes| queue.push(large_import_of(new_id(), bytes)).unwrap());
    let mut taken = Vec::new();
    while taken.iter().sum::<usize>() < waiting.len() {
        taken.push(take(&queue).await.0);
    }
    assert_eq!(taken, [2, 1, 1, 1]);
}

#[tokio::test]
async fn display_names_count_in_the_bytes_of_a_batch() {
    let queue = queue(1_000);
    let name = Participant { name: "n".repeat(MAX_BATCH_BYTES / 100), ..participant() };
    let waiting: Vec<_> = (0..4)
        .map(|_| queue.push(Import { participants: vec![name.clone(); 30], ..import() }).unwrap())
        .collect();
    let first = take(&queue).await.0;
    assert_eq!((first, take(&queue).await.0), (3, waiting.len() - 3));
}

#[tokio::test]
async fn queue_is_bounded_in_bytes_and_an_organization_to_half_of_them() {
    let (queue, large) = (queue(1_000), new_id());
    let nearly_half = MAX_QUEUED_BYTES / 2 - 4 * 1024;
    let _half = queue.push(large_import_of(large, nearly_half)).unwrap();
    let refused = queue.push(large_import_of(large, 8 * 1024)).err();
    assert_eq!(refused, Some(QueueFull::OrganizationShare));
    let _other_half = queue.push(large_import_of(new_id(), nearly_half)).unwrap();
    let refused = queue.push(large_import_of(new_id(), 16 * 1024)).err();
    assert_eq!(refused, Some(QueueFull::WholeQueue));
    assert_eq!(take(&queue).await.0, 1);
    assert!(queue.push(large_import_of(large, 8 * 1024)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn second_writer_takes_only_full_batches_until_it_is_leader() {
    let queue = queue(1_000);
    let _one = queue.push(import()).unwrap();
    let (taken, permit) = take(&queue).await;
    assert!(taken == 1 && permit.is_some());

    let mut other = pin!(take(&queue));
    let _more = fill(&queue, MAX_BATCH - 1);
    assert!(poll!(&mut other).is_pending());
    let _last = queue.push(import()).unwrap();
    let (taken, no_permit) = other.await;
    assert!(taken == MAX_BATCH && no_permit.is_none());

    let _one = queue.push(import()).unwrap();
    let mut other = pin!(take(&queue));
    assert!(poll!(&mut other).is_pending());
    drop(permit);
    assert_eq!(other.await.0, 1);
}

#[tokio::test(start_paused = true)]
async fn leader_lingers_only_under_load_and_until_the_target_batch() {
    let queue = queue(1_000);
    let started = Instant::now();
    let _few = fill(&queue, LINGER_FROM - 1);
    assert_eq!(take(&queue).await.0, LINGER_FROM - 1);
    let _many = fill(&queue, LINGER_FROM);
    assert_eq!(take(&queue).await.0, LINGER_FROM);
    assert_eq!(started.elapsed(), Duration::ZERO, "the batch before was small");

    let _one = queue.push(import()).unwrap();
    assert_eq!(take(&queue).await.0, 1);
    assert!((LINGER..2 * LINGER).contains(&started.elapsed()));

    let _many = fill(&queue, LINGER_FROM);
    drop(take(&queue).await);
    let now = Instant::now();
    let _one = queue.push(import()).unwrap();
    let mut lingering = pin!(take(&queue));
    assert!(poll!(&mut lingering).is_pending());
    let _rest = fill(&queue, TARGET_BATCH - 1);
    assert_eq!(lingering.await.0, TARGET_BATCH);
    assert_eq!(now.elapsed(), Duration::ZERO, "no lingering beyond the target batch");
}

#[tokio::test]
async fn queued_imports_are_taken_before_a_stop_ends_the_queue() {
    let queue = queue(2);
    let _waiting = queue.push(import()).unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(queue.take(&stop).await.map(|(jobs, _)| jobs.len()), Some(1));
    assert!(queue.take(&stop).await.is_none());
}
