//! The server: the page's files, the sample trace, and nothing that could leave this machine.
//!
//! Every answer passes [`host`] and [`headers`] first. A route gives a response, never an error: what goes wrong is
//! said in the response's text.

mod assets;
mod connections;
mod headers;
mod host;
mod router;
mod routes;

pub use assets::has_page;
pub use router::router;

use shared::limits::ServerLimits;
use tokio::net::TcpListener;

/// Serves on `listener` until Ctrl-C (or, on Unix, a request to terminate).
pub async fn run(listener: TcpListener) {
    connections::serve(listener, router(), ServerLimits::default(), stop_signal()).await;
}

/// Resolves when the program is told to stop.
async fn stop_signal() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a handler the signal ends the program by itself.
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                () = interrupted => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    interrupted.await;
}
