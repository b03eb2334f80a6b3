//! Whether a run fits a device, in one line: what `whatif` and `tune` begin with.

use std::fmt;

use query::whatif::{Card, Outcome, Why};
use trace::units::{Bytes, Count, distinguished};

use super::whatif::named;

/// A run under some settings, on a device or on any.
pub(super) struct Fit<'a> {
    pub(super) conf: &'a str,
    pub(super) outcome: &'a Outcome,
    /// The bytes that the process needs to be served: the smallest device, or else what it reserves.
    pub(super) needs: u64,
    /// The bytes that it can have; `None` if nothing limits it.
    pub(super) room: Option<u64>,
}

impl fmt::Display for Fit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { conf, outcome, needs, room } = self;
        let conf = named(conf);
        let Some(room) = room else {
            write!(f, "NEEDS {} under {conf}", Bytes(*needs))?;
            return match Card::smallest_for(*needs) {
                Some(card) => write!(f, ": the smallest card with that much is {}", card.name),
                None => write!(f, ": no card in the list has that much"),
            };
        };
        if outcome.fails() {
            let (needs, has) = distinguished(Bytes(*needs), Bytes(*room));
            return match self.needs > *room {
                true => write!(f, "DOES NOT FIT under {conf}: needs {needs}, but only {has} is available"),
                // The driver refused something else.
                false => write!(f, "DOES NOT FIT under {conf}: a request fails, though the process can have {has}"),
            };
        }
        let (needs, has, spare) = (Bytes(*needs), Bytes(*room), Bytes(room.saturating_sub(*needs)));
        // What the program would have done after a request that was served for once is not known.
        match outcome.stopped_at.filter(|_| outcome.stopped_why == Some(Why::Served)) {
            Some(event) => {
                let event = Count(u64::from(event) + 1);
                write!(
                    f,
                    "PASSES event {event}, where the recording failed, under {conf}: needs {needs} of {has} up to there"
                )
            }
            None => write!(f, "FITS under {conf}: needs {needs} of {has}, {spare} to spare"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_run_fits_or_does_not_and_the_headroom_is_said() {
        let fits = Outcome::default();
        let served = Outcome { stopped_why: Some(Why::Served), stopped_at: Some(7), ..fits };
        let fails = Outcome { ooms: 1, ..fits };
        for (outcome, needs, room, want) in [
            (
                &fits,
                6 * GIB,
                Some(8 * GIB),
                "FITS under default settings: needs 6.00 GiB of 8.00 GiB, 2.00 GiB to spare",
            ),
            (
                &served,
                8 * GIB,
                Some(8 * GIB),
                "PASSES event 8, where the recording failed, under default settings: needs 8.00 GiB of 8.00 GiB up to there",
            ),
            (
                &fails,
                9 * GIB,
                Some(8 * GIB),
                "DOES NOT FIT under default settings: needs 9.00 GiB, but only 8.00 GiB is available",
            ),
            (
                &fails,
                7 * GIB,
                Some(8 * GIB),
                "DOES NOT FIT under default settings: a request fails, though the process can have 8.00 GiB",
            ),
            (
                &fits,
                30 * GIB,
                None,
                "NEEDS 30.0 GiB under default settings: the smallest card with that much is RTX5090-32GB",
            ),
            (&fits, 1 << 40, None, "NEEDS 1.00 TiB under default settings: no card in the list has that much"),
        ] {
            assert_eq!(Fit { conf: "", outcome, needs, room }.to_string(), want);
        }
    }
}
