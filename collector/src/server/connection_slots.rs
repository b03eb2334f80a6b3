//! Slots for connections: how many there may be in all, and of one address.
//!
//! A connection takes a slot when it is accepted, and is refused if none is free. It frees the slot when it ends, or when its
//! client was admitted as a collector or viewer: those are counted by limits of their own, which other clients can't use up.
//!
//! Nobody keeps a slot for nothing: a client has [`ServerLimits::head_seconds`] for the head of each request, also the first
//! and after an idle time; [`ServerLimits::hello_seconds`] for its hello; and must keep up with a [pace](super::pace) while it
//! sends a body or reads a response.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use trace::limits::ServerLimits;

use super::peer::Peer;

/// Which limit a connection exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// [`ServerLimits::connections`].
    Connections,
    /// [`ServerLimits::connections_of_address`].
    OfAddress,
}

/// The slots of a server.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    all: usize,
    of_address: usize,
    free: Arc<Semaphore>,
    taken: Mutex<HashMap<Network, usize>>,
}

impl ConnectionSlots {
    /// Creates free slots.
    pub(super) fn new(limits: &ServerLimits) -> Arc<Self> {
        let all = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let of_address = limits.connections_of_address.max(1);
        Arc::new(Self { all, of_address, free: Arc::new(Semaphore::new(all)), taken: Mutex::default() })
    }

    /// Takes a slot for a connection. One of a trusted proxy, which has many clients, only counts for the limit in all.
    pub(super) fn take(self: &Arc<Self>, peer: Peer, is_proxy: bool) -> Result<Arc<ConnectionSlot>, Exceeded> {
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| Exceeded::Connections)?;
        let network = (!is_proxy).then(|| Network::from(peer));
        if let Some(network) = network {
            let mut taken = self.lock();
            let count = taken.entry(network).or_default();
            if *count >= self.of_address {
                return Err(Exceeded::OfAddress);
            }
            *count += 1;
        }
        let taken = Taken { slots: Arc::clone(self), network, _permit: permit };
        Ok(Arc::new(ConnectionSlot { taken: Mutex::new(Some(taken)), close: Notify::new(), waits: Mutex::default() }))
    }

    /// Waits until every slot is free.
    pub(super) async fn empty(&self) {
        let all = u32::try_from(self.all).unwrap_or(u32::MAX);
        let _ = self.free.acquire_many(all).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Network, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Addresses that one customer of a network may choose from: an IPv4 address, or all with the same first 64 bits of an IPv6
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Network(IpAddr);

impl From<Peer> for Network {
    fn from(Peer(ip): Peer) -> Self {
        Self(match ip {
            IpAddr::V4(_) => ip,
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        })
    }
}

/// A slot that is in use; free again when this is dropped.
#[derive(Debug)]
struct Taken {
    slots: Arc<ConnectionSlots>,
    /// What it counts for; `None` for a proxy.
    network: Option<Network>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut taken = self.slots.lock();
        if let Some(count) = taken.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&network);
            }
        }
    }
}

/// The slot of one connection. Every request carries it in its extensions.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    /// `None` after it was given up.
    taken: Mutex<Option<Taken>>,
    close: Notify,
    waits: Mutex<Waits>,
}

/// What the server can't go on with until the client sends or reads something.
#[derive(Debug, Default)]
struct Waits {
    count: usize,
    /// Since when there is any.
    since: Option<Instant>,
}

