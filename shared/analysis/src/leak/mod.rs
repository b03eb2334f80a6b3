//! Finds the lines that keep what they allocate, round after round: what a leak looks like in a trace.
//!
//! A line leaks if what it allocated all along the run is still live at the end, and if the program went through
//! rounds meanwhile (training steps, requests). Weights and optimizer state are allocated once; activations of earlier
//! steps are gone; a cache that is full holds as much later as before.

mod lines;
mod purpose;
mod rising;
mod rounds;
mod span;
mod step_rise;

pub use purpose::is_cache;
pub use step_rise::StepRise;

use lines::Lines;
use purpose::keeps_on_purpose;
use rising::{Rising, rising};
use rounds::count_rounds;
use span::{LeakSpan, PARTS};

use super::best_frames::BestFrames;
use replay::Replay;
use trace::DeviceTrace;
use trace::frames::{FrameId, StackId, Symbols};
use trace::order::SortFew;

/// The part of the positions at the start that is ignored, one in this many: weights and optimizer state are allocated
/// there and stay.
const WARMUP_PART: u32 = 4;
/// A rise below one part in this many of the peak is too small to matter.
const LEAST_PART_OF_PEAK: u64 = 50;
/// A rise that has levelled off counts from this many times the least rise on.
const LEVEL_TIMES: u64 = 5;
/// The most rising lines of which one without nested rounds may be a leak: a forward pass keeps the results of many
/// lines.
const PLAIN_LINES: usize = 2;
/// The most lines whose rounds are counted, and the most that are returned.
const LINES: usize = 8;

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
}

/// A line that keeps what it allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakCandidate {
    /// The frame of the line.
    pub line: FrameId,
    /// The stack of the line's newest allocation that is still live.
    pub stack: StackId,
    /// Requested bytes that it had allocated after a quarter of the run, and that are still live at the end.
    pub first_bytes: u64,
    /// Requested bytes that it has allocated, and that are still live at the end.
    pub last_bytes: u64,
    /// The number of those allocations.
    pub count: u32,
    /// The position at which the first of them was made.
    pub first_seen: u32,
    /// The position from which the rise counts: a quarter of the run.
    pub from: u32,
    /// The position at which it was looked at: the end of the run.
    pub until: u32,
    /// The rounds of the program between those positions in which the line kept something.
    pub rounds: u32,
    /// Whether the line's name says that it fills a cache.
    pub is_cache: bool,
    /// How it develops. A leak rises.
    pub trend: Trend,
    /// The largest sum of requested bytes that had been live for a while, and the position at which that was seen.
    pub most_held: (u64, u32),
}

impl LeakCandidate {
    /// Returns the bytes by which what the line keeps rose after the warm-up.
    pub const fn rise(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }

    /// Returns the bytes that are kept for each 1,000 events.
    pub fn rise_per_thousand_events(&self) -> u64 {
        let events = u128::from(self.until.saturating_sub(self.from).max(1));
        u64::try_from(u128::from(self.rise()) * 1_000 / events).unwrap_or(u64::MAX)
    }

    /// Returns the line that leaks most in the first `end` positions, if any does. `peak_bytes` is the largest sum of
    /// requested bytes, which the rise has to be significant against.
    pub fn largest(source: LeakSource<'_>, end: u32, peak_bytes: u64) -> Option<Self> {
        Self::all(source, end, peak_bytes).into_iter().find(Self::is_leak)
    }

    /// Returns whether it is a leak: it rises, and not because it fills a cache.
    pub fn is_leak(&self) -> bool {
        !self.is_cache && self.trend == Trend::Rising
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
            .filter(|line| line.is_steady(span, least) || line.is_level(least.saturating_mul(LEVEL_TIMES)))
            .filter(|line| !keeps_on_purpose(source.symbols, line.newest))
            .collect();
        rising.sort_few_by(|a, b| b.rise().cmp(&a.rise()).then(a.newest.cmp(&b.newest)));
        rising.truncate(LINES);
        let rounds = if rising.is_empty() { Vec::new() } else { count_rounds(&mut lines, span, &rising) };
        let is_alone = rising.len() <= PLAIN_LINES;
        let found =
            rising.iter().zip(rounds).filter(|(line, rounds)| rounds.is_nested() || is_alone && line.is_plain(rounds));
        found.map(|(line, rounds)| line.candidate(source, span, least, rounds)).collect()
    }
}

#[cfg(test)]
mod tests;
