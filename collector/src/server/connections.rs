//! Connections: how many, for how long, and how they end.
//!
//! `axum::serve` limits neither the time that a client may take to send its request nor the time that it may take to read
//! the response; this loop does. [`super::place`] tells who gets a place, and who gives way when all are taken.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;
use trace::limits::ServerLimits;

use super::client_io::ClientIo;
use super::guarded_body::GuardedBody;
use super::pace::PaceLimits;
use super::peer::{Encrypted, Peer};
use super::place::{Place, Places, Work};
use super::request_body::RequestBody;
use super::throttle::Throttle;
use super::tls::Tls;
use crate::access::PeerSocket;

/// The pause after the system refuses a connection (it has no file handles left, say), so that the loop never spins.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens at an address. The system refuses bursts of connections beyond a number, and a client that was refused tries again
/// after a second, so this number is larger than by default.
pub fn listen(address: SocketAddr, limits: &ServerLimits) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that was restarted gets its port back at once. Elsewhere than on Unix this would share it with others.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(limits.send_buffer_bytes)?;
    socket.bind(address)?;
    socket.listen(limits.backlog)
}

/// Serves `router` on `listener` until `stop` resolves, then gives open connections a moment to end.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    tls: Option<Arc<Tls>>,
    stop: impl Future<Output = ()>,
) {
    let places = Places::new(limits.connections);
    let pace = PaceLimits::from(&limits);
    let (stops, stopping) = watch::channel(false);
    let mut http = http1::Builder::new();
    let head_time = Duration::from_secs(limits.head_seconds);
    http.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(limits.head_bytes);

    let (full, refused) = (Throttle::default(), Throttle::default());
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((socket, address)) => {
                    if places.is_full()
                        && let Some(suppressed) = full.pass()
                    {
                        tracing::warn!(limit = limits.connections, suppressed, "connection limit reached");
                    }
                    let peer = Peer(address.ip().to_canonical());
                    let Some(place) = places.enter(peer).await else { return };
                    tokio::spawn(answer(
                        http.clone(),
                        (socket, peer),
                        tls.clone().map(|tls| (tls, head_time)),
                        router.clone(),
                        (place, pace),
                        stopping.clone(),
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
    let _ = tokio::time::timeout(Duration::from_secs(limits.drain_seconds), places.empty()).await;
}

/// Serves one connection until it ends, after the handshake if the server has TLS.
async fn answer(
    mut http: http1::Builder,
    (socket, peer): (TcpStream, Peer),
    tls: Option<(Arc<Tls>, Duration)>,
    router: Router,
    (place, pace): (Arc<Place>, PaceLimits),
    mut stopping: watch::Receiver<bool>,
) {
    let ends = PeerSocket::of(&socket);
    let Some((tls, head_time)) = tls else {
        return answer_on(http, (socket, peer, ends), None, router, (place, pace), stopping).await;
    };
    let begun = Instant::now();
    let stream = tokio::select! {
        accepted = tokio::time::timeout(head_time, tls.accept(socket)) => match accepted {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        () = place.closed() => return,
        _ = stopping.changed() => return,
    };
    // The handshake's time counts, so that a client gains none by it.
    http.header_read_timeout(head_time.saturating_sub(begun.elapsed()));
    answer_on(http, (stream, peer, ends), Some(Encrypted), router, (place, pace), stopping).await;
}

/// Serves one connection whose bytes are HTTP until it ends.
async fn answer_on(
    http: http1::Builder,
    (socket, peer, ends): (impl AsyncRead + AsyncWrite + Unpin + Send + 'static, Peer, PeerSocket),
    encrypted: Option<Encrypted>,
    router: Router,
    (place, pace): (Arc<Place>, PaceLimits),
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(ends.clone());
        if let Some(encrypted) = encrypted {
            request.extensions_mut().insert(encrypted);
        }
        request.extensions_mut().insert(Arc::clone(&place));
        let work = place.work();
        let request = request.map(|body| Body::new(RequestBody::new(body, Arc::clone(&place), pace)));
        let answered = router.clone().oneshot(request);
        async move { answered.await.map(|response| hold(response, work)) }
    });
    let socket = ClientIo::new(socket, Arc::clone(&place), pace);
    let mut served = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    tokio::select! {
        result = served.as_mut() => {
            // Mostly clients that went away, sent no HTTP, or were too slow: of interest to a developer only.
            if let Err(error) = result {
                tracing::debug!(error = super::error::chain(&error), "connection failed");
            }
            return;
        }
        () = place.closed() => return,
        _ = stopping.changed() => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

/// Counts the request as in progress until its response was handed to the connection.
fn hold(response: Response, work: Work) -> Response {
    response.map(|body| Body::new(GuardedBody::new(body, work)))
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
