//! A server in this process, with limits that a test chooses.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use trace::limits::ServerLimits;
use vramscope::access::Access;
use vramscope::bus::LocalBus;
use vramscope::ingest::{Retention, Sessions};
use vramscope::server::{self, App, Hosts};
use vramscope::store::SegmentStore;

/// A running server: its address and its sessions.
pub(crate) struct Inside {
    pub(crate) address: SocketAddr,
    pub(crate) sessions: Arc<Sessions>,
}

impl Inside {
    /// Starts a server that keeps its sessions in memory and runs as long as this process.
    pub(crate) fn start(limits: ServerLimits, keep: Retention) -> Result<Self> {
        Self::with(Arc::new(SegmentStore::in_memory(keep.bytes)), limits, keep)
    }

    /// Starts a server with a store.
    pub(crate) fn with(store: Arc<SegmentStore>, limits: ServerLimits, keep: Retention) -> Result<Self> {
        Self::guarded(store, limits, keep, Arc::default())
    }

    /// Starts a server with a store and tokens.
    pub(crate) fn guarded(
        store: Arc<SegmentStore>,
        limits: ServerLimits,
        keep: Retention,
        access: Arc<Access>,
    ) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let bus = Arc::new(LocalBus::new(limits.viewer_bytes));
        let app = App::new(Sessions::open(store, bus, limits, keep, access)?, Hosts::new(address, &[]));
        let sessions = Arc::clone(&app.sessions);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    let _ = server::run(listener, app, std::future::pending()).await;
                }
            });
        });
        Ok(Self { address, sessions })
    }
}

/// Returns limits that a test can reach.
pub(crate) fn small() -> ServerLimits {
    ServerLimits {
        segment_bytes: 40_000,
        history_bytes: 100_000,
        behind_bytes: 400_000,
        viewer_bytes: 50_000,
        hello_seconds: 1,
        lost_seconds: 1,
        ..ServerLimits::default()
    }
}
