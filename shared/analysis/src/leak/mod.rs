//! Finds the lines that keep what they allocate, round after round: what a leak looks like in a trace.
//!
//! A line leaks if what it allocated all along the run is still live at the end, and if the program went through
//! rounds meanwhile (training steps, requests). Weights and optimizer state are allocated once; activations of earlier
//! steps are gone; a cache that is full holds as much later as before.
//!
//! The walks over a trace are not inlined into their one caller, for the reason that [`lod`](super::lod) gives.

mod lines;
mod purpose;
mod replaced;
mod rising;
mod rounds;
mod span;
mod step_rise;

pub use purpose::is_cache;
pub use step_rise::StepRise;

use lines::Lines;
use purpose::Purpose;
use replaced::replaced;
use rising::{Rising, rising};
use rounds::count_rounds;
use span::{LeakSpan, PARTS};

use super::best_frames::BestFrames;
use super::roles::Roles;
use replay::Replay;
use trace::DeviceTrace;
use trace::frames::{FrameId, StackId, Symbols};
use trace::order::SortFew;

/// The part of the positions at the start that is ignored, one in this many: weights and optimizer state are allocated
/// there and stay.
const WARMUP_PART: u32 = 4;
/// A rise below one part in this many of the peak is too small to matter, even in a run that is far longer than its trace.
const LEAST_PART_OF_PEAK: u64 = 2_000;
/// A rise below one part in this many of the peak is not what a request fails for.
const DECISIVE_PART_OF_PEAK: u64 = 50;
/// A rise that has levelled off counts from one part in this many of the peak on.
const LEVEL_PART_OF_PEAK: u64 = 10;
/// The most rising lines of which one without nested rounds may be a leak: a forward pass keeps the results of many
/// lines.
const PLAIN_LINES: usize = 2;
/// The most lines whose rounds are counted, and the most that are returned.
const LINES: usize = 16;

/// The input of a search for leaks.
#[derive(Clone, Copy, Debug)]
pub struct LeakSource<'a> {
    /// The trace.
    pub trace: &'a DeviceTrace,
    /// The allocator's states.
    pub replay: &'a Replay,
    /// Strings, frames and stacks.
    pub symbols: &'a Symbols,
    /// Which frame represents each stack.
    pub best_frames: &'a BestFrames,
}

/// How the memory that a line keeps develops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// It rises all along the run.
    Rising,
    /// It rose over a part of the run, and then no more.
    Level,
    /// It is one tensor at a time, which is replaced by a larger one all along the run.
    Replaced,
}

/// A line that keeps what it allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakCandidate {
    /// The frame of the line.
    pub line: FrameId,
    /// The stack of the line's newest allocation that is still live.
    pub stack: StackId,
    /// Bytes, in whole blocks, that it had allocated before the rise counts, and that are still live at the end.
    pub first_bytes: u64,
    /// Bytes, in whole blocks, that it has allocated, and that are still live at the end.
    pub last_bytes: u64,
    /// The number of those allocations; of [`Trend::Replaced`], of all of them.
    pub count: u32,
    /// The position at which the first of them was made.
    pub first_seen: u32,
    /// The position from which the rise counts: a quarter of the run, or where the line began to keep something.
    pub from: u32,
    /// The position at which it was looked at: the end of the run.
    pub until: u32,
    /// The rounds of the program between those positions in which the line kept something.
    pub rounds: u32,
    /// Whether the line's name says that it fills a cache.
    pub is_cache: bool,
    /// Whether a program that doesn't train reads all that the line keeps in each round, as the keys and values of an answer are.
    pub is_read: bool,
    /// How it develops. A leak rises.
    pub trend: Trend,
    /// The largest sum of bytes that had been live for a while, and the position at which that was seen.
    pub most_held: (u64, u32),
}

impl LeakCandidate {
    /// Returns the bytes by which what the line keeps rose after the warm-up.
    pub const fn rise(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }

    /// Returns the line that leaks most in the first `end` positions, if any does, and enough to make a request fail. `peak_bytes`
    /// is the largest sum of requested bytes, which the rise has to be significant against.
    pub fn largest(source: LeakSource<'_>, end: u32, peak_bytes: u64) -> Option<Self> {
        let found = Self::all(source, end, peak_bytes).into_iter().find(Self::is_leak);
        found.filter(|leak| leak.is_decisive(peak_bytes))
    }

    /// Returns whether it rose by enough to make a request fail.
    pub const fn is_decisive(&self, peak_bytes: u64) -> bool {
        self.rise() >= peak_bytes / DECISIVE_PART_OF_PEAK
    }

    /// Returns whether it is a leak: it rises, and not because it fills a cache.
    pub fn is_leak(&self) -> bool {
        !self.is_cache && !self.is_read && self.trend != Trend::Level
    }

    /// Returns the lines that keep what they allocate in the first `end` positions, those that rise most first.
    pub fn all(source: LeakSource<'_>, end: u32, peak_bytes: u64) -> Vec<Self> {
        let end = end.min(source.replay.positions());
        let span = LeakSpan { from: end / WARMUP_PART, until: end };
        // Too few events for a trend.
        if span.length() < PARTS as u32 {
            return Vec::new();
        }
        let mut lines = Lines::new(source);
        let least = (peak_bytes / LEAST_PART_OF_PEAK).max(1);
        let mut rising: Vec<Rising> = (rising(&mut lines, span, least).into_values())
            .filter(|line| line.is_steady(least) || line.is_level(peak_bytes / LEVEL_PART_OF_PEAK))
            .filter(|line| {
                let purpose = Purpose::of(source.symbols, line.newest);
                purpose == Purpose::Unknown || purpose == Purpose::Optimizer && line.is_made_again(&mut lines)
            })
            .collect();
        rising.sort_few_by(|a, b| b.rise().cmp(&a.rise()).then(a.newest.cmp(&b.newest)));
        rising.truncate(LINES);
        let trains = Roles::default().is_training(source.symbols);
        let rounds = if rising.is_empty() { Vec::new() } else { count_rounds(&mut lines, span, &rising, !trains) };
        let is_alone = rising.len() <= PLAIN_LINES;
        let found = rising.iter().zip(rounds).filter(|(line, rounds)| line.comes_in(rounds, is_alone));
        let mut found: Vec<Self> = found.map(|(line, rounds)| line.candidate(&lines, least, rounds)).collect();
        // The keys and values of an answer are put together in the same way.
        let replaced = if trains { replaced(&mut lines, span, least) } else { None };
        found.extend(replaced.filter(|new| found.iter().all(|known| known.line != new.line)));
        found.sort_few_by(|a, b| b.rise().cmp(&a.rise()).then(a.stack.cmp(&b.stack)));
        found
    }
}

#[cfg(test)]
mod tests;
