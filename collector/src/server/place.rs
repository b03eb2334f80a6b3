//! Places for the connections of strangers: how many there are, and who gives way when all are taken.
//!
//! A client is a stranger until it has shown a token or its hello was accepted. Strangers must neither use up the memory
//! of the server nor keep anybody out, and everything that they can send is cheap for them. So:
//!
//! - Every connection has a place, of which there are [`ServerLimits::connections`](trace::limits::ServerLimits). A socket
//!   of a collector or viewer keeps it until its hello was accepted. From then on it has one of the separate places of
//!   collectors or viewers, which strangers can't take.
//! - As long as a place is free, everybody gets one. When all are taken, a newcomer is not refused: a connection that keeps
//!   the server waiting is closed. It waits between two requests, for the rest of a head, of a body or of a hello, or until
//!   the client reads what was sent. A connection whose request the server is working on is never closed.
//! - Of the neighborhood (an address) that has most of these, the one that waits for longest is closed. So no address can
//!   have more than its share while others want a place too. This also holds if all clients share one address, as on
//!   one machine or behind a proxy: an honest client sends what it has to say within milliseconds, and to be the oldest of
//!   all, hostile clients would need to open hundreds of connections in that time.
//! - Connections that have shown something give way last, unless they would take more than three quarters of the places.
//!
//! What one stranger holds is limited as well: the head of a request ([`ServerLimits::head_bytes`]), one message of a hello
//! ([`ServerLimits::hello_bytes`]) in one message of a WebSocket ([`ServerLimits::socket_bytes`]), for a few seconds
//! ([`ServerLimits::hello_seconds`]). A client that is slow but not silent has to keep up with a [pace](super::pace).
//!
//! [`ServerLimits::head_bytes`]: trace::limits::ServerLimits::head_bytes
//! [`ServerLimits::hello_bytes`]: trace::limits::ServerLimits::hello_bytes
//! [`ServerLimits::socket_bytes`]: trace::limits::ServerLimits::socket_bytes
//! [`ServerLimits::hello_seconds`]: trace::limits::ServerLimits::hello_seconds

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::eviction_queue::{EvictionQueue, Neighborhood};
use super::peer::Peer;

/// The time after which one more connection is closed if none of those that were closed has left its place.
const RETRY: Duration = Duration::from_millis(20);

/// The places of all connections.
#[derive(Debug)]
pub(super) struct Places {
    all: usize,
    free: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
}

/// The connections that wait for their clients.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of the next one.
    next: u64,
    strangers: EvictionQueue<Arc<Closing>>,
    known: EvictionQueue<Arc<Closing>>,
}

impl Waiting {
    fn queue(&mut self, is_known: bool) -> &mut EvictionQueue<Arc<Closing>> {
        if is_known { &mut self.known } else { &mut self.strangers }
    }
}

impl Places {
    /// Creates free places.
    pub(super) fn new(all: usize) -> Arc<Self> {
        let all = all.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self { all, free: Arc::new(Semaphore::new(all)), waiting: Mutex::default() })
    }

    /// Whether all places are taken.
    pub(super) fn is_full(&self) -> bool {
        self.free.available_permits() == 0
    }

    /// Takes a place. Closes another connection if none is free. Only one task may call it at a time.
    pub(super) async fn enter(self: &Arc<Self>, peer: Peer) -> Option<Arc<Place>> {
        let permit = loop {
            if self.is_full() {
                self.make_room();
            }
            // While every connection is busy there is nothing to close: it has to be tried again.
            if let Ok(permit) = timeout(RETRY, Arc::clone(&self.free).acquire_owned()).await {
                break permit.ok()?;
            }
        };
        let state = State {
            neighborhood: peer.into(),
            permit: Some(permit),
            is_known: false,
            tasks: 0,
            waits: 0,
            waiting: None,
        };
        let place = Place { places: Arc::clone(self), closing: Arc::default(), state: Mutex::new(state) };
        place.change(|_| {});
        Some(Arc::new(place))
    }

    /// Waits until every place is free.
    pub(super) async fn empty(&self) {
        let all = u32::try_from(self.all).unwrap_or(u32::MAX);
        let _ = self.free.acquire_many(all).await;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection that gives way, if any waits.
    fn make_room(&self) {
        let mut waiting = self.lock();
        let is_known = waiting.strangers.len() <= self.all / 4 && waiting.known.len() > 0;
        if let Some(closing) = waiting.queue(is_known).remove_first_of_largest() {
            closing.close();
        }
    }
}