impl ConnectionSlot {
    /// Whether more than half of the slots are in use, of all or of those that the address may have. Then no connection should
    /// be kept for requests that may come later.
    pub(super) fn is_scarce(&self) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Taken { slots, network, .. }) = &*taken else { return false };
        let of_address = network.and_then(|network| slots.lock().get(&network).copied()).unwrap_or_default();
        slots.free.available_permits() < slots.all / 2 || of_address > slots.of_address / 2
    }

    /// Frees the slot of a connection that counts elsewhere from now on.
    pub(super) fn give_up(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Marks that the server waits for the client while the value lives.
    pub(super) fn wait(self: &Arc<Self>) -> Wait {
        let mut waits = self.waits();
        waits.count += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        Wait(Arc::clone(self))
    }

    /// Returns for how long the server has been waiting for the client by now.
    pub(super) fn waits_for(&self) -> Option<Duration> {
        self.waits().since.map(|since| since.elapsed())
    }

    /// Tells the connection to close.
    pub(super) fn close(&self) {
        self.close.notify_one();
    }

    /// Resolves when the connection has to close. Only one task may wait.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`ConnectionSlot::wait`].
#[derive(Debug)]
pub(super) struct Wait(Arc<ConnectionSlot>);

impl Drop for Wait {
    fn drop(&mut self) {
        let mut waits = self.0.waits();
        waits.count -= 1;
        if waits.count == 0 {
            waits.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(connections: usize, connections_of_address: usize) -> Arc<ConnectionSlots> {
        ConnectionSlots::new(&ServerLimits { connections, connections_of_address, ..ServerLimits::default() })
    }

    fn at(address: &str) -> Peer {
        Peer(address.parse().unwrap())
    }

    #[test]
    fn neither_all_nor_one_address_exceed_their_limit() {
        let slots = slots(4, 2);
        let take = |address| slots.take(at(address), false);
        let [a, b, c] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
        let first = take(a).unwrap();
        let _second = take(a).unwrap();
        assert_eq!(take(a).unwrap_err(), Exceeded::OfAddress);
        let _others = [take(b).unwrap(), take(c).unwrap()];
        assert_eq!(take(c).unwrap_err(), Exceeded::Connections);
        drop(first);
        assert_eq!(take(a).map(drop), Ok(()));
        // Neither a refusal nor the end of a connection leaves anything behind.
        assert_eq!((slots.free.available_permits(), slots.lock().get(&at(a).into())), (1, Some(&1)));
    }

    #[test]
    fn a_customer_of_a_network_is_one_address() {
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:0:0:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let slots = slots(4, 1);
            let _one = slots.take(at(one), false).unwrap();
            assert_eq!(slots.take(at(other), false).is_err(), is_same, "{one} {other}");
        }
    }

    #[test]
    fn a_proxy_may_have_all_slots() {
        let slots = slots(3, 1);
        let _open: Vec<_> = (0..3).map(|_| slots.take(at("127.0.0.1"), true).unwrap()).collect();
        assert_eq!(slots.take(at("127.0.0.1"), true).unwrap_err(), Exceeded::Connections);
    }

    #[test]
    fn an_admitted_client_takes_no_slot() {
        let slots = slots(1, 1);
        let admitted = slots.take(at("192.0.2.1"), false).unwrap();
        admitted.give_up();
        assert!(slots.take(at("192.0.2.1"), false).is_ok() && !admitted.is_scarce());
    }

    #[test]
    fn slots_are_scarce_when_more_than_half_are_in_use() {
        let slots = slots(8, 4);
        let [a, b, c] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
        let take = |address| slots.take(at(address), false).unwrap();
        let mut open = vec![take(a), take(a), take(b)];
        assert!(!open[0].is_scarce());
        open.push(take(a));
        assert_eq!(open.iter().map(|slot| slot.is_scarce()).collect::<Vec<_>>(), [true, true, false, true]);
        open.push(take(c));
        assert!(open[2].is_scarce(), "five of eight");
    }

    #[tokio::test]
    async fn a_slot_tells_for_how_long_its_client_is_waited_for_and_when_to_close() {
        let slots = slots(1, 1);
        let slot = slots.take(at("192.0.2.1"), false).unwrap();
        assert_eq!(slot.waits_for(), None);
        let waits = [slot.wait(), slot.wait()];
        assert!(slot.waits_for().is_some());
        drop(waits);
        assert_eq!(slot.waits_for(), None);
        slot.close();
        slot.closed().await;
        drop(slot);
        tokio::time::timeout(Duration::from_secs(5), slots.empty()).await.expect("all slots are free");
    }
}
