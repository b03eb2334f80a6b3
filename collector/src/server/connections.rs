//! Accepts connections, and limits their number and their duration.
//!
//! `axum::serve` limits neither the time that a client may take to send its request nor the time that it may take to read
//! the response; this loop does. A connection for which there is no [slot](super::connection_slots) is refused.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tower::ServiceExt;
use trace::limits::ServerLimits;

use super::client_io::ClientIo;
use super::connection_slots::{ConnectionSlot, ConnectionSlots, Exceeded};
use super::error::ApiError;
use super::pace::PaceLimits;
use super::peer::{Encrypted, Peer};
use super::proxies::Proxies;
use super::request_body::RequestBody;
use super::throttle::Throttle;
use super::tls::Tls;
use crate::access::PeerSocket;

/// The pause after the system refuses a connection (it has no file handles left, say), so that the loop never spins.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Refused connections that are answered at the same time; further ones are only closed.
const REFUSALS: usize = 32;
/// The time for a refused client to send its request and to read the answer.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// The most bytes that are read of a refused request. Unread bytes could make the system discard the answer.
const REFUSAL_BYTES: usize = 16 << 10;

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
    (tls, proxies): (Option<Arc<Tls>>, Arc<Proxies>),
    stop: impl Future<Output = ()>,
) {
    let slots = ConnectionSlots::new(&limits);
    let pace = PaceLimits::from(&limits);
    let (stops, stopping) = watch::channel(false);
    let mut http = http1::Builder::new();
    let head_time = Duration::from_secs(limits.head_seconds);
    http.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(limits.head_bytes);

    let (full, refused) = (Throttle::default(), Throttle::default());
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((socket, address)) => {
                    let peer = Peer(address.ip().to_canonical());
                    let slot = match slots.take(peer, proxies.has(peer.0)) {
                        Ok(slot) => slot,
                        Err(exceeded) => {
                            if let Some(suppressed) = full.pass() {
                                tracing::warn!(?exceeded, suppressed, "connection limit reached");
                            }
                            // A client that expects TLS would not understand the answer.
                            if tls.is_none()
                                && let Ok(permit) = Arc::clone(&refusals).try_acquire_owned()
                            {
                                tokio::spawn(async move {
                                    let _ = timeout(REFUSAL_TIME, refuse(socket, exceeded)).await;
                                    drop(permit);
                                });
                            }
                            continue;
                        }
                    };
                    tokio::spawn(answer(
                        http.clone(),
                        (socket, peer),
                        tls.clone().map(|tls| (tls, head_time)),
                        router.clone(),
                        (slot, pace),
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
    let _ = timeout(Duration::from_secs(limits.drain_seconds), slots.empty()).await;
}

/// Serves one connection until it ends, after the handshake if the server has TLS.
async fn answer(
    mut http: http1::Builder,
    (socket, peer): (TcpStream, Peer),
    tls: Option<(Arc<Tls>, Duration)>,
    router: Router,
    (slot, pace): (Arc<ConnectionSlot>, PaceLimits),
    mut stopping: watch::Receiver<bool>,
) {
    let ends = PeerSocket::of(&socket);
    let Some((tls, head_time)) = tls else {
        return answer_on(http, (socket, peer, ends), None, router, (slot, pace), stopping).await;
    };
    let begun = Instant::now();
    let stream = tokio::select! {
        accepted = timeout(head_time, tls.accept(socket)) => match accepted {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        _ = stopping.changed() => return,
    };
    // The handshake's time counts, so that a client gains none by it.
    http.header_read_timeout(head_time.saturating_sub(begun.elapsed()));
    answer_on(http, (stream, peer, ends), Some(Encrypted), router, (slot, pace), stopping).await;
}

/// Serves one connection whose bytes are HTTP until it ends.
async fn answer_on(
    http: http1::Builder,
    (socket, peer, ends): (impl AsyncRead + AsyncWrite + Unpin + Send + 'static, Peer, PeerSocket),
    encrypted: Option<Encrypted>,
    router: Router,
    (slot, pace): (Arc<ConnectionSlot>, PaceLimits),
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(ends.clone());
        if let Some(encrypted) = encrypted {
            request.extensions_mut().insert(encrypted);
        }
        request.extensions_mut().insert(Arc::clone(&slot));
        let request = request.map(|body| Body::new(RequestBody::new(body, Arc::clone(&slot), pace)));
        let (answered, slot) = (router.clone().oneshot(request), Arc::clone(&slot));
        async move {
            let mut response = answered.await?;
            if slot.is_scarce() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                // A client that comes back gets another slot.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let socket = ClientIo::new(socket, Arc::clone(&slot), pace);
    let mut served = pin!(http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    tokio::select! {
        result = served.as_mut() => {
            // Mostly clients that went away, sent no HTTP, or were too slow: of interest to a developer only.
            if let Err(error) = result {
                tracing::debug!(error = super::error::chain(&error), "connection failed");
            }
            return;
        }
        () = slot.closed() => return,
        _ = stopping.changed() => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

/// Answers a connection that has no slot, whatever it asks for.
async fn refuse(mut socket: TcpStream, exceeded: Exceeded) {
    let message = match exceeded {
        Exceeded::Connections => "This server has as many connections as it allows. Try again later.",
        Exceeded::OfAddress => "This server has as many connections from your address as it allows. Try again later.",
    };
    let answer = ApiError::busy(message).to_http();
    // A client that has gone needs no answer.
    if socket.write_all(answer.as_bytes()).await.is_ok() && socket.shutdown().await.is_ok() {
        let (mut buffer, mut total) = ([0; 4096], 0);
        while total < REFUSAL_BYTES
            && let Ok(count @ 1..) = socket.read(&mut buffer).await
        {
            total += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_client_that_never_finishes_its_request_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { head_seconds: 1, ..ServerLimits::default() };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, Router::new(), limits, (None, Arc::default()), async {
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

    /// Sends a request over a connection, and returns everything that comes back.
    async fn ask(address: SocketAddr, connection: &str) -> String {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n");
        // The server may have refused it already.
        let _ = socket.write_all(request.as_bytes()).await;
        let (mut answer, mut buffer) = (Vec::new(), [0; 1_024]);
        while let Ok(read @ 1..) = socket.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..read]);
        }
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_connection_over_the_limit_is_refused_until_another_one_ends() {
        for (connections, connections_of_address, wanted) in
            [(4, 100, "as many connections as it allows"), (100, 4, "as many connections from your address")]
        {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let limits =
                ServerLimits { connections, connections_of_address, head_seconds: 1, ..ServerLimits::default() };
            let router = Router::new().route("/", axum::routing::get(|| async { "well" }));
            let server = serve(listener, router, limits, (None, Arc::default()), std::future::pending());
            let server = tokio::spawn(server);
            let mut silent = Vec::new();
            for _ in 0..4 {
                silent.push(TcpStream::connect(address).await.unwrap());
            }
            let begun = Instant::now();
            let refused = ask(address, "close").await;
            assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains(wanted), "{refused}");
            // The silent ones are cut off, and make room.
            while !ask(address, "close").await.ends_with("well") {
                assert!(begun.elapsed() < Duration::from_secs(10), "no answer in time");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            server.abort();
        }
    }

    #[tokio::test]
    async fn a_connection_without_another_request_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { head_seconds: 1, ..ServerLimits::default() };
        let router = Router::new().route("/", axum::routing::get(|| async { "well" }));
        let server = serve(listener, router, limits, (None, Arc::default()), std::future::pending());
        let server = tokio::spawn(server);
        let begun = Instant::now();
        let answer = timeout(Duration::from_secs(10), ask(address, "keep-alive")).await.unwrap();
        assert!(answer.ends_with("well") && !answer.contains("connection: close"), "{answer}");
        assert!(begun.elapsed() > Duration::from_millis(900), "{:?}", begun.elapsed());
        server.abort();
    }

    #[tokio::test]
    async fn a_connection_is_not_kept_for_later_requests_when_slots_are_scarce() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { connections: 4, ..ServerLimits::default() };
        let router = Router::new().route("/", axum::routing::get(|| async { "well" }));
        let server = serve(listener, router, limits, (None, Arc::default()), std::future::pending());
        let server = tokio::spawn(server);
        let _idle = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        // It returns, so the server has closed the connection.
        let answer = timeout(Duration::from_secs(10), ask(address, "keep-alive")).await.unwrap();
        assert!(answer.contains("connection: close\r\n") && answer.ends_with("well"), "{answer}");
        server.abort();
    }
}