/// Tells a connection to close.
#[derive(Debug, Default)]
struct Closing {
    is_closed: AtomicBool,
    notify: Notify,
}

impl Closing {
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }
}

/// The place of one connection. Every request carries it in its extensions.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    closing: Arc<Closing>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Where the client of the last request is.
    neighborhood: Neighborhood,
    /// `None` after it was given up.
    permit: Option<OwnedSemaphorePermit>,
    is_known: bool,
    /// What the server is doing for the client.
    tasks: usize,
    /// What the server can't go on with until the client sends or reads something.
    waits: usize,
    /// The number among those that wait, and since when.
    waiting: Option<(u64, Instant)>,
}

impl Place {
    /// Keeps the connection from being closed while the value lives, unless it waits for its client.
    pub(super) fn work(self: &Arc<Self>) -> Work {
        self.change(|state| state.tasks += 1);
        Work(Arc::clone(self))
    }

    /// Marks that the server waits for the client while the value lives.
    pub(super) fn wait(self: &Arc<Self>) -> Wait {
        self.change(|state| state.waits += 1);
        Wait(Arc::clone(self))
    }

    /// Marks that the client has shown a token, or that its hello was accepted.
    pub(super) fn mark_authenticated(&self) {
        self.move_to(|state| state.is_known = true);
    }

    /// Notes who sent the request that came last. Of a proxy's connections each counts for the client that it serves.
    pub(super) fn serve(&self, client: Peer) {
        self.move_to(|state| {
            state.neighborhood = client.into();
            // What an earlier client has shown is not this one's.
            state.is_known = false;
        });
    }

    /// Gives up the place of a connection that has another one from now on: it is not closed any more.
    pub(super) fn give_up(&self) {
        self.change(|state| state.permit = None);
    }

    /// Tells the connection to close.
    pub(super) fn close(&self) {
        self.closing.close();
    }

    /// Resolves when the connection has to close.
    pub(super) async fn closed(&self) {
        let notified = self.closing.notify.notified();
        if !self.closing.is_closed.load(Ordering::SeqCst) {
            notified.await;
        }
    }

    /// Returns for how long the server has been waiting for the client by now.
    pub(super) fn waits_for(&self) -> Option<Duration> {
        self.lock().waiting.map(|(_, since)| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.update(&mut state);
    }

    /// Changes among whom it waits.
    fn move_to(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        let was_waiting = self.leave_queue(&mut state);
        change(&mut state);
        if was_waiting {
            self.update(&mut state);
        }
    }

    /// Joins or leaves those that wait.
    fn update(&self, state: &mut State) {
        let waits = state.permit.is_some() && (state.tasks == 0 || state.waits > 0);
        if !waits {
            self.leave_queue(state);
        } else if state.waiting.is_none() {
            let mut waiting = self.places.lock();
            let number = waiting.next;
            waiting.next += 1;
            waiting.queue(state.is_known).add(state.neighborhood, number, Arc::clone(&self.closing));
            state.waiting = Some((number, Instant::now()));
        }
    }

    /// Returns whether it was waiting.
    fn leave_queue(&self, state: &mut State) -> bool {
        let Some((number, _)) = state.waiting.take() else { return false };
        self.places.lock().queue(state.is_known).remove(state.neighborhood, number);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.change(|state| state.permit = None);
    }
}

/// See [`Place::work`].
#[derive(Debug)]
pub(super) struct Work(Arc<Place>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.change(|state| state.tasks -= 1);
    }
}

