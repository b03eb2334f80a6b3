//! Connections: how many, for how long, and how they end.
//!
//! `axum::serve` does not limit the time that a client may take to send its request head; this loop does. When every slot
//! is taken, the oldest connection without a request is closed: a client that opens thousands of connections shuts nobody
//! out.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use shared::limits::ServerLimits;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;

use super::guarded_body::GuardedBody;
use super::peer::{Encrypted, Peer};
use super::throttle::Throttle;
use super::tls::Tls;
use crate::access::PeerSocket;

/// The pause after the system refuses a connection (it has no file handles left, say), so that the loop never spins.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until `stop` resolves, then gives open connections a moment to end.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    tls: Option<Arc<Tls>>,
    stop: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let open = OpenConnections::default();
    let (stops, stopping) = watch::channel(false);
    let mut http = http1::Builder::new();
    let head_time = Duration::from_secs(limits.head_seconds);
    http.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(limits.head_bytes);

    let (full, refused) = (Throttle::default(), Throttle::default());
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((socket, address)) => {
                    if slots.available_permits() == 0 {
                        if let Some(suppressed) = full.pass() {
                            tracing::warn!(limit = limits.connections, suppressed, "connection limit reached");
                        }
                        open.close_oldest_idle();
                    }
                    let Ok(permit) = Arc::clone(&slots).acquire_owned().await else { return };
                    let connection = open.add();
                    let peer = Peer(address.ip().to_canonical());
                    tokio::spawn(answer(
                        http.clone(),
                        (socket, peer),
                        tls.clone().map(|tls| (tls, head_time)),
                        router.clone(),
                        connection,
                        stopping.clone(),
                        permit,
                    ));
                }
                Err(error) => {
                    if let Some(suppressed) = refused.pass() {
                        tracing::error!(%error, suppressed, "the system refused a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    drop(listener);
    stops.send_replace(true);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(Duration::from_secs(limits.drain_seconds), slots.acquire_many(all)).await;
}

/// Serves one connection until it ends, after the handshake if the server has TLS.
async fn answer(
    mut http: http1::Builder,
    (socket, peer): (TcpStream, Peer),
    tls: Option<(Arc<Tls>, Duration)>,
    router: Router,
    connection: Arc<Connection>,
    mut stopping: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    let ends = PeerSocket::of(&socket);
    let Some((tls, head_time)) = tls else {
        return answer_on(http, (socket, peer, ends), None, router, connection, stopping).await;
    };
    let begun = Instant::now();
    let stream = tokio::select! {
        accepted = tokio::time::timeout(head_time, tls.accept(socket)) => match accepted {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        () = connection.close.notified() => return,
        _ = stopping.changed() => return,
    };
    // The handshake's time counts, so that a client gains none by it.
    http.header_read_timeout(head_time.saturating_sub(begun.elapsed()));
    answer_on(http, (stream, peer, ends), Some(Encrypted), router, connection, stopping).await;
}

/// Serves one connection whose bytes are HTTP until it ends.
async fn answer_on(
    http: http1::Builder,
    (socket, peer, ends): (impl AsyncRead + AsyncWrite + Unpin + Send + 'static, Peer, PeerSocket),
    encrypted: Option<Encrypted>,
    router: Router,
    connection: Arc<Connection>,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(ends.clone());
        if let Some(encrypted) = encrypted {
            request.extensions_mut().insert(encrypted);
        }
        let guard = RequestGuard::new(&connection);
        let answered = router.clone().oneshot(request.map(Body::new));
        async move { answered.await.map(|response| hold(response, guard)) }
    });
    let mut served = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    tokio::select! {
        result = served.as_mut() => {
            // Mostly clients that went away, sent no HTTP, or were too slow: of interest to a developer only.
            if let Err(error) = result {
                tracing::debug!(error = super::error::chain(&error), "connection failed");
            }
            return;
        }
        () = connection.close.notified() => return,
        _ = stopping.changed() => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

/// Keeps the guard until the response was sent.
fn hold(response: Response, guard: RequestGuard) -> Response {
    response.map(|body| Body::new(GuardedBody::new(body, guard)))
}

/// An open connection.
#[derive(Debug, Default)]
struct Connection {
    /// Requests that are being answered.
    requests: AtomicUsize,
    /// Notified when the connection has to close in favor of another.
    close: Notify,
}

/// The open connections, the oldest first.
#[derive(Debug, Default)]
struct OpenConnections(Mutex<VecDeque<Weak<Connection>>>);

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) -> Arc<Connection> {
        let connection = Arc::new(Connection::default());
        let mut open = self.lock();
        open.retain(|connection| connection.strong_count() > 0);
        open.push_back(Arc::downgrade(&connection));
        connection
    }

    /// Closes the oldest connection that has no request.
    fn close_oldest_idle(&self) {
        let mut open = self.lock();
        let is_idle = |connection: &Arc<Connection>| connection.requests.load(Ordering::Relaxed) == 0;
        let found = open.iter().position(|connection| connection.upgrade().as_ref().is_some_and(is_idle));
        if let Some(connection) = found.and_then(|at| open.remove(at)).and_then(|connection| connection.upgrade()) {
            connection.close.notify_one();
        }
    }
}

/// Counts one request of a connection while it lives.
#[derive(Debug)]
struct RequestGuard(Arc<Connection>);

impl RequestGuard {
    fn new(connection: &Arc<Connection>) -> Self {
        connection.requests.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connection))
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_client_that_never_finishes_its_request_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { head_seconds: 1, ..ServerLimits::default() };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, Router::new(), limits, None, async {
            let _ = stopped.await;
        }));

        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
        let begun = Instant::now();
        let mut rest = Vec::new();
        let _ = slow.read_to_end(&mut rest).await;
        assert!(begun.elapsed() < Duration::from_secs(10), "the connection stayed open");

        stop.send(()).unwrap();
        server.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "still listening after the stop");
    }

    #[tokio::test]
    async fn idle_connections_do_not_block_new_ones() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { connections: 4, ..ServerLimits::default() };
        let router = Router::new().route("/", axum::routing::get(|| async { "well" }));
        let server = tokio::spawn(serve(listener, router, limits, None, std::future::pending()));
        let mut idle = Vec::new();
        for _ in 0..20 {
            let mut socket = TcpStream::connect(address).await.unwrap();
            socket.write_all(b"GET /").await.unwrap();
            idle.push(socket);
        }
        let mut honest = TcpStream::connect(address).await.unwrap();
        honest.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        let read = tokio::time::timeout(Duration::from_secs(10), honest.read_to_string(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        assert!(answer.ends_with("well"), "{answer}");
        server.abort();
    }
}
