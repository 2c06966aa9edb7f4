//! Starting a server on a bound listener: tests and the standalone mode use port 0.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_http::HttpService;
use actix_http::error::DispatchError;
use actix_server::Server;
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::dev::{AppConfig, Extensions};
use actix_web::middleware::from_fn;
use actix_web::web::ServiceConfig;
use actix_web::{App, Error, web};
use tokio::net::TcpStream;

use super::read_ahead::LimitedStream;
use super::request::{ServedBy, request_middleware};
use super::routes::route_not_found;
use super::{healthz, readyz, resource};
use crate::runtime::{BoxError, Phase, Readiness, Tasks};
use crate::telemetry::metrics::spawn_readiness_metrics;

/// Connection settings of a server.
#[derive(Debug, Clone, Copy)]
pub struct ServerSettings {
    /// Whether clients outside of the installation call it. Their decisions about tracing are not followed.
    pub is_public: bool,
    /// Worker threads.
    pub workers: usize,
    /// Maximum number of connections over all workers.
    pub max_connections: usize,
    /// Time for the client to send a request head.
    pub head_deadline: Duration,
    /// Idle time after which a connection is closed.
    pub keep_alive: Duration,
    /// A connection is closed when its client reads nothing of a response for this long; 0: never. Linux only.
    pub response_stall: Duration,
    /// Time for requests in flight at shutdown: more than a call of the gateway may take (10 seconds), less than a
    /// shutdown phase (20 seconds).
    pub stop_deadline: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            is_public: false,
            workers: 2,
            max_connections: 25_000,
            head_deadline: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            response_stall: Duration::from_secs(60),
            stop_deadline: Duration::from_secs(18),
        }
    }
}

/// Serves `configure`'s routes, `/healthz` and `/readyz` on `listener` as a task named `name`, until its phase ends.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve<F>(
    tasks: &mut Tasks,
    phase: Phase,
    name: &'static str,
    listener: TcpListener,
    settings: ServerSettings,
    configure: F,
) -> std::io::Result<()>
where
    F: Fn(&mut ServiceConfig) + Send + Sync + 'static,
{
    spawn_readiness_metrics(tasks, name);
    serve_without_readiness_metrics(tasks, phase, name, listener, settings, Arc::new(configure))
}

/// The routes of a server. Without their type, so that the HTTP server is compiled once, not in each role.
pub(crate) type Routes = Arc<dyn Fn(&mut ServiceConfig) + Send + Sync>;

/// [`serve`] for a server that is not a role.
pub(crate) fn serve_without_readiness_metrics(
    tasks: &mut Tasks,
    phase: Phase,
    name: &'static str,
    listener: TcpListener,
    settings: ServerSettings,
    routes: Routes,
) -> std::io::Result<()> {
    let server = build(name, listener, settings, tasks.readiness().clone(), routes)?;
    tasks.spawn(phase, format!("{name} http"), move |stop| async move {
        let handle = server.handle();
        let stopping = async move {
            stop.cancelled().await;
            handle.stop(true).await;
        };
        let (result, ()) = futures_util::future::join(server, stopping).await;
        result.map_err(BoxError::from)
    });
    Ok(())
}

fn build(
    name: &'static str,
    listener: TcpListener,
    settings: ServerSettings,
    readiness: Readiness,
    routes: Routes,
) -> std::io::Result<Server> {
    // The kernel closes the connection: actix does not poll a body while the client reads nothing, so a timer in the body
    // would not run. Accepted connections inherit this option of the listener.
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&listener).set_tcp_user_timeout(Some(settings.response_stall))?;
    let readiness = web::Data::new(readiness);
    let served_by = ServedBy { server: name, is_public: settings.is_public };
    let builder = Server::build()
        .workers(settings.workers)
        .max_concurrent_connections((settings.max_connections / settings.workers.max(1)).max(1))
        .shutdown_timeout(settings.stop_deadline.as_secs())
        .disable_signals();
    let shutdown = builder.graceful_shutdown_signal();
    // `HttpServer` would do this, but it takes its connections as they are, not as `LimitedStream`.
    let server = builder.listen(name, listener, move || {
        let shutdown = shutdown.clone();
        let app = App::new()
            .app_data(readiness.clone())
            .app_data(served_by)
            .wrap(from_fn(request_middleware))
            .service(resource("/healthz", vec![("GET", web::get().to(healthz))]))
            .service(resource("/readyz", vec![("GET", web::get().to(readyz))]))
            .configure(|config| routes(config))
            .default_service(web::route().to(route_not_found))
            .into_factory()
            .map_err(|error: Error| error.error_response());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let shutdown = shutdown.clone();
                async move { shutdown.notified().await }
            })
            .keep_alive(settings.keep_alive)
            .client_request_timeout(settings.head_deadline)
            .client_disconnect_timeout(Duration::from_secs(2))
            .on_connect_ext(|stream: &LimitedStream<TcpStream>, data: &mut Extensions| {
                data.insert(stream.read_ahead());
            })
            .h1(map_config(app, |_| AppConfig::default()));
        let connect = |stream: TcpStream| async move {
            let peer = stream.peer_addr().ok();
            Ok::<_, DispatchError>((LimitedStream::new(stream), peer))
        };
        fn_service(connect).and_then(http)
    })?;
    Ok(server.run())
}
