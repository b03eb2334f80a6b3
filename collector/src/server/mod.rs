//! The server: the page's files, the sample trace, and the sessions of running jobs.
//!
//! Every answer passes [`host`] and [`headers`] first. A route gives a response, never an error: what goes wrong is
//! said in the response.

mod app;
mod assets;
mod clock;
mod coding;
mod collector;
mod connections;
mod demo;
mod error;
mod guarded;
mod headers;
mod history;
mod host;
mod json;
mod recording;
mod router;
mod routes;
mod socket;
mod stream;
mod token;
mod viewer;

use std::sync::Arc;
use std::time::Duration;

pub use app::App;
pub use assets::has_page;
pub use host::Hosts;
pub use router::router;

use tokio::net::TcpListener;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::ingest::Sessions;

/// Serves on `listener` until Ctrl-C (or, on Unix, a request to terminate).
pub async fn run(listener: TcpListener, app: App) {
    let janitor = tokio::spawn(sweep(Arc::clone(&app.sessions)));
    let sessions = Arc::clone(&app.sessions);
    let (limits, demo) = (*app.limits(), Arc::clone(&app.demo));
    let stop = async {
        stop_signal().await;
        demo.stop();
        // Sockets are told, and end by themselves.
        sessions.stop();
    };
    connections::serve(listener, router(app), limits, stop).await;
    janitor.abort();
    // What collectors sent is on its way to the disk.
    let until = Instant::now() + Duration::from_secs(limits.drain_seconds);
    while Instant::now() < until && is_busy(&sessions) {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a socket is open still, or a batch not stored.
fn is_busy(sessions: &Sessions) -> bool {
    let limits = sessions.limits();
    sessions.collectors.available_permits() < limits.live_sessions
        || sessions.viewers.available_permits() < limits.viewers
        || sessions.all().iter().any(|session| session.is_connected())
}

/// Drops, from time to time, what is kept for too long.
async fn sweep(sessions: Arc<Sessions>) {
    let mut times = interval(Duration::from_secs(sessions.limits().janitor_seconds.max(1)));
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let sessions = Arc::clone(&sessions);
        // One that fails is tried again.
        let _ = tokio::task::spawn_blocking(move || sessions.sweep()).await;
    }
}

/// Resolves when the program is told to stop.
pub(crate) async fn stop_signal() {
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
