//! Connections: how many, for how long, and how they end.
//!
//! `axum::serve` has no bound on the time a client may take to send its request; this loop has. When all places are taken,
//! the connection that was made first and asks for nothing makes room: who opens thousands shuts nobody out.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use shared::limits::ServerLimits;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;

use super::guarded::Guarded;

/// Time to wait after the system refuses a connection (it has no file handles left, say), so that the loop never spins.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers on `listener` with `router` until `stop` resolves, then gives open connections a moment to end.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: ServerLimits, stop: impl Future<Output = ()>) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let open = Open::default();
    let (stops, stopping) = watch::channel(false);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(limits.head_seconds))
        .max_buf_size(limits.head_bytes);

    let accept = async {
        loop {
            match listener.accept().await {
                Ok((socket, _)) => {
                    if room.available_permits() == 0 {
                        open.make_room();
                    }
                    let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                    let place = open.add();
                    tokio::spawn(answer(http.clone(), socket, router.clone(), place, stopping.clone(), permit));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
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
    let _ = tokio::time::timeout(Duration::from_secs(limits.drain_seconds), room.acquire_many(all)).await;
}

/// One connection, to its end.
async fn answer(
    http: http1::Builder,
    socket: TcpStream,
    router: Router,
    place: Arc<Place>,
    mut stopping: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let guard = Busy::new(&place);
        let answered = router.clone().oneshot(request.map(Body::new));
        async move { answered.await.map(|response| hold(response, guard)) }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    // What goes wrong with a connection is the client's going away or sending no HTTP: neither is news.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.leave.notified() => return,
        _ = stopping.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A response that keeps its connection's place until its last byte is on its way.
fn hold(response: Response, guard: Busy) -> Response {
    response.map(|body| Body::new(Guarded::new(body, guard)))
}

/// A connection's place.
#[derive(Debug, Default)]
struct Place {
    /// Requests that are being answered.
    busy: AtomicUsize,
    /// It is wanted for another.
    leave: Notify,
}

/// The places that are taken, in the order in which they were.
#[derive(Debug, Default)]
struct Open(Mutex<VecDeque<std::sync::Weak<Place>>>);

impl Open {
    fn lock(&self) -> MutexGuard<'_, VecDeque<std::sync::Weak<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) -> Arc<Place> {
        let place = Arc::new(Place::default());
        let mut places = self.lock();
        places.retain(|place| place.strong_count() > 0);
        places.push_back(Arc::downgrade(&place));
        place
    }

    /// Ends the first connection that asks for nothing.
    fn make_room(&self) {
        let mut places = self.lock();
        let is_idle = |place: &Arc<Place>| place.busy.load(Ordering::Relaxed) == 0;
        let found = places.iter().position(|place| place.upgrade().as_ref().is_some_and(is_idle));
        if let Some(place) = found.and_then(|at| places.remove(at)).and_then(|place| place.upgrade()) {
            place.leave.notify_one();
        }
    }
}

/// Counts one request while it lives.
#[derive(Debug)]
struct Busy(Arc<Place>);

impl Busy {
    fn new(place: &Arc<Place>) -> Self {
        place.busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(place))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

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
        let server = tokio::spawn(serve(listener, Router::new(), limits, async {
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
    async fn who_opens_many_connections_shuts_nobody_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { connections: 4, ..ServerLimits::default() };
        let router = Router::new().route("/", axum::routing::get(|| async { "well" }));
        let server = tokio::spawn(serve(listener, router, limits, std::future::pending()));
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
