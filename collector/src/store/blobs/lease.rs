//! The lease on a prefix of an object store: one server uses it at a time.
//!
//! Two servers with one prefix would each take the other's sessions for damaged or superfluous. So a server changes nothing
//! before it holds the lease: an object that names it, and that it renews again and again. A server that finds the lease of
//! another one watches it: if it is renewed meanwhile, the other server runs, and this one ends; if not, the other one is
//! gone. The clocks of the machines don't matter.
//!
//! A server that starts again with the same local folder takes its own lease back at once: the folder is locked while a
//! server uses it. If a copy of the folder was started elsewhere, the newer server holds the lease, and the older one changes
//! nothing from its next renewal on.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use trace::limits::ObjectLimits;

use super::client::failure;
use crate::store::{StoreError, StoreResult};

/// The pause between two attempts to take the lease, and between two looks at that of another server.
const PAUSE: Duration = Duration::from_secs(1);

/// Who holds a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Holder {
    /// The random name of its local folder.
    pub(super) folder: String,
    /// A random name of its process.
    pub(super) run: String,
    /// Its host, for people.
    pub(super) host: String,
    /// The number of its process, for people.
    pub(super) pid: u32,
    /// How often the lease was renewed.
    pub(super) renewals: u64,
}

/// The state of a lease, as one server sees it.
#[derive(Clone, Debug)]
enum LeaseState {
    /// It doesn't hold the lease yet, for this reason.
    Waiting(String),
    /// It holds the lease, which it renewed at this time.
    Held(Instant),
    /// It can't hold the lease. The text is a sentence for people.
    Refused(String),
}

/// The lease of a prefix of an object store, as one server sees it.
#[derive(Debug)]
pub(super) struct Lease {
    store: Arc<dyn ObjectStore>,
    place: Path,
    url: String,
    own: Holder,
    limits: ObjectLimits,
    state: watch::Sender<LeaseState>,
}

/// Why an attempt failed.
enum AttemptError {
    /// Another attempt may succeed.
    Temporary(String),
    /// No other attempt will.
    Permanent(String),
}

impl Lease {
    /// Creates the lease of a prefix. It is not taken before [`Self::keep`].
    pub(super) fn new(store: Arc<dyn ObjectStore>, place: Path, url: &str, own: Holder, limits: ObjectLimits) -> Self {
        let state = watch::Sender::new(LeaseState::Waiting("the object store has not answered yet".to_owned()));
        Self { store, place, url: url.to_owned(), own, limits, state }
    }

    /// Waits until the lease is held. Fails with a sentence for people if it can't be, or if nothing answers.
    pub(super) async fn held(&self) -> Result<(), String> {
        let mut state = self.state.subscribe();
        let is_decided = |state: &LeaseState| !matches!(state, LeaseState::Waiting(_));
        // That of another server, which is gone, ends first.
        let _ =
            timeout(Duration::from_secs(self.limits.request_seconds) + self.limits.lease, state.wait_for(is_decided))
                .await;
        match &*state.borrow() {
            LeaseState::Held(_) => Ok(()),
            LeaseState::Refused(sentence) => Err(sentence.clone()),
            LeaseState::Waiting(reason) => Err(failure(&self.url, reason)),
        }
    }

