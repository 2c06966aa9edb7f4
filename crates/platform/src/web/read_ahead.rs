//! How far a connection is read ahead of the request in progress. What a client sends beyond it stays in the kernel's buffers, which
//! slows the client down.
//!
//! actix reads up to 128 KiB ahead, and parses all requests in it at once: 4,000 small ones, 2 kB of memory each. With a full buffer it polls
//! the connection again and again until the response is sent. So a client that pipelines requests and does not read the responses
//! would occupy a processor and 8 MB for each connection.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use actix_web::HttpMessage as _;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::Bytes;
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read before it is known whether they hold a request, and beyond the body of a request in progress.
const READ_AHEAD: usize = 2 * 1024;
/// Bytes of a body of known length that are read at once.
const MAX_BODY_READ: usize = 32 * 1024;

/// How much may be read of a connection. Shared by the connection and its request in progress.
#[derive(Debug, Clone)]
pub(super) struct ReadAhead(Rc<State>);

#[derive(Debug)]
struct State {
    /// Bytes that may be read now.
    room: Cell<usize>,
    is_in_progress: Cell<bool>,
    /// Reading has paused while no request was in progress, and none has begun since. If it is still set when
    /// the connection is read again, the buffer holds no whole head.
    paused_between_requests: Cell<bool>,
    /// Wakes the connection when it may be read further.
    waker: RefCell<Option<Waker>>,
}

impl ReadAhead {
    /// A request begins: reading pauses after [`READ_AHEAD`] until its handler waits for more of its body, or until the value is
    /// dropped, which is when the response is sent. `None` in tests without a connection.
    pub(super) fn begin(request: &mut ServiceRequest) -> Option<RequestInProgress> {
        let connection = request.conn_data::<Self>()?.clone();
        let length =
            request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        match request.take_payload() {
            Payload::None => {}
            payload => {
                let body = RequestBody { payload, rest: length, connection: connection.clone() };
                request.set_payload(Payload::Stream { payload: Box::pin(body) });
            }
        }
        Some(connection.begin_request())
    }

    fn begin_request(self) -> RequestInProgress {
        self.0.is_in_progress.set(true);
        self.0.paused_between_requests.set(false);
        RequestInProgress(self)
    }

    /// Ready when more may be read.
    fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let state = &*self.0;
        if !state.is_in_progress.get() && state.paused_between_requests.take() {
            // No request has begun of what was read: the buffer holds the beginning of one at most.
            state.room.set(READ_AHEAD);
        }
        if state.room.get() > 0 {
            return Poll::Ready(());
        }
        if state.is_in_progress.get() {
            *state.waker.borrow_mut() = Some(context.waker().clone());
        } else {
            // What is buffered may hold the next request, which begins before the connection is read again.
            state.paused_between_requests.set(true);
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Notes that the client has sent nothing more.
    fn note_pause(&self) {
        self.0.paused_between_requests.set(!self.0.is_in_progress.get());
    }

    /// Lets the body be read: the handler waits for it, and the buffer holds nothing of it. `rest` is still to come, if known.
    fn allow_body(&self, rest: Option<usize>) {
        self.0.room.set(rest.map_or(READ_AHEAD, |rest| rest.clamp(1, MAX_BODY_READ)));
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }
}

/// The body of a request, which is read as the handler asks for it.
struct RequestBody {
    payload: Payload,
    /// Bytes that the handler has not got; unknown of a chunked body.
    rest: Option<usize>,
    connection: ReadAhead,
}

impl Stream for RequestBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = Pin::new(&mut self.payload).poll_next(context);
        match &polled {
            Poll::Pending => self.connection.allow_body(self.rest),
            Poll::Ready(Some(Ok(bytes))) => {
                self.rest = self.rest.map(|rest| rest.saturating_sub(bytes.len()));
            }
            Poll::Ready(_) => {}
        }
        polled
    }
}

/// A request that is handled, or whose response is being sent.
#[derive(Debug)]
pub(super) struct RequestInProgress(ReadAhead);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.0.is_in_progress.set(false);
        self.0.wake();
    }
}

impl RequestInProgress {
    /// The body of the response; the request ends when it is sent.
    pub(super) fn until_sent(self, body: BoxBody) -> BoxBody {
        BoxBody::new(BodyInProgress { body, _request: self })
    }
}

struct BodyInProgress {
    body: BoxBody,
    _request: RequestInProgress,
}

impl MessageBody for BodyInProgress {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

/// A connection that is not read far ahead.
pub(super) struct LimitedStream<S> {
    stream: S,
    read_ahead: ReadAhead,
}

impl<S> LimitedStream<S> {
    pub(super) fn new(stream: S) -> Self {
        let state = State {
            room: Cell::new(READ_AHEAD),
            is_in_progress: Cell::default(),
            paused_between_requests: Cell::default(),
            waker: RefCell::default(),
        };
        Self { stream, read_ahead: ReadAhead(Rc::new(state)) }
    }

