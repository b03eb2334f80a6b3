//! A rate for each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::allowance::{Allowance, Rate};
use super::guesses::network;

/// Limits how often an address may do something. The addresses that are remembered are bounded: beyond that, the one that was
/// seen the longest ago is forgotten.
#[derive(Debug)]
pub struct Rates {
    rate: Rate,
    addresses: usize,
    visitors: Mutex<HashMap<IpAddr, (Allowance, Instant)>>,
}

impl Rates {
    /// Creates a rate of `burst` at once and `per_second` more each second, for as many `addresses`.
    pub fn new(burst: usize, per_second: f64, addresses: usize) -> Self {
        let rate = Rate { burst: burst as f64, per_second };
        Self { rate, addresses, visitors: Mutex::default() }
    }

    /// Uses one of what an address has left, or returns the time until there is one.
    pub fn take(&self, peer: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut visitors = self.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        let network = network(peer);
        if visitors.len() >= self.addresses && !visitors.contains_key(&network) {
            let oldest = visitors.iter().min_by_key(|(_, (_, seen))| *seen).map(|(address, _)| *address);
            oldest.and_then(|address| visitors.remove(&address));
        }
        let (allowance, seen) = visitors.entry(network).or_insert_with(|| (Allowance::default(), now));
        *seen = now;
        allowance.take(self.rate, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_rate_of_its_own_and_few_are_remembered() {
        let rates = Rates::new(2, 1.0, 2);
        let start = Instant::now();
        let take = |address: &str, seconds| {
            let now = start + Duration::from_secs(seconds);
            rates.take(address.parse().unwrap(), now).is_ok()
        };
        assert!(take("192.0.2.1", 0) && take("192.0.2.1", 0) && !take("192.0.2.1", 0));
        assert!(take("192.0.2.2", 1) && take("192.0.2.1", 1) && !take("192.0.2.1", 1));
        // A third address takes the place of the one that was not seen for longest.
        assert!(take("192.0.2.3", 2) && rates.visitors.lock().unwrap().len() == 2);
        assert!(take("192.0.2.2", 2));
    }
}
