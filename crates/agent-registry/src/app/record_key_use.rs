//! Records the last use of keys in the background: a response never waits for it.

use assay_contracts::ids::ApiKeyId;
use assay_contracts::time::Timestamp;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;

use crate::store::Store;

/// Capacity of the queue. When it is full, uses are dropped: the next use of the key is recorded instead.
const QUEUE_CAPACITY: usize = 256;

pub struct KeyUse {
    key: ApiKeyId,
    at: Timestamp,
}

/// The sending end of the queue of uses.
#[derive(Clone)]
pub struct KeyUses(Sender<KeyUse>);

/// A queue of uses: the receiver is for [`record_key_uses`].
pub fn key_uses() -> (KeyUses, Receiver<KeyUse>) {
    let (sender, receiver) = channel(QUEUE_CAPACITY);
    (KeyUses(sender), receiver)
}

impl KeyUses {
    /// Queues a use without waiting.
    pub fn push(&self, key: ApiKeyId, at: Timestamp) {
        if self.0.try_send(KeyUse { key, at }).is_err() {
            tracing::debug!(%key, "use of a key is not recorded: the queue is full");
        }
    }
}

/// Records queued uses until `stop`, then the rest of the queue. Uses during a database outage are lost.
pub async fn record_key_uses(store: Store, mut uses: Receiver<KeyUse>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            next = uses.recv() => match next {
                Some(next) => record(&store, &next).await,
                // All senders are gone.
                None => break,
            },
        }
    }
    uses.close();
    while let Some(next) = uses.recv().await {
        record(&store, &next).await;
    }
    // Also when all senders are gone: a task that ends early ends the process.
    stop.cancelled().await;
}

async fn record(store: &Store, used: &KeyUse) {
    if let Err(error) = store.record_key_use(used.key, used.at).await {
        tracing::warn!(key = %used.key, cause = %error, "use of a key is not recorded");
    }
}
