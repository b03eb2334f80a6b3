//! The server: the page's files, the sample trace, and the sessions of running jobs.
//!
//! Every request passes [`access_log`], [`headers`] and [`host`]. Errors are responses ([`error::ApiError`]); their causes
//! go to the log.

mod access_log;
mod api_routes;
mod app;
mod baselines;
mod client_io;
mod coding;
mod connection_slots;
mod connections;
mod demo;
mod download;
mod download_slots;
mod elsewhere;
mod embedding;
mod error;
mod expiry;
mod headers;
mod history;
mod host;
mod ingest_socket;
mod json;
mod local_files;
mod openapi;
mod pace;
mod peer;
#[cfg(test)]
mod power_tests;
mod proxies;
mod readiness;
mod refusal;
mod request_body;
mod router;
mod routes;
mod socket;
mod stream;
mod throttle;
mod timestamp;
mod tls;
mod token;
mod viewer;

use std::sync::Arc;
use std::time::Duration;

pub use app::App;
pub use baselines::Baselines;
pub use connections::listen;
pub use embedding::Embedding;
pub use host::Hosts;
pub use local_files::LocalFiles;
pub use proxies::{Network, Proxies};
pub use router::router;
pub use tls::Tls;

use tokio::net::TcpListener;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::ingest::Sessions;
use crate::shares::Shares;

/// The shortest and the longest pause before a store that could not be looked through is asked again.
const LOAD_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Serves on `listener` until Ctrl-C or, on Unix, SIGTERM; or until `refused` resolves, whose sentence is returned. Ends within
/// some seconds then ([`ServerLimits::drain_seconds`](trace::limits::ServerLimits::drain_seconds)), whatever the disk or the
/// object store does: everything that was acknowledged is on the disk already.
pub async fn run(listener: TcpListener, app: App, refused: impl Future<Output = String>) -> Result<(), String> {
    // Before anybody can learn that the server has started, and stop it.
    let stop = stop_signal();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = listener.local_addr().ok().map(tracing::field::display),
        token = app.sessions.access().wants_token(),
        access = app.sessions.access().describe(),
        sessions = app.sessions.all().len(),
        "server started"
    );
    let loading = tokio::spawn(load(Arc::clone(&app.sessions), app.shares.clone()));
    let janitor = tokio::spawn(sweep(Arc::clone(&app.sessions), app.shares.clone()));
    let tokens = tokio::spawn(Arc::clone(app.sessions.access()).watch());
    let sessions = Arc::clone(&app.sessions);
    let (tls, proxies) = (app.tls.clone(), Arc::clone(&app.proxies));
    let watch = tls.clone().map(|tls| tokio::spawn(tls.watch()));
    let (limits, demo) = (*app.limits(), Arc::clone(&app.demo));
    let (mut stopped, mut sentence) = (Instant::now(), None);
    let stop = async {
        sentence = tokio::select! {
            () = stop => None,
            sentence = refused => Some(sentence),
        };
        stopped = Instant::now();
        tracing::info!("server stopping");
        demo.stop();
        // Sockets end by themselves.
        sessions.stop();
    };
    connections::serve(listener, router(app), limits, (tls, proxies), stop).await;
    loading.abort();
    janitor.abort();
    tokens.abort();
    watch.inspect(tokio::task::JoinHandle::abort);
    // What collectors sent may still be on its way to the disk.
    let drain = Duration::from_secs(limits.drain_seconds);
    while stopped.elapsed() < drain && is_busy(&sessions) {
        sleep(Duration::from_millis(10)).await;
    }
    // What is sealed now is uploaded after the next start.
    sessions.store().stop();
    let closing = Arc::clone(&sessions);
    let closed = tokio::time::timeout(drain, tokio::task::spawn_blocking(move || closing.close_all())).await;
    if closed.is_err() || is_busy(&sessions) {
        tracing::warn!("server stopped before every session was sealed; the next start seals them");
    } else {
        tracing::info!("server stopped");
    }
    sentence.map_or(Ok(()), Err)
}

/// Looks through what is stored. A store that doesn't answer is asked again until it does.
async fn load(sessions: Arc<Sessions>, shares: Option<Arc<Shares>>) {
    let mut pause = LOAD_PAUSES.0;
    loop {
        let (loading, shares) = (Arc::clone(&sessions), shares.clone());
        let load = move || {
            // The sessions of a store that belongs to another server are not this one's to seal. The log tells why already.
            if loading.store().check_reachable().is_err() {
                return Err(String::new());
            }
            if let Some(Err(error)) = shares.map(|shares| shares.load()) {
                return Err(format!("can't be looked through for shared traces: {error}"));
            }
            loading.load().map_err(|error| format!("can't be looked through: {error}"))
        };
        match tokio::task::spawn_blocking(load).await {
            Ok(Ok(())) => return,
            Ok(Err(reason)) if reason.is_empty() => {}
            Ok(Err(reason)) => tracing::warn!("the store {reason}; trying again"),
            Err(error) => tracing::error!(%error, "looking through the store failed"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LOAD_PAUSES.1);
    }
}

/// Whether a socket is still open, or a batch not yet stored.
fn is_busy(sessions: &Sessions) -> bool {
    let limits = sessions.limits();
    sessions.collectors.available_permits() < limits.live_sessions
        || sessions.viewers.available_permits() < limits.viewers
        || sessions.all().iter().any(|session| session.is_connected())
}

/// Drops at intervals what exceeds the limits of age and size, and at once when the disk is full.
async fn sweep(sessions: Arc<Sessions>, shares: Option<Arc<Shares>>) {
    let mut times = interval(Duration::from_secs(sessions.limits().janitor_seconds.max(1)));
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = times.tick() => {}
            () = sessions.wants_sweep.notified() => {}
        }
        let (sessions, shares) = (Arc::clone(&sessions), shares.clone());
        let sweep = move || {
            sessions.sweep();
            if let Some(shares) = shares {
                shares.sweep(sessions.retention_now_us());
            }
        };
        // The next interval tries again.
        if let Err(error) = tokio::task::spawn_blocking(sweep).await {
            tracing::error!(%error, "dropping old sessions failed");
        }
    }
}

/// Returns a future that resolves at Ctrl-C or, on Unix, SIGTERM. From the call on, these signals don't end the program by
/// themselves; without handlers they do.
pub(crate) fn stop_signal() -> impl Future<Output = ()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{Signal, SignalKind, signal};
        let handlers = [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok());
        let received = |handler: Option<Signal>| async {
            match handler {
                Some(mut handler) => drop(handler.recv().await),
                None => std::future::pending().await,
            }
        };
        let [interrupted, terminated] = handlers.map(received);
        async {
            tokio::select! {
                () = interrupted => {}
                () = terminated => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
