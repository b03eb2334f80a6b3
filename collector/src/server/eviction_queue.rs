//! Things that wait, grouped by the address of their client: which of them gives way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

use super::peer::Peer;

/// Where a client is, as coarsely as one customer of a network may choose addresses: an IPv4 address, or the first 64 bits
/// of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Neighborhood(IpAddr);

impl From<Peer> for Neighborhood {
    fn from(Peer(ip): Peer) -> Self {
        Self(match ip {
            IpAddr::V4(_) => ip,
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        })
    }
}

/// Things that wait. Every operation takes logarithmic time, so that thousands of clients a second cost little.
#[derive(Debug)]
pub(super) struct EvictionQueue<T> {
    /// In each neighborhood in the order of their numbers, which grow with time.
    members: BTreeMap<(Neighborhood, u64), T>,
    sizes: HashMap<Neighborhood, usize>,
    /// The sizes again, in order.
    by_size: BTreeSet<(usize, Neighborhood)>,
}

impl<T> Default for EvictionQueue<T> {
    fn default() -> Self {
        Self { members: BTreeMap::new(), sizes: HashMap::new(), by_size: BTreeSet::new() }
    }
}

impl<T> EvictionQueue<T> {
    /// Returns the number of members.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Adds a member under a number that no other has.
    pub(super) fn add(&mut self, neighborhood: Neighborhood, number: u64, member: T) {
        self.members.insert((neighborhood, number), member);
        self.resize(neighborhood, |size| size + 1);
    }

    /// Removes a member. Returns `None` if it was removed before.
    pub(super) fn remove(&mut self, neighborhood: Neighborhood, number: u64) -> Option<T> {
        let member = self.members.remove(&(neighborhood, number))?;
        self.resize(neighborhood, |size| size.saturating_sub(1));
        Some(member)
    }

    /// Removes the member that came first, of the neighborhood that has most.
    pub(super) fn remove_first_of_largest(&mut self) -> Option<T> {
        let (_, largest) = *self.by_size.last()?;
        let (&(_, number), _) = self.members.range((largest, 0)..).next()?;
        self.remove(largest, number)
    }

    fn resize(&mut self, neighborhood: Neighborhood, change: impl Fn(usize) -> usize) {
        let old = self.sizes.remove(&neighborhood).unwrap_or(0);
        self.by_size.remove(&(old, neighborhood));
        let new = change(old);
        if new > 0 {
            self.sizes.insert(neighborhood, new);
            self.by_size.insert((new, neighborhood));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Neighborhood {
        Neighborhood::from(Peer(address.parse().unwrap()))
    }

    #[test]
    fn the_first_of_the_largest_neighborhood_gives_way() {
        let mut queue = EvictionQueue::default();
        let came =
            [("10.0.0.1", 1), ("10.0.0.2", 2), ("10.0.0.2", 3), ("10.0.0.3", 4), ("10.0.0.2", 5), ("10.0.0.1", 6)];
        for (address, number) in came {
            queue.add(at(address), number, number);
        }
        assert_eq!((queue.remove(at("10.0.0.2"), 3), queue.remove(at("10.0.0.2"), 3)), (Some(3), None));
        assert_eq!(queue.remove(at("10.0.0.9"), 1), None);
        // Of two that are equal, the higher address.
        let gone: Vec<u64> = std::iter::from_fn(|| queue.remove_first_of_largest()).collect();
        assert_eq!((gone, queue.len(), queue.sizes.len()), (vec![2, 1, 4, 5, 6], 0, 0));
    }

    #[test]
    fn a_customer_of_a_network_is_one_neighborhood() {
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:0:0:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            assert_eq!(at(one) == at(other), is_same, "{one} {other}");
        }
    }
}