    /// Waits until this server can't hold the lease any more. Returns a sentence for people.
    pub(super) fn refused(&self) -> impl Future<Output = String> + Send + use<> {
        let mut state = self.state.subscribe();
        async move {
            loop {
                if let LeaseState::Refused(sentence) = &*state.borrow_and_update() {
                    return sentence.clone();
                }
                if state.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Fails with the reason unless this server may change objects now.
    pub(super) fn check(&self) -> StoreResult {
        let reason = match &*self.state.borrow() {
            LeaseState::Held(renewed) if renewed.elapsed() < self.limits.lease => return Ok(()),
            LeaseState::Held(renewed) => {
                format!("the object store has not answered for {} s", renewed.elapsed().as_secs())
            }
            LeaseState::Waiting(reason) | LeaseState::Refused(reason) => reason.trim_end_matches('.').to_owned(),
        };
        Err(StoreError::Io(io::Error::other(reason)))
    }

    /// Takes the lease, and renews it until it is lost.
    pub(super) async fn keep(&self) {
        let mut renewals = 0;
        loop {
            match self.take().await {
                Ok(()) => break,
                Err(AttemptError::Permanent(sentence)) => return self.refuse(sentence),
                Err(AttemptError::Temporary(reason)) => self.wait_for(reason),
            }
            sleep(PAUSE).await;
        }
        tracing::debug!(url = self.url, "the object store is in use by this server");
        let mut pause = self.limits.renewal;
        loop {
            sleep(pause).await;
            pause = self.limits.renewal;
            // The program ends.
            if !matches!(&*self.state.borrow(), LeaseState::Held(_)) {
                return;
            }
            match self.renew(renewals + 1).await {
                Ok(()) => {
                    renewals += 1;
                    self.state.send_replace(LeaseState::Held(Instant::now()));
                }
                Err(AttemptError::Permanent(sentence)) => return self.refuse(sentence),
                Err(AttemptError::Temporary(reason)) => {
                    tracing::warn!(url = self.url, "the lease of the object store can't be renewed: {reason}");
                    pause = PAUSE;
                }
            }
        }
    }

    fn refuse(&self, sentence: String) {
        tracing::error!("{sentence}");
        self.state.send_replace(LeaseState::Refused(sentence));
    }

    /// Says why the server has to wait, once for each reason.
    fn wait_for(&self, reason: String) {
        let is_new = !matches!(&*self.state.borrow(), LeaseState::Waiting(known) if *known == reason);
        if is_new {
            tracing::warn!(url = self.url, "the object store can't be used yet: {reason}");
            self.state.send_replace(LeaseState::Waiting(reason));
        }
    }

    /// Takes the lease, which may belong to a server that is gone.
    async fn take(&self) -> Result<(), AttemptError> {
        let mut watched: Option<(Holder, Instant)> = None;
        loop {
            let begun = Instant::now();
            let (found, mode) = match self.read().await? {
                None => (None, PutMode::Create),
                Some((holder, version)) => (Some(holder), PutMode::Update(version)),
            };
            let is_free = match (found, &watched) {
                (None, _) => true,
                (Some(holder), _) if holder.folder == self.own.folder => true,
                (Some(holder), Some((known, since))) if holder == *known => since.elapsed() >= self.limits.lease,
                (Some(holder), Some((known, _))) if holder.run == known.run => {
                    return Err(AttemptError::Permanent(self.sentence(&holder)));
                }
                (Some(holder), _) => {
                    let Holder { host, pid, .. } = &holder;
                    self.wait_for(format!(
                        "a server on {host} (process {pid}) used it last; waiting {} s to see whether that one still runs",
                        self.limits.lease.as_secs()
                    ));
                    watched = Some((holder, begun));
                    false
                }
            };
            if is_free && self.write(mode, 0).await? {
                self.state.send_replace(LeaseState::Held(begun));
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    fn sentence(&self, holder: &Holder) -> String {
        let Holder { host, pid, .. } = holder;
        format!(
            "Another server, on {host} (process {pid}), uses {}. Stop it, or name another prefix with --store.",
            self.url
        )
    }

    /// Renews the lease, unless another server has it by now.
    async fn renew(&self, renewals: u64) -> Result<(), AttemptError> {
        let mode = match self.read().await? {
            Some((holder, _)) if holder.run != self.own.run => {
                return Err(AttemptError::Permanent(self.sentence(&holder)));
            }
            Some((_, version)) => PutMode::Update(version),
            None => PutMode::Create,
        };
        match self.write(mode, renewals).await? {
            true => Ok(()),
            false => Err(AttemptError::Temporary("another server writes it".to_owned())),
        }
    }

    /// Deletes the lease if this server has it. Nothing may be changed any more.
    pub(super) async fn release(&self) {
        self.state.send_replace(LeaseState::Waiting("the server stops".to_owned()));
        if let Ok(Some((holder, _))) = self.read().await
            && holder.run == self.own.run
        {
            // Otherwise the next server has to wait until it ends.
            let _ = self.within(self.store.delete(&self.place)).await;
        }
    }

    async fn read(&self) -> Result<Option<(Holder, UpdateVersion)>, AttemptError> {
        let read = async {
            let object = self.store.get(&self.place).await?;
            let version = UpdateVersion { e_tag: object.meta.e_tag.clone(), version: object.meta.version.clone() };
            Ok((object.bytes().await?, version))
        };
        match self.within(read).await? {
            // One that can't be read belongs to no server.
            Ok((bytes, version)) => Ok(Some((serde_json::from_slice(&bytes).unwrap_or_default(), version))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Writes the lease, unless another server has done so since it was read. Returns whether it was written.
    async fn write(&self, mode: PutMode, renewals: u64) -> Result<bool, AttemptError> {
        let holder = Holder { renewals, ..self.own.clone() };
        // A holder has nothing that JSON can't represent.
        let bytes = serde_json::to_vec(&holder).unwrap_or_default();
        let written = self.within(self.store.put_opts(&self.place, bytes.clone().into(), mode.into())).await?;
        let written = match written {
            // The store knows no conditions: whoever writes last holds the lease, and the other one finds that out.
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                self.within(self.store.put(&self.place, bytes.into())).await?
            }
            written => written,
        };
        match written {
            Ok(_) => Ok(true),
            Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Waits for a request, but not for ever.
    async fn within<T>(&self, request: impl Future<Output = T>) -> Result<T, AttemptError> {
        let seconds = self.limits.request_seconds;
        timeout(Duration::from_secs(seconds), request)
            .await
            .map_err(|_| AttemptError::Temporary(format!("it has not answered for {seconds} s")))
    }

    fn failure(&self, error: &Error) -> AttemptError {
        match error {
            Error::NotFound { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::InvalidPath { .. }
            | Error::UnknownConfigurationKey { .. } => AttemptError::Permanent(failure(&self.url, error)),
            error => AttemptError::Temporary(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    const LIMITS: fn() -> ObjectLimits =
        || ObjectLimits { renewal: Duration::from_secs(10), lease: Duration::from_secs(35), ..ObjectLimits::default() };

    fn lease(store: &Arc<InMemory>, folder: &str, run: &str) -> Arc<Lease> {
        let own =
            Holder { folder: folder.to_owned(), run: run.to_owned(), host: "box".to_owned(), pid: 7, renewals: 0 };
        let store: Arc<dyn ObjectStore> = Arc::<InMemory>::clone(store);
        Arc::new(Lease::new(store, Path::from("team/lease.json"), "s3://traces/team", own, LIMITS()))
    }

    fn keep(lease: &Arc<Lease>) -> tokio::task::JoinHandle<()> {
        let lease = Arc::clone(lease);
        tokio::spawn(async move { lease.keep().await })
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_server_is_refused_while_the_first_runs_and_takes_over_when_it_is_gone() {
        let store = Arc::new(InMemory::new());
        let (first, second) = (lease(&store, "a", "1"), lease(&store, "b", "2"));
        assert!(second.check().unwrap_err().to_string().contains("has not answered yet"));
        let running = keep(&first);
        first.held().await.unwrap();
        first.check().unwrap();
        keep(&second);
        let refused = second.held().await.unwrap_err();
        let want =
            "Another server, on box (process 7), uses s3://traces/team. Stop it, or name another prefix with --store.";
        assert_eq!(refused, want);
        assert!(second.check().is_err());
        first.check().unwrap();

        // Killed: nobody renews its lease.
        running.abort();
        let third = lease(&store, "b", "3");
        keep(&third);
        assert!(third.check().is_err());
        third.held().await.unwrap();
        third.check().unwrap();

        // Ended in order: the next one need not wait.
        third.release().await;
        let fourth = lease(&store, "c", "4");
        assert!(timeout(Duration::from_millis(1), async { fourth.take().await.is_ok() }).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_again_takes_its_own_lease_back_and_a_copy_of_it_ends_the_first() {
        let store = Arc::new(InMemory::new());
        let first = lease(&store, "a", "1");
        keep(&first);
        first.held().await.unwrap();
        let again = lease(&store, "a", "2");
        assert!(timeout(Duration::from_millis(1), async { again.take().await.is_ok() }).await.unwrap());
        // The first one still runs, elsewhere, with a copy of the folder.
        assert!(first.refused().await.starts_with("Another server"));
        assert!(first.check().is_err());
        again.check().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_could_not_be_renewed_permits_nothing() {
        let store = Arc::new(InMemory::new());
        let lease = lease(&store, "a", "1");
        lease.take().await.ok().unwrap();
        let past = Instant::now().checked_sub(LIMITS().lease).unwrap();
        lease.state.send_replace(LeaseState::Held(past));
        assert!(lease.check().unwrap_err().to_string().contains("has not answered for 35 s"));
    }
}
