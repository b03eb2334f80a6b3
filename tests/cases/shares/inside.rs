//! A server in this process that shares traces, with limits that a test chooses and a place to keep traces that a test holds up.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use anyhow::Result;
use trace::limits::{ServerLimits, ShareLimits};
use vramscope::bus::LocalBus;
use vramscope::ingest::{Retention, Sessions};
use vramscope::server::{self, App, Hosts, LocalFiles};
use vramscope::shares::{Shares, Terms};
use vramscope::store::files::{Files, MemoryFiles};
use vramscope::store::{Blobs, FolderBlobs, SegmentStore, StoreResult};

/// A running server, which keeps its traces in memory and runs as long as this process.
pub(crate) struct Inside {
    pub(crate) address: SocketAddr,
    pub(crate) local_files: Arc<LocalFiles>,
    pub(crate) files: MemoryFiles,
    pub(crate) gate: Arc<Gate>,
}

impl Inside {
    pub(crate) fn start(limits: ServerLimits, share_limits: ShareLimits) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let files = MemoryFiles::default();
        let kept: Arc<dyn Files> = Arc::new(files.clone());
        let gate = Arc::new(Gate {
            blobs: FolderBlobs::new(Arc::clone(&kept)),
            taking: Mutex::default(),
            changed: Condvar::new(),
        });
        let blobs: Arc<dyn Blobs> = Arc::clone(&gate) as _;
        let shares = Shares::open((kept, blobs), share_limits, Terms::default());
        let store = Arc::new(SegmentStore::in_memory(1 << 30));
        let sessions = Sessions::open(
            store,
            Arc::new(LocalBus::new(limits.viewer_bytes)),
            limits,
            Retention::default(),
            Arc::default(),
        )?;
        let app = App::new(sessions, Hosts::new(address, &[])).sharing(shares);
        let local_files = Arc::clone(&app.files);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    let _ = server::run(listener, app, std::future::pending()).await;
                }
            });
        });
        Ok(Self { address, local_files, files, gate })
    }
}

/// Keeps traces in memory, when a test lets it.
#[derive(Debug)]
pub(crate) struct Gate {
    blobs: FolderBlobs,
    /// Whether traces are held up, and how many are.
    taking: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    /// Holds traces up, or lets them pass.
    pub(crate) fn set_closed(&self, is_closed: bool) {
        self.taking.lock().expect("no panic").0 = is_closed;
        self.changed.notify_all();
    }

    /// Waits until so many traces are held up.
    pub(crate) fn held(&self, count: usize) {
        let taking = self.taking.lock().expect("no panic");
        drop(self.changed.wait_while(taking, |taking| taking.1 != count).expect("no panic"));
    }
}

impl Blobs for Gate {
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>> {
        self.blobs.list(folder)
    }

    fn list_below(
        &self,
        folder: &str,
        wants: &dyn Fn(&str) -> bool,
        visit: &mut dyn FnMut(&str, &str, u64),
    ) -> StoreResult {
        self.blobs.list_below(folder, wants, visit)
    }

    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        self.blobs.read(path, from, most)
    }

    fn get(&self, path: &str) -> StoreResult<Vec<u8>> {
        self.blobs.get(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult {
        self.blobs.put(path, bytes)
    }

    fn take(&self, local: &str, bytes: u64, path: &str) -> StoreResult {
        let mut taking = self.taking.lock().expect("no panic");
        taking.1 += 1;
        self.changed.notify_all();
        taking = self.changed.wait_while(taking, |taking| taking.0).expect("no panic");
        taking.1 -= 1;
        drop(taking);
        self.blobs.take(local, bytes, path)
    }

    fn give_back(&self, path: &str, bytes: u64, local: &str) -> StoreResult {
        self.blobs.give_back(path, bytes, local)
    }

    fn remove(&self, paths: &[String]) -> StoreResult {
        self.blobs.remove(paths)
    }

    fn remove_folder(&self, folder: &str) -> StoreResult {
        self.blobs.remove_folder(folder)
    }
}
