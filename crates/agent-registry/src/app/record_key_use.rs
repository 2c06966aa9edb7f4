//! Records when keys were used, beside the requests that use them: an answer never waits for it.

use std::sync::Arc;

use assay_contracts::ids::ApiKeyId;
use assay_contracts::time::Timestamp;
use assay_platform::runtime::BoxError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;

use crate::store::Store;

/// Uses that may wait to be recorded. More are dropped: the next use of the key is recorded instead.
const WAITING: usize = 256;

/// One use of a key.
pub struct KeyUse {
    key: ApiKeyId,
    at: Timestamp,
}

/// Where uses are noted.
#[derive(Clone)]
pub struct KeyUses(Sender<KeyUse>);

/// The two ends: where uses are noted, and what [`record_key_uses`] takes them from.
pub fn key_uses() -> (KeyUses, Receiver<KeyUse>) {
    let (sender, receiver) = channel(WAITING);
    (KeyUses(sender), receiver)
}

impl KeyUses {
    /// Notes a use; never waits.
    pub fn note(&self, key: ApiKeyId, at: Timestamp) {
        if self.0.try_send(KeyUse { key, at }).is_err() {
            tracing::debug!(%key, "use of a key is not recorded: too many are waiting");
        }
    }
}

/// Records what is noted until `stop`, then what is still waiting.
///
/// # Errors
/// None; an outage of the database loses the uses that fall into it.
pub async fn record_key_uses(
    store: Arc<dyn Store>,
    mut uses: Receiver<KeyUse>,
    stop: CancellationToken,
) -> Result<(), BoxError> {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            next = uses.recv() => match next {
                Some(next) => record(store.as_ref(), &next).await,
                // Nobody notes uses any more.
                None => break,
            },
        }
    }
    uses.close();
    while let Some(next) = uses.recv().await {
        record(store.as_ref(), &next).await;
    }
    stop.cancelled().await;
    Ok(())
}

async fn record(store: &dyn Store, used: &KeyUse) {
    if let Err(error) = store.record_key_use(used.key, used.at).await {
        tracing::warn!(key = %used.key, cause = %error, "use of a key is not recorded");
    }
}