/// See [`Place::wait`].
#[derive(Debug)]
pub(super) struct Wait(Arc<Place>);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.change(|state| state.waits -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn enter(places: &Arc<Places>, address: &str) -> Arc<Place> {
        let peer = Peer(address.parse().unwrap());
        timeout(Duration::from_secs(5), places.enter(peer)).await.expect("a place in time").unwrap()
    }

    fn is_closed(place: &Place) -> bool {
        place.closing.is_closed.load(Ordering::SeqCst)
    }

    /// What a connection is doing.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Doing {
        Idle,
        Work,
        Body,
        Known,
        GivenUp,
        /// It belongs to a proxy, whose client was known, and serves this client now.
        Serves(&'static str),
    }

    /// Fills all places, then lets one more connection in.
    async fn check(what: &str, connections: &[(&str, Doing)], want: Option<usize>) {
        let places = Places::new(connections.iter().filter(|(_, doing)| *doing != Doing::GivenUp).count());
        let (mut open, mut guards) = (Vec::new(), Vec::new());
        for (address, doing) in connections {
            let place = enter(&places, address).await;
            match doing {
                Doing::Idle => {}
                Doing::Work => guards.push((Some(place.work()), None)),
                Doing::Body => guards.push((Some(place.work()), Some(place.wait()))),
                Doing::Known => place.mark_authenticated(),
                Doing::GivenUp => place.give_up(),
                Doing::Serves(client) => {
                    place.mark_authenticated();
                    place.serve(Peer(client.parse().unwrap()));
                }
            }
            open.push(place);
        }
        assert!(places.is_full(), "{what}");
        // It waits until the closed connection has left.
        let newcomer = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.enter(Peer("192.0.2.99".parse().unwrap())).await }
        });
        match want {
            Some(closed) => {
                timeout(Duration::from_secs(5), open[closed].closed()).await.expect(what);
                // The only one: the others follow after some time, as this one does not leave.
                assert_eq!((0..open.len()).find(|i| *i != closed && is_closed(&open[*i])), None, "{what}");
                guards.clear();
                open.clear();
                assert!(newcomer.await.unwrap().is_some(), "{what}");
            }
            None => {
                tokio::time::sleep(3 * RETRY).await;
                assert!(!newcomer.is_finished() && !open.iter().any(|place| is_closed(place)), "{what}");
                newcomer.abort();
            }
        }
    }

    #[tokio::test]
    async fn who_gives_way() {
        use Doing::{Body, GivenUp, Idle, Known, Serves, Work};
        let [a, b, proxy] = ["192.0.2.1", "192.0.2.2", "127.0.0.1"];
        for (what, connections, want) in [
            ("the oldest", &[(a, Idle), (a, Idle)][..], Some(0)),
            ("one that waits for a body", &[(a, Work), (a, Body), (a, Work)], Some(1)),
            ("the address with most", &[(a, Idle), (b, Idle), (b, Idle)], Some(1)),
            ("no request in progress", &[(a, Work), (b, Work)], None),
            ("a stranger first", &[(a, Known), (a, Idle), (a, Idle), (a, Known)], Some(1)),
            ("strangers keep a quarter", &[(a, Known), (a, Known), (a, Known), (b, Idle)], Some(0)),
            ("the client with most", &[(proxy, Serves(a)), (proxy, Serves(b)), (proxy, Serves(b))], Some(1)),
            ("not for another's token", &[(a, Known), (proxy, Serves(b))], Some(1)),
            ("who has another place", &[(a, GivenUp), (a, Idle)], Some(1)),
        ] {
            check(what, connections, want).await;
        }
    }

    #[tokio::test]
    async fn a_place_is_free_after_its_connection() {
        let places = Places::new(2);
        let one = enter(&places, "192.0.2.1").await;
        let work = one.work();
        drop(one);
        drop(enter(&places, "192.0.2.1").await);
        assert_eq!(places.lock().strangers.len(), 0);
        drop(work);
        timeout(Duration::from_secs(5), places.empty()).await.expect("all places are free");
    }
}
