//! Type erasure of spawned work. tokio's generic functions are compiled once for each type of future or closure, in the crate
//! that calls them: a hundred database calls were a hundred copies of the task machinery, a third of the code of a service. The
//! body of an `async fn` is compiled where it is awaited, too; a boxed future is compiled here.

use std::any::Any;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::Interrupted;

/// A value whose type only the caller knows.
pub(crate) type Erased = Box<dyn Any + Send>;

/// Casts a value back to its type.
///
/// # Panics
/// When `T` is not the type of the value. Every caller erases and restores within one generic function, which rules that out.
#[expect(clippy::panic, reason = "the types of both sides are one type parameter")]
pub(crate) fn restore<T: 'static>(erased: Erased) -> T {
    match erased.downcast() {
        Ok(value) => *value,
        Err(_) => panic!("a value of another type than {}", std::any::type_name::<T>()),
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that may spawn")]
pub(super) fn spawn_and_wait(
    work: BoxFuture<'static, Erased>,
) -> BoxFuture<'static, Result<Erased, Interrupted>> {
    Box::pin(async move {
        let span = tracing::Span::current();
        Ok(AbortOnDropHandle::new(tokio::task::spawn(work.instrument(span))).await?)
    })
}

/// Runs blocking `work` on the threads of `runtime`, or else of the caller's runtime.
#[allow(clippy::disallowed_methods, reason = "the one place that may spawn")]
pub(super) fn blocking(
    runtime: Option<&Handle>,
    work: Box<dyn FnOnce() -> Erased + Send>,
) -> BoxFuture<'static, Result<Erased, Interrupted>> {
    let runtime = runtime.cloned();
    Box::pin(async move {
        let span = tracing::Span::current();
        let work = move || span.in_scope(work);
        let task = match runtime {
            Some(runtime) => runtime.spawn_blocking(work),
            None => tokio::task::spawn_blocking(work),
        };
        Ok(task.await?)
    })
}
