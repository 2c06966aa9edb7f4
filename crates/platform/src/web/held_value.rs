//! A response body that keeps a value, a permit for instance, until it is sent, its connection ends, or its client turns out to read
//! too slowly. The kernel ends connections whose clients read nothing (`ServerSettings::response_stall`); a client that reads a byte a
//! minute would otherwise keep the value for years.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// A response may take this long, whatever its length.
const GRACE: Duration = Duration::from_secs(60);
/// Minimum speed of a client beyond [`GRACE`], on average: twice that of a dial-up modem.
const MIN_BYTES_PER_SECOND: u64 = 16 * 1024;
/// How often the speed is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);
/// The buffers of a connection take a body of this length at once, unless they are full of other responses to the same client.
const BUFFERED_BYTES: u64 = 32 * 1024;

/// The body, and a value that is dropped with it. Ends with an error, and drops both, when the client takes longer than a minute and
/// reads less than 16 KiB a second.
///
/// # Panics
/// Outside of a server of actix.
pub fn hold_until_sent<T: 'static>(body: BoxBody, value: T) -> BoxBody {
    let size = body.size();
    let held = Rc::new(RefCell::new(Some(Held { body, waiting: None, _value: value })));
    let sent = Rc::new(Cell::new(0));
    let mut checks = JoinSet::new();
    // A small body, too, may wait behind others that the client asked for on the same connection and does not read.
    if !matches!(size, BodySize::None | BodySize::Sized(0)) {
        checks.spawn_local(end_if_slow(Rc::downgrade(&held), Rc::clone(&sent)));
    }
    BoxBody::new(HoldingBody { size, held, sent, _checks: checks })
}

/// [`hold_until_sent`], unless the buffers of the connection take the whole body at once: then the value is dropped now.
///
/// # Panics
/// As [`hold_until_sent`].
pub fn hold_large_until_sent<T: 'static>(body: BoxBody, value: T) -> BoxBody {
    let is_buffered = matches!(body.size(), BodySize::None | BodySize::Sized(0..=BUFFERED_BYTES));
    if is_buffered { body } else { hold_until_sent(body, value) }
}

struct Held<T> {
    body: BoxBody,
    /// Wakes the connection, which waits for more of the body.
    waiting: Option<Waker>,
    _value: T,
}

struct HoldingBody<T> {
    size: BodySize,
    /// `None` once the client has turned out to be too slow.
    held: Rc<RefCell<Option<Held<T>>>>,
    /// Bytes taken by the connection.
    sent: Rc<Cell<u64>>,
    /// Ends with the body.
    _checks: JoinSet<()>,
}

/// The client reads too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the client reads less than {MIN_BYTES_PER_SECOND} bytes a second")]
struct SlowClient;

/// Drops what is held when the client is too slow. A task of its own: a body is not polled while the connection's buffers are full.
async fn end_if_slow<T>(held: Weak<RefCell<Option<Held<T>>>>, sent: Rc<Cell<u64>>) {
    let begin = Instant::now();
    loop {
        sleep(CHECK_INTERVAL).await;
        let beyond_grace = begin.elapsed().saturating_sub(GRACE);
        if sent.get() < beyond_grace.as_secs().saturating_mul(MIN_BYTES_PER_SECOND) {
            let ended = held.upgrade().and_then(|held| held.take());
            // Nothing else wakes a connection that waits for a source of the body, because the source is dropped here.
            if let Some(connection) = ended.and_then(|held| held.waiting) {
                connection.wake();
            }
            tracing::info!(bytes = sent.get(), "a response ended: its client reads too slowly");
            return;
        }
    }
}

impl<T> MessageBody for HoldingBody<T> {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let mut held = self.held.borrow_mut();
        let Some(held) = held.as_mut() else { return Poll::Ready(Some(Err(SlowClient.into()))) };
        let polled = Pin::new(&mut held.body).poll_next(context);
        match &polled {
            Poll::Ready(Some(Ok(bytes))) => self.sent.set(self.sent.get() + bytes.len() as u64),
            Poll::Ready(_) => {}
            Poll::Pending => held.waiting = Some(context.waker().clone()),
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::poll_fn;

    use actix_web::body::BodyStream;
    use actix_web::rt::System;
    use futures_util::stream::pending;
    use tokio::time::{advance, pause, timeout};

    use super::super::chunked_body;
    use super::*;

    const LENGTH: usize = 64 * 1024 * 1024;

    async fn next(body: &mut BoxBody) -> Option<Result<usize, String>> {
        let bytes = poll_fn(|context| Pin::new(&mut *body).poll_next(context)).await;
        bytes.map(|bytes| bytes.map(|bytes| bytes.len()).map_err(|error| error.to_string()))
    }

    fn held_body(value: &Rc<()>) -> BoxBody {
        let body = chunked_body(Bytes::from(vec![b'x'; LENGTH]));
        hold_until_sent(BoxBody::new(body), Rc::clone(value))
    }

    async fn wait_until_dropped(value: &Rc<()>) {
        let mut seconds = 0;
        while Rc::strong_count(value) > 1 {
            assert!(seconds < 120, "still held after {seconds} s");
            advance(Duration::from_secs(1)).await;
            tokio::task::yield_now().await;
            seconds += 1;
        }
        assert!(seconds > GRACE.as_secs(), "dropped after {seconds} s");
    }

    #[test]
    fn value_is_dropped_when_the_client_reads_slowly() {
        System::new().block_on(async {
            pause();
            let value = Rc::new(());
            let mut body = held_body(&value);
            assert!(matches!(next(&mut body).await, Some(Ok(_))));
            wait_until_dropped(&value).await;
            assert!(matches!(next(&mut body).await, Some(Err(_))));
        });
    }

    #[test]
    fn small_response_behind_unread_ones_loses_its_value() {
        System::new().block_on(async {
            pause();
            let value = Rc::new(());
            // The connection does not ask for it, because its buffers are full.
            let _body = hold_until_sent(BoxBody::new("small"), Rc::clone(&value));
            wait_until_dropped(&value).await;
        });
    }

    #[test]
    fn body_that_waits_for_its_source_ends_with_an_error() {
        System::new().block_on(async {
            pause();
            let silent = BodyStream::new(pending::<Result<Bytes, Infallible>>());
            let mut body = hold_until_sent(BoxBody::new(silent), ());
            let reading = actix_web::rt::spawn(async move { next(&mut body).await });
            let end = timeout(2 * GRACE, reading).await;
            assert!(matches!(end, Ok(Ok(Some(Err(_))))), "{end:?}");
        });
    }

    #[test]
    fn steady_client_gets_the_whole_body() {
        System::new().block_on(async {
            pause();
            let value = Rc::new(());
            let mut body = held_body(&value);
            let mut received = 0;
            while let Some(bytes) = next(&mut body).await {
                received += bytes.unwrap();
                advance(Duration::from_millis(500)).await;
                tokio::task::yield_now().await;
            }
            assert_eq!(received, LENGTH);
            drop(body);
            assert_eq!(Rc::strong_count(&value), 1);
        });
    }
}
