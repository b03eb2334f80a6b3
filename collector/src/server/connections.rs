//! Connections: how many, for how long, and how they end.
//!
//! `axum::serve` has no bound on the time a client may take to send its request; this loop has.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use shared::limits::ServerLimits;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Time to wait after the system refuses a connection (it has no file handles left, say), so that the loop never spins.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers on `listener` with `router` until `stop` resolves, then gives open connections a moment to end.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: ServerLimits, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(limits.head_seconds))
        .max_buf_size(limits.head_bytes);

    let accept = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((socket, _)) => {
                    let service = TowerToHyperService::new(router.clone());
                    let connection = graceful.watch(http.serve_connection(TokioIo::new(socket), service));
                    tokio::spawn(async move {
                        // What goes wrong here is the client's going away or sending no HTTP: neither is news.
                        let _ = connection.await;
                        drop(place);
                    });
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
    let _ = tokio::time::timeout(Duration::from_secs(limits.drain_seconds), graceful.shutdown()).await;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;
    use crate::server::router;

    #[tokio::test]
    async fn a_client_that_never_finishes_its_request_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServerLimits { head_seconds: 1, ..ServerLimits::default() };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, router(), limits, async {
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
}