    pub(super) fn read_ahead(&self) -> ReadAhead {
        self.read_ahead.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_ahead.poll_room(context).is_pending() {
            return Poll::Pending;
        }
        let (room, before) = (self.read_ahead.0.room.get(), buffer.filled().len());
        let polled = if buffer.remaining() <= room {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        } else {
            // Part of a buffer can be given to a reader in unsafe code only.
            let mut bytes = [0; READ_AHEAD];
            let mut limited = ReadBuf::new(&mut bytes[..room.min(READ_AHEAD)]);
            let polled = Pin::new(&mut self.stream).poll_read(context, &mut limited);
            buffer.put_slice(limited.filled());
            polled
        };
        match &polled {
            Poll::Pending => self.read_ahead.note_pause(),
            Poll::Ready(_) => self.read_ahead.0.room.set(room - (buffer.filled().len() - before)),
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::task::unconstrained;

    use super::*;

    const SENT: usize = 1024 * 1024;

    /// A connection whose client has sent [`SENT`] bytes.
    async fn connection() -> (LimitedStream<DuplexStream>, DuplexStream) {
        let (server, mut client) = duplex(SENT);
        client.write_all(&vec![b'x'; SENT]).await.unwrap();
        (LimitedStream::new(server), client)
    }

    /// Number of bytes that are read until the stream pauses.
    fn read(stream: &mut LimitedStream<DuplexStream>) -> usize {
        let (mut buffer, mut bytes) = (vec![0; 8 * 1024], 0);
        while let Some(read) = unconstrained(stream.read(&mut buffer)).now_or_never() {
            bytes += read.unwrap();
        }
        bytes
    }

    #[tokio::test]
    async fn reading_pauses_while_a_request_is_in_progress() {
        let (mut stream, _client) = connection().await;
        let request = stream.read_ahead().begin_request();
        assert_eq!(read(&mut stream), READ_AHEAD);
        assert_eq!(read(&mut stream), 0);
        drop(request);
        // Requests that are answered one after another from the buffer: it does not grow.
        for _ in 0..100 {
            assert_eq!(read(&mut stream), 0, "the buffer may hold the next request");
            drop(stream.read_ahead().begin_request());
        }
        assert_eq!(read(&mut stream), 0);
        assert_eq!(read(&mut stream), READ_AHEAD, "it holds none");
    }

    #[tokio::test]
    async fn requests_that_come_one_after_another_do_not_use_up_the_room() {
        let (server, mut client) = duplex(SENT);
        let mut stream = LimitedStream::new(server);
        for _ in 0..1_000 {
            client.write_all(&[b'x'; 300]).await.unwrap();
            assert_eq!(read(&mut stream), 300);
            let request = stream.read_ahead().begin_request();
            client.write_all(&[b'x'; 50]).await.unwrap();
            assert_eq!(read(&mut stream), 50, "of its body");
            stream.read_ahead().allow_body(Some(5_000));
            client.write_all(&[b'x'; 5_000]).await.unwrap();
            assert_eq!(read(&mut stream), 5_000, "the rest of its body");
            drop(request);
            assert_eq!(read(&mut stream), 0);
        }
    }

    #[tokio::test]
    async fn handler_that_waits_for_the_body_lets_the_connection_be_read() {
        let (mut stream, _client) = connection().await;
        let connection = stream.read_ahead();
        let _request = connection.clone().begin_request();
        assert_eq!(read(&mut stream), READ_AHEAD);
        for (rest, room) in
            [(None, READ_AHEAD), (Some(100_000), MAX_BODY_READ), (Some(100), 100), (Some(0), 1)]
        {
            assert_eq!(read(&mut stream), 0);
            assert!(connection.0.waker.borrow().is_some());
            connection.allow_body(rest);
            assert!(connection.0.waker.borrow().is_none(), "it is woken");
            assert_eq!(read(&mut stream), room);
        }
    }

    #[tokio::test]
    async fn end_of_the_request_wakes_the_connection() {
        let (mut stream, _client) = connection().await;
        let request = stream.read_ahead().begin_request();
        read(&mut stream);
        let mut buffer = [0; 1];
        let reading = tokio::join!(stream.read_exact(&mut buffer), async {
            tokio::task::yield_now().await;
            drop(request);
        });
        assert_eq!(reading.0.unwrap(), 1);
    }

    #[tokio::test]
    async fn head_without_an_end_is_read() {
        let (mut stream, _client) = connection().await;
        stream.read_exact(&mut vec![0; SENT]).await.unwrap();
    }
}
