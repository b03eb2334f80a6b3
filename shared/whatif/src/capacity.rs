//! The smallest device on which a run fits.

use super::requests::Requests;
use super::terms::{AMPLE, Terms};
use allocator::DriverError;

/// The step between capacities that are tried: 2 MiB, the unit in which drivers give out memory.
pub const GRANULE: u64 = 2 << 20;

impl Requests {
    /// Returns the least memory in bytes that the process must be able to have, in whole granules of 2 MiB, so that no
    /// request fails; with one granule less, one does, or what was reserved before the first event doesn't fit. Now and then
    /// a little less is enough again, since a device of another
    /// size cuts segments differently; the result is never more than `terms` give the process if no request fails on them. What
    /// others hold comes on top of it. A run that stops because a request
    /// is served that failed in the recording counts up to there.
    ///
    /// A fraction is ignored: it limits the share of a device, and the question is how large the device must be.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn smallest_capacity(&self, terms: &Terms) -> Result<u64, DriverError> {
        let mut search = CapacitySearch::new(terms);
        loop {
            if let Some(found) = search.step(self)? {
                return Ok(found);
            }
        }
    }
}

/// The search that [`Requests::smallest_capacity`] makes, one run at a time.
#[derive(Debug)]
pub struct CapacitySearch {
    terms: Terms,
    /// In granules: fewer can't be enough.
    least: u64,
    /// In granules: not enough.
    short: u64,
    /// In granules: enough, or to be tried as such.
    enough: u64,
    /// In granules: what the process can have by the terms, until it was tried.
    own: Option<u64>,
    stage: Stage,
}

/// The stage of a search.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// It runs where nothing is short.
    Ample,
    /// It tries larger and larger capacities until one is enough.
    Growing,
    /// It halves the distance between one that is enough and one that is not.
    Halving,
}

impl CapacitySearch {
    /// Begins a search.
    pub fn new(terms: &Terms) -> Self {
        let own = Some(terms.room() / GRANULE);
        let terms = Terms { held_by_others: 0, fraction: None, ..terms.clone() };
        Self { terms, least: 0, short: 0, enough: 0, own, stage: Stage::Ample }
    }

    /// Makes the next run, if one is needed. Returns the capacity in bytes once it is known.
    ///
    /// # Errors
    /// As [`Requests::run`].
    pub fn step(&mut self, requests: &Requests) -> Result<Option<u64>, DriverError> {
        let fits = |terms: &Terms, granules: u64| -> Result<bool, DriverError> {
            Ok(!requests.run(&terms.on(granules.saturating_mul(GRANULE)))?.fails())
        };
        match self.stage {
            Stage::Ample => {
                // What it reserves where nothing is short is nearly always enough; a small device also gives short ranges of
                // addresses to expandable segments.
                self.enough = requests.run(&self.terms.on(AMPLE))?.peak_reserved.div_ceil(GRANULE);
                // Less than what was live at one moment is too little, and so is less than what it began with.
                self.least = requests.needed_at_start().max(requests.bounds().exact_fit).div_ceil(GRANULE);
                self.stage = Stage::Growing;
            }
            Stage::Growing if self.enough < AMPLE / GRANULE && !fits(&self.terms, self.enough)? => {
                self.enough += self.enough / 8 + 1;
            }
            Stage::Growing => {
                self.short = self.least.saturating_sub(1).min(self.enough.saturating_sub(1));
                self.stage = Stage::Halving;
            }
            Stage::Halving if self.enough - self.short > 1 => {
                let middle = self.short + (self.enough - self.short) / 2;
                match fits(&self.terms, middle)? {
                    true => self.enough = middle,
                    false => self.short = middle,
                }
            }
            // More memory is not always better: the run that a person sees may do with less than what was found.
            Stage::Halving if self.own.is_some_and(|own| own < self.enough && own >= self.least) => {
                if let Some(own) = self.own.take()
                    && fits(&self.terms, own)?
                {
                    self.enough = own;
                    self.short = self.least.saturating_sub(1).min(own.saturating_sub(1));
                }
            }
            Stage::Halving => return Ok(Some(self.enough.max(self.least).saturating_mul(GRANULE))),
        }
        Ok(None)
    }
}
