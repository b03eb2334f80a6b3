//! Limits how fast tokens can be guessed.
//!
//! Each address has an allowance of wrong tokens, which is regained slowly. When it is used up, further tokens from there are
//! denied without being compared, until one more is regained.
//!
//! Many honest clients can share an address (a gateway, or the machine itself), and somebody among them may guess, or may
//! have been configured with a wrong token. So two kinds of tokens cost nothing:
//! - one that was right at this address before: it is compared even if the allowance is used up, so that running jobs and
//!   open pages continue;
//! - one that was wrong at this address before: it is denied from memory, so that a job that tries the same wrong token
//!   again and again uses up the allowance of nobody.
//!
//! The first success of a token at an address restores the allowance. Later ones do not: who has one token could otherwise
//! guess another one at any rate.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use trace::limits::AccessLimits;

use super::Secret;
use super::allowance::{Allowance, Rate};

/// The bits of an IPv6 address that a provider gives to one customer.
const NETWORK_BITS: u32 = 64;

/// Why a token is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is not a token.
    Token,
    /// It was not compared; the next one will be after this time.
    Slowed(Duration),
}

/// The guesses of all addresses.
#[derive(Debug, Default)]
pub(super) struct Guesses(HashMap<IpAddr, Visitor>);

/// The guesses of one address.
#[derive(Debug)]
struct Visitor {
    allowance: Allowance,
    last: Instant,
    right: VecDeque<Secret>,
    wrong: VecDeque<Secret>,
}

impl Guesses {
    /// Looks up a token that an address shows with `find`, unless too many wrong ones came from there.
    pub(super) fn check<T>(
        &mut self,
        (peer, secret): (IpAddr, &Secret),
        limits: &AccessLimits,
        now: Instant,
        find: impl FnOnce() -> Option<T>,
    ) -> Result<T, Wrong> {
        let (guesses, per_second) = if peer.to_canonical().is_loopback() {
            (limits.local_guesses, limits.local_guesses_per_second)
        } else {
            (limits.guesses, limits.guesses_per_second)
        };
        let rate = Rate { burst: guesses as f64, per_second };
        let visitor = self.visitor(network(peer), limits, now);
        if position(&visitor.wrong, secret).is_some() {
            return Err(Wrong::Token);
        }
        let was_right = position(&visitor.right, secret);
        if was_right.is_none() {
            visitor.allowance.take(rate, now).map_err(Wrong::Slowed)?;
        }
        match find() {
            Some(found) => {
                if was_right.is_none() {
                    visitor.allowance = Allowance::default();
                    remember(&mut visitor.right, secret, limits.remembered_tokens);
                }
                Ok(found)
            }
            None => {
                if let Some(at) = was_right {
                    visitor.right.remove(at);
                }
                remember(&mut visitor.wrong, secret, limits.remembered_tokens);
                Err(Wrong::Token)
            }
        }
    }

    /// Forgets which tokens were wrong: they may be right from now on.
    pub(super) fn forget_wrong(&mut self) {
        for visitor in self.0.values_mut() {
            visitor.wrong.clear();
        }
    }

    fn visitor(&mut self, address: IpAddr, limits: &AccessLimits, now: Instant) -> &mut Visitor {
        if self.0.len() >= limits.addresses && !self.0.contains_key(&address) {
            let oldest = self.0.iter().min_by_key(|(_, visitor)| visitor.last).map(|(address, _)| *address);
            self.0.remove(&oldest.unwrap_or(address));
        }
        let new =
            || Visitor { allowance: Allowance::default(), last: now, right: VecDeque::new(), wrong: VecDeque::new() };
        let visitor = self.0.entry(address).or_insert_with(new);
        visitor.last = now;
        visitor
    }
}

fn position(secrets: &VecDeque<Secret>, secret: &Secret) -> Option<usize> {
    secrets.iter().position(|known| known.is_same(secret))
}

/// Adds a secret, in place of the oldest if there are enough.
fn remember(secrets: &mut VecDeque<Secret>, secret: &Secret, most: usize) {
    if secrets.len() >= most {
        secrets.pop_front();
    }
    secrets.push_back(secret.clone());
}

/// Returns the part of an address that a client can't change at will.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> NETWORK_BITS << NETWORK_BITS).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "good";

    fn limits() -> AccessLimits {
        AccessLimits {
            guesses: 3,
            guesses_per_second: 1.0,
            local_guesses: 6,
            local_guesses_per_second: 2.0,
            addresses: 3,
            ..AccessLimits::default()
        }
    }

    struct Clients {
        guesses: Guesses,
        start: Instant,
    }

    impl Clients {
        fn new() -> Self {
            Self { guesses: Guesses::default(), start: Instant::now() }
        }

        /// Shows a token: `+` if it was right, `-` if wrong, `~` if it was not compared.
        fn show(&mut self, address: &str, token: &str, millis: u64) -> char {
            let now = self.start + Duration::from_millis(millis);
            let shown = (address.parse().unwrap(), &Secret::of(token));
            match self.guesses.check(shown, &limits(), now, || (token == GOOD).then_some(())) {
                Ok(()) => '+',
                Err(Wrong::Token) => '-',
                Err(Wrong::Slowed(_)) => '~',
            }
        }

        fn guess(&mut self, address: &str, count: u64, millis: u64) -> String {
            (0..count).map(|n| self.show(address, &format!("guess {millis} {n}"), millis)).collect()
        }
    }

    #[test]
    fn guesses_are_few_at_once_and_slow_after_that() {
        let mut clients = Clients::new();
        assert_eq!(clients.guess("192.0.2.1", 5, 0), "---~~");
        assert_eq!(clients.guess("192.0.2.1", 3, 2_000), "--~");
        // A new honest client of the address waits, too.
        assert_eq!(clients.show("192.0.2.1", GOOD, 2_000), '~');
        assert_eq!(clients.show("192.0.2.1", GOOD, 3_000), '+');
        // One of another address does not.
        assert_eq!(clients.show("192.0.2.2", GOOD, 0), '+');
        // This machine may fail more often.
        assert_eq!(clients.guess("127.0.0.1", 8, 0), "------~~");
    }

    #[test]
    fn who_was_right_before_is_let_in_and_can_not_guess_faster() {
        let mut clients = Clients::new();
        assert_eq!(clients.show("192.0.2.1", GOOD, 0), '+');
        assert_eq!(clients.guess("192.0.2.1", 4, 0), "---~");
        assert_eq!(clients.show("192.0.2.1", GOOD, 0), '+');
        assert_eq!(clients.guess("192.0.2.1", 1, 1), "~");
        // It was revoked.
        let secret = Secret::of(GOOD);
        let (shown, now) = (("192.0.2.1".parse().unwrap(), &secret), clients.start);
        for _ in 0..2 {
            assert_eq!(clients.guesses.check(shown, &limits(), now, || None::<()>), Err(Wrong::Token));
        }
        clients.guesses.forget_wrong();
        assert_eq!(clients.show("192.0.2.1", GOOD, 1), '~');
    }

    #[test]
    fn the_same_wrong_token_costs_nothing_the_second_time() {
        let mut clients = Clients::new();
        for _ in 0..1_000 {
            assert_eq!(clients.show("127.0.0.1", "of last month", 0), '-');
        }
        assert_eq!(clients.show("127.0.0.1", GOOD, 0), '+');
    }

    #[test]
    fn one_customer_of_ipv6_is_one_address_and_the_table_is_bounded() {
        let mut clients = Clients::new();
        let shown: String = (0..4).map(|n| clients.show(&format!("2001:db8::{n}"), &format!("{n}"), 0)).collect();
        assert_eq!(shown, "---~");
        assert_eq!(clients.guess("::ffff:192.0.2.1", 3, 1), "---");
        assert_eq!(clients.guess("192.0.2.1", 1, 2), "~");
        for n in 0..10 {
            clients.show(&format!("198.51.100.{n}"), "x", 10 + n);
        }
        assert_eq!(clients.guesses.0.len(), 3);
    }
}
