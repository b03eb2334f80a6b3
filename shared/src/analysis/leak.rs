//! Finds the lines that keep what they allocate, round after round: what a leak looks like in a trace.
//!
//! A line leaks if what it allocated all along the run is still live at the end, and if the program went through
//! rounds meanwhile (training steps, requests). Weights and optimizer state are allocated once; activations of earlier
//! steps are gone; a cache that is full holds as much later as before.

use std::fmt;

use rustc_hash::FxHashMap;

use super::folding::{BestFrames, is_python};
use super::site::frame_label;
use super::steps::{StepSource, Steps};
use crate::event::Action;
use crate::frames::{FrameId, StackId, Symbols};
use crate::replay::{Allocation, Replay};
use crate::trace::DeviceTrace;
use crate::units::{Bytes, Count};

/// The part of the positions at the start that is ignored, one in this many: weights and optimizer state are allocated
/// there and stay.
const WARMUP_PART: u32 = 4;
/// A rise below one part in this many of the peak is too small to matter.
const LEAST_PART_OF_PEAK: u64 = 50;
/// The positions behind the warm-up are divided into this many parts. What is live for less than one does not count as
/// held, so that a step's own rise and fall doesn't look like a trend.
const PARTS: usize = 16;
/// The longest stretch behind the warm-up in which the line may keep nothing, as one part in this many. A cache that is
/// full keeps nothing more; what a cache replaces all along is of its last stretch.
const LONGEST_PAUSE: u32 = 3;
/// Each quarter of the run has to add at least one part in this many of the rise.
const LEAST_PART_OF_RISE: u64 = 16;
/// What has risen and is level then counts from this many times the least rise on.
const LEVEL_TIMES: u64 = 5;
/// The parts over which it has to rise, and over which it has to be level.
const LEVEL_PARTS: usize = 4;
/// The rounds that are enough where each round comes back to the same code several times, as a step does to its layers.
const NESTED_ROUNDS: u32 = 4;
/// How often a round has to come back to one stack. Within a layer, few lines run that often.
const NESTED_VISITS: u32 = 4;
/// The rounds that are enough otherwise. One forward pass that keeps something of each layer looks the same, and few
/// models have more layers.
const PLAIN_ROUNDS: u32 = 24;
/// The most lines that may rise together then: a forward pass keeps the results of many lines.
const PLAIN_LINES: usize = 2;
/// The most lines whose rounds are counted, and the most that are returned.
const LINES: usize = 8;

/// Parts of file names whose frames tell that an allocation stays on purpose.
const KEEPING_FILES: [&str; 2] = ["torch/optim/", "torch/utils/checkpoint.py"];
/// Functions that load a model or create state, which stays on purpose.
const LOADING_FUNCTIONS: [&str; 6] =
    ["_apply", "load_state_dict", "from_pretrained", "reset_parameters", "_init_group", "initialize_parameters"];
/// Parts of the text of a line that tells that it fills a cache.
const CACHE_WORDS: [&str; 4] = ["cache", "kv_", "past_key", "memoize"];

/// What leaks are looked for in.
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

/// How what a line keeps goes on.
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
    /// How it goes on. A leak rises.
    pub trend: Trend,
    /// The largest sum of requested bytes that had been live for a while, and the position at which that was seen.
    pub most_held: (u64, u32),
}

/// What a line kept step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRise {
    /// The number of the first step.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// How many whole steps that are.
    pub steps: u32,
    /// Requested bytes that the line allocated in these steps and kept.
    pub bytes: u64,
    /// Whether it kept the same in each of them.
    pub is_even: bool,
}

impl StepRise {
    /// Returns the bytes that it kept in each step; the average if they differ.
    pub const fn per_step(&self) -> u64 {
        let steps = if self.steps == 0 { 1 } else { self.steps as u64 };
        self.bytes.saturating_add(steps / 2) / steps
    }
}

impl fmt::Display for StepRise {
    /// Writes `1.00 MiB more every step, over steps 3 to 40`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_even { "every step" } else { "a step on average" };
        let (first, last) = (Count(self.first), Count(self.last));
        write!(f, "{} more {how}, over steps {first} to {last}", Bytes(self.per_step()))
    }
}

impl LeakCandidate {
    /// Returns the bytes by which what the line keeps rose behind the warm-up.
    pub const fn rise(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }

    /// Returns the bytes that are kept for each 1,000 events.
    pub fn rise_per_thousand_events(&self) -> u64 {
        let events = u128::from(self.until.saturating_sub(self.from).max(1));
        u64::try_from(u128::from(self.rise()) * 1_000 / events).unwrap_or(u64::MAX)
    }

    /// Returns what the line kept step by step; `None` if the trace has fewer than two whole steps since it began.
    pub fn by_step(&self, source: LeakSource<'_>, steps: &Steps) -> Option<StepRise> {
        let Self { first_seen, until, line, .. } = *self;
        // The step in which a request failed is not complete.
        let last = until.checked_sub(1).and_then(|event| source.trace.events.action.get(event as usize));
        let slots = steps.slots(if last == Some(Action::Oom as u8) { until.saturating_sub(1) } else { until });
        let slots = slots.get(slots.partition_point(|slot| slot.to < first_seen)..)?;
        let (first, last) = (slots.first()?, slots.last()?);
        let mut kept = vec![0_u64; slots.len()];
        let allocations = &source.replay.allocations;
        let mut lines = Lines { source, of_stack: Vec::new() };
        let made = allocations.made_by(first.from)..allocations.made_by(last.to);
        let (freed, ends) = (&mut allocations.freed.reader(), &mut allocations.end.reader());
        for number in made {
            let gone = freed.get(number as usize).unwrap_or(0).min(ends.get(number as usize).unwrap_or(0));
            let Some(allocation) = allocations.get(number).filter(|_| gone > until) else { continue };
            let is_own = lines.of(allocation.stack) == Some(line) && !source.replay.pool(&allocation).is_private();
            let slot = slots.partition_point(|slot| slot.to < allocation.begin);
            if let Some(sum) = kept.get_mut(slot).filter(|_| is_own) {
                *sum = sum.saturating_add(allocation.requested);
            }
        }
        let busy = kept.iter().filter(|bytes| **bytes > 0).count();
        // What repeats in a trace may be less than a step, such as a layer.
        if steps.source == StepSource::Pattern && busy * 2 < slots.len() {
            return None;
        }
        let bytes = kept.iter().fold(0_u64, |sum, kept| sum.saturating_add(*kept));
        let is_even = kept.iter().all(|of| Some(of) == kept.first());
        let rise = StepRise { first: first.number, last: last.number, steps: slots.len() as u32, bytes, is_even };
        (rise.steps >= 2 && bytes > 0).then_some(rise)
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
        let span = Span { from: end / WARMUP_PART, until: end };
        // A run has some steps of some events.
        if span.length() < PARTS as u32 {
            return Vec::new();
        }
        let mut lines = Lines { source, of_stack: Vec::new() };
        let least = (peak_bytes / LEAST_PART_OF_PEAK).max(1);
        let mut rising: Vec<Rising> = (rising(&mut lines, span, least).into_values())
            .filter(|line| line.is_steady(span, least) || line.is_level(least.saturating_mul(LEVEL_TIMES)))
            .filter(|line| !keeps_on_purpose(source.symbols, line.newest))
            .collect();
        rising.sort_by(|a, b| b.rise().cmp(&a.rise()).then(a.newest.cmp(&b.newest)));
        rising.truncate(LINES);
        let rounds = if rising.is_empty() { Vec::new() } else { count_rounds(&mut lines, span, &rising) };
        let is_alone = rising.len() <= PLAIN_LINES;
        let found =
            rising.iter().zip(rounds).filter(|(line, rounds)| rounds.is_nested() || is_alone && line.is_plain(rounds));
        found.map(|(line, rounds)| line.candidate(source, span, least, rounds)).collect()
    }
}

/// The positions that count: from the end of the warm-up to the end.
#[derive(Clone, Copy)]
struct Span {
    from: u32,
    until: u32,
}

impl Span {
    const fn length(self) -> u32 {
        self.until - self.from
    }

    /// Returns how long an allocation has to live to count as held.
    const fn held(self) -> u32 {
        self.length() / PARTS as u32
    }

    /// Returns the position at which part `i` ends.
    fn at(self, i: usize) -> u32 {
        self.from + (u64::from(self.length()) * i as u64 / PARTS as u64) as u32
    }
}

/// The line of Python that represents each stack, found when it is first asked for. Functions of C++ stand for
/// many lines of a program.
struct Lines<'a> {
    source: LeakSource<'a>,
    of_stack: Vec<Option<Option<FrameId>>>,
}

impl Lines<'_> {
    fn of(&mut self, stack: StackId) -> Option<FrameId> {
        let LeakSource { symbols, best_frames, .. } = self.source;
        let i = stack.0 as usize;
        if self.of_stack.len() <= i {
            self.of_stack.resize(i + 1, None);
        }
        let known = self.of_stack.get_mut(i)?;
        *known.get_or_insert_with(|| {
            let frame = best_frames.frame(symbols.stack(stack))?;
            is_python(&symbols.text(symbols.frame(frame).filename)).then_some(frame)
        })
    }
}

/// What a line that may leak holds along the run.
struct Rising {
    line: FrameId,
    newest: StackId,
    /// At the end of each part of the span: requested bytes that had been live for a part by then.
    held: [u64; PARTS + 1],
    first_bytes: u64,
    last_bytes: u64,
    count: u32,
    first_seen: u32,
    /// The last position behind the warm-up at which something was kept, and the longest stretch without that.
    last_kept: u32,
    longest_pause: u32,
    /// The smallest and largest size that was kept behind the warm-up.
    sizes: (u64, u64),
}

/// Returns the lines that hold enough for long enough to matter. Those are few: all that is held for a part of the run
/// is at most `PARTS` peaks.
fn rising(lines: &mut Lines<'_>, span: Span, least: u64) -> FxHashMap<FrameId, Rising> {
    let mut long: FxHashMap<FrameId, u64> = FxHashMap::default();
    each_held(lines, span, |line, allocation, _| {
        let sum = long.entry(line).or_default();
        *sum = sum.saturating_add(allocation.requested);
    });
    long.retain(|_, bytes| *bytes >= least);
    let mut rising: FxHashMap<FrameId, Rising> = FxHashMap::default();
    each_held(lines, span, |line, allocation, gone| {
        if long.contains_key(&line) {
            rising.entry(line).or_insert_with(|| Rising::new(line, span)).add(allocation, gone, span);
        }
    });
    rising
}

/// Visits the allocations of the default pool that are held for a part of the span or are live at its end, each with
/// its line and the position at which it was freed. A private pool's memory stays for as long as its graph does.
fn each_held(lines: &mut Lines<'_>, span: Span, mut visit: impl FnMut(FrameId, &Allocation, u32)) {
    let replay = lines.source.replay;
    let allocations = &replay.allocations;
    let (freed, ends) = (&mut allocations.freed.reader(), &mut allocations.end.reader());
    for (number, begin) in (0_usize..).zip(allocations.begin.iter()).take_while(|(_, begin)| *begin <= span.until) {
        let gone = freed.get(number).unwrap_or(0).min(ends.get(number).unwrap_or(0));
        let is_kept = gone > span.until;
        if !is_kept && (gone <= span.from || gone - begin.min(gone) < span.held()) {
            continue;
        }
        let Some(allocation) = allocations.get(number as u32) else { continue };
        if !replay.pool(&allocation).is_private()
            && let Some(line) = lines.of(allocation.stack)
        {
            visit(line, &allocation, gone);
        }
    }
}

impl Rising {
    const fn new(line: FrameId, span: Span) -> Self {
        Self {
            line,
            newest: StackId(0),
            held: [0; PARTS + 1],
            first_bytes: 0,
            last_bytes: 0,
            count: 0,
            first_seen: u32::MAX,
            last_kept: span.from,
            longest_pause: 0,
            sizes: (u64::MAX, 0),
        }
    }

    fn add(&mut self, allocation: &Allocation, gone: u32, span: Span) {
        let Allocation { begin, requested, stack, .. } = *allocation;
        for (i, held) in self.held.iter_mut().enumerate() {
            let at = span.at(i);
            if begin.saturating_add(span.held()) <= at && at < gone {
                *held = held.saturating_add(requested);
            }
        }
        if gone <= span.until {
            return;
        }
        self.count += 1;
        self.newest = stack;
        self.first_seen = self.first_seen.min(begin);
        self.last_bytes = self.last_bytes.saturating_add(requested);
        if begin <= span.from {
            self.first_bytes = self.first_bytes.saturating_add(requested);
        } else {
            self.longest_pause = self.longest_pause.max(begin - self.last_kept);
            self.last_kept = begin;
            self.sizes = (self.sizes.0.min(requested), self.sizes.1.max(requested));
        }
    }

    const fn rise(&self) -> u64 {
        self.last_bytes.saturating_sub(self.first_bytes)
    }

    /// Returns whether what is held rises all along the span, and what is kept was made all along the span.
    fn is_steady(&self, span: Span, least: u64) -> bool {
        let rise = self.rise();
        let pause = self.longest_pause.max(span.until - self.last_kept);
        let quarters = self.held.iter().step_by(PARTS / 4);
        let rises = |(before, after): (&u64, &u64)| after.saturating_sub(*before) > rise / LEAST_PART_OF_RISE;
        rise >= least && pause <= span.length() / LONGEST_PAUSE && quarters.clone().zip(quarters.skip(1)).all(rises)
    }

    /// Returns whether what is held rose over several parts of the span and is level, or less, from then on.
    fn is_level(&self, least: u64) -> bool {
        let (most, at) = self.most();
        let rising = self.held.iter().zip(self.held.iter().skip(1)).filter(|(before, after)| after > before).count();
        let end = self.held.last().copied().unwrap_or(0);
        most.saturating_sub(self.held.first().copied().unwrap_or(0)) >= least
            && rising >= LEVEL_PARTS
            && at <= PARTS - LEVEL_PARTS
            && end <= most
    }

    /// Returns the most that is held, and in which part that is reached.
    fn most(&self) -> (u64, usize) {
        let most = self.held.iter().copied().max().unwrap_or(0);
        (most, self.held.iter().position(|held| *held == most).unwrap_or(0))
    }

    /// Returns whether it keeps one tensor of one size in each of many rounds.
    const fn is_plain(&self, rounds: &Rounds) -> bool {
        rounds.count >= PLAIN_ROUNDS && self.sizes.0 == self.sizes.1
    }

    fn candidate(&self, source: LeakSource<'_>, span: Span, least: u64, rounds: Rounds) -> LeakCandidate {
        let label = frame_label(source.symbols, source.symbols.frame(self.line));
        LeakCandidate {
            line: self.line,
            stack: self.newest,
            first_bytes: self.first_bytes,
            last_bytes: self.last_bytes,
            count: self.count,
            first_seen: self.first_seen,
            from: span.from,
            until: span.until,
            rounds: rounds.count,
            is_cache: is_cache(&label),
            trend: if self.is_steady(span, least) { Trend::Rising } else { Trend::Level },
            most_held: (self.most().0, span.at(self.most().1)),
        }
    }
}

/// Returns whether the text of a line says that it fills a cache.
pub fn is_cache(label: &str) -> bool {
    let label = label.to_lowercase();
    CACHE_WORDS.iter().any(|word| label.contains(word))
}

/// Returns whether a stack belongs to what stays on purpose: weights, optimizer state, inputs of checkpointed segments.
fn keeps_on_purpose(symbols: &Symbols, stack: StackId) -> bool {
    symbols.stack(stack).iter().any(|id| {
        let frame = symbols.frame(*id);
        let (name, file) = (symbols.text(frame.name), symbols.text(frame.filename));
        LOADING_FUNCTIONS.contains(&&*name) || KEEPING_FILES.iter().any(|part| file.contains(part))
    })
}

/// The rounds of a program from the view of one line.
#[derive(Clone, Copy, Default)]
struct Rounds {
    /// How often the line kept something after other memory had been freed.
    count: u32,
    /// In how many of them the program came back to another stack several times.
    nested: u32,
}

impl Rounds {
    const fn is_nested(&self) -> bool {
        self.count >= NESTED_ROUNDS && self.nested >= self.count / 2
    }
}

/// A line while its rounds are counted.
struct Counting {
    line: FrameId,
    rounds: Rounds,
    has_freed: bool,
    is_nested: bool,
    /// By stack: the round in which it allocated last, and how often the program has come to it in that round.
    seen: Vec<(u32, u32)>,
    /// The stack that allocated last.
    last: StackId,
}

/// Counts the rounds of each line. Without rounds there is no leak: while a program sets up, everything stays. If less
/// than half of what is allocated behind the warm-up is freed, nothing counts as a round.
fn count_rounds(lines: &mut Lines<'_>, span: Span, rising: &[Rising]) -> Vec<Rounds> {
    let LeakSource { trace, replay, .. } = lines.source;
    let mut counting: Vec<Counting> = rising
        .iter()
        .map(|line| Counting {
            line: line.line,
            rounds: Rounds::default(),
            has_freed: false,
            is_nested: false,
            seen: Vec::new(),
            last: StackId(0),
        })
        .collect();
    let allocations = &replay.allocations;
    let (mut begun, mut ended) = (0_u64, 0_u64);
    let (from, until) = (span.from as usize, span.until as usize);
    let actions = trace.events.action.range(from..until);
    let mut stacks = allocations.stack.reader();
    let (mut freed, mut ends) = (allocations.freed.reader(), allocations.end.reader());
    let mut numbers = replay.event_allocation.reader();
    for (i, action) in (from..).zip(actions) {
        match Action::from_code(action) {
            Action::FreeCompleted => {
                ended += 1;
                counting.iter_mut().for_each(|line| line.has_freed = true);
            }
            Action::Alloc => {
                begun += 1;
                let Some(number) = numbers.get(i).filter(|number| *number != Replay::NONE) else { continue };
                let number = number as usize;
                let stack = StackId(stacks.get(number).unwrap_or(0));
                let gone = freed.get(number).unwrap_or(0).min(ends.get(number).unwrap_or(0));
                let line = lines.of(stack);
                counting.iter_mut().for_each(|own| own.visit(stack, line, gone > span.until));
            }
            _ => {}
        }
    }
    let is_setting_up = ended * 2 < begun;
    counting.into_iter().map(|line| if is_setting_up { Rounds::default() } else { line.rounds }).collect()
}

impl Counting {
    fn visit(&mut self, stack: StackId, line: Option<FrameId>, is_kept: bool) {
        if line == Some(self.line) {
            if is_kept && self.has_freed {
                self.rounds.count += 1;
                self.rounds.nested += u32::from(self.is_nested);
                (self.has_freed, self.is_nested) = (false, false);
            }
        } else if !self.is_nested && line.is_some() && stack != self.last {
            let i = stack.0 as usize;
            if self.seen.len() <= i {
                self.seen.resize(i + 1, (0, 0));
            }
            if let Some((round, visits)) = self.seen.get_mut(i) {
                *visits = if *round == self.rounds.count { *visits + 1 } else { 1 };
                *round = self.rounds.count;
                self.is_nested = *visits >= NESTED_VISITS;
            }
        }
        self.last = stack;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::steps::Step;
    use crate::index::Index;

    /// Steps of `events` events each, the first of which begins at position 1. The last one is not whole.
    fn steps_of(count: u64, events: u32, source: StepSource) -> Steps {
        let step = |number: u64| {
            let from = 1 + (number as u32 - 1) * events;
            Step { number, from, to: from + events, is_whole: number < count }
        };
        Steps { source, steps: (1..=count).map(step).collect() }
    }

    /// Returns what the largest leak of a trace kept step by step.
    fn by_step(lines: &[String], steps: &Steps) -> Option<(String, StepRise)> {
        with_source(lines, |source| {
            let found = LeakCandidate::all(source, source.replay.positions(), 40_000);
            let rise = found.first()?.by_step(source, steps)?;
            Some((rise.to_string(), rise))
        })
    }

    #[test]
    fn the_slope_is_that_of_whole_steps() {
        // Three events for each of four layers' two lines, and one that is kept.
        let even = steps(40, 4, "keep@/m/a.py:2", |_| 1_024);
        let (text, rise) = by_step(&even, &steps_of(40, 25, StepSource::Optimizer)).unwrap();
        assert_eq!(text, "1.00 KiB more every step, over steps 1 to 39");
        assert_eq!((rise.bytes, rise.steps, rise.per_step()), (39 * 1_024, 39, 1_024));
        // Three of the program's rounds are one step.
        let (text, rise) = by_step(&even, &steps_of(13, 75, StepSource::Pattern)).unwrap();
        assert_eq!((text.as_str(), rise.bytes), ("3.00 KiB more every step, over steps 1 to 12", 36 * 1_024));
        // A fifth of a round is a step.
        let (text, rise) = by_step(&even, &steps_of(200, 5, StepSource::Annotations)).unwrap();
        assert_eq!(text, "205 B more a step on average, over steps 5 to 199");
        assert_eq!((rise.bytes, rise.is_even), (39 * 1_024, false));
        assert_eq!(by_step(&even, &steps_of(200, 5, StepSource::Pattern)), None, "layers, not steps");
        assert_eq!(by_step(&even, &steps_of(2, 25, StepSource::Optimizer)), None, "one whole step has no slope");
        let uneven = steps(40, 4, "keep@/m/a.py:2", |step| 1_024 * (1 + step % 2));
        let (text, rise) = by_step(&uneven, &steps_of(41, 25, StepSource::Annotations)).unwrap();
        assert_eq!(text, "1.50 KiB more a step on average, over steps 1 to 40");
        assert_eq!(rise.bytes, 60 * 1_024);
    }

    fn all(lines: &[String]) -> Vec<LeakCandidate> {
        with_source(lines, |source| LeakCandidate::all(source, source.replay.positions(), 40_000))
    }

    fn with_source<T>(lines: &[String], ask: impl FnOnce(LeakSource<'_>) -> T) -> T {
        let mut snapshot = crate::testing::snapshot(&lines.join("\n"));
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let best_frames = BestFrames::build(&snapshot.symbols);
        ask(LeakSource { trace: &trace, replay: &replay, symbols: &snapshot.symbols, best_frames: &best_frames })
    }

    const SEGMENT: &str = "segment_alloc 0x1000000 20971520";

    /// Forty steps, each of which allocates and frees an activation and keeps `kept(step)` bytes.
    fn largest(kept: impl Fn(u64) -> Option<u64>) -> Option<(u64, u64)> {
        let mut lines = vec![SEGMENT.to_owned()];
        for step in 0..40 {
            lines.push("alloc 0x1000000 4000 activation@/m/a.py:1".to_owned());
            if let Some(bytes) = kept(step) {
                lines.push(format!("alloc {} {bytes} kept@/m/a.py:2", 0x110_0000 + 4_096 * step));
            }
            lines.push("free 0x1000000".to_owned());
        }
        all(&lines).first().map(|candidate| (candidate.first_bytes, candidate.last_bytes))
    }

    #[test]
    fn a_site_that_keeps_a_tensor_of_every_step_is_found() {
        assert_eq!(largest(|_| Some(1_000)), Some((10_000, 40_000)));
    }

    #[test]
    fn level_and_slightly_rising_sites_are_no_candidates() {
        assert_eq!(largest(|step| (step < 8).then_some(1_000)), None);
        // A cache that fills up for three quarters of the run, and then is full.
        assert_eq!(largest(|step| (step < 26).then_some(1_000)), None);
        assert_eq!(largest(|_| Some(8)), None);
        assert_eq!(largest(|_| None), None);
        // Weights of a model look like this while they are converted one by one, since their sizes differ.
        assert_eq!(largest(|step| Some(1_000 + 500 * (step % 4))), None);
    }

    /// Steps of some layers of two operators each. Each step keeps `kept(step)` bytes at `line`.
    fn steps(count: u64, layers: u64, line: &str, kept: impl Fn(u64) -> u64) -> Vec<String> {
        let mut lines = vec![SEGMENT.to_owned()];
        for step in 0..count {
            for _ in 0..layers {
                for line in 1..3 {
                    lines.extend([format!("alloc 0x1000000 4000 layer@/m/l.py:{line}"), "free 0x1000000".to_owned()]);
                }
            }
            // Each step has a stack of its own: only the line is the same.
            lines.push(format!("alloc {} {} {line} step{step}@/m/t.py:9", 0x110_0000 + 8_192 * step, kept(step)));
        }
        lines
    }

    #[test]
    fn a_line_leaks_whatever_its_stacks_and_sizes() {
        for (count, rounds) in [(7, 6), (300, 225)] {
            let found = all(&steps(count, 4, "keep@/m/a.py:2", |step| 1_000 + step % 7));
            let [leak] = found.as_slice() else { panic!("{count} steps: {found:?}") };
            assert_eq!((leak.count, leak.rounds), (count as u32, rounds));
            assert_eq!(leak.last_bytes, (0..count).map(|step| 1_000 + step % 7).sum::<u64>());
            // A segment, and the first step's layers.
            assert_eq!(leak.first_seen, 1 + 4 * 2 * 3 + 1);
            assert!(!leak.is_cache);
        }
    }

    #[test]
    fn one_pass_that_keeps_something_of_each_layer_is_no_leak() {
        // Each layer runs each of its lines once or twice, whatever it keeps.
        assert_eq!(all(&steps(22, 1, "keep@/m/a.py:2", |_| 1_000)), []);
        assert_eq!(all(&steps(60, 2, "keep@/m/a.py:2", |layer| 1_000 + layer % 3)), []);
        // The inputs of checkpointed segments.
        assert_eq!(all(&steps(60, 4, "keep@/m/a.py:2 forward@/x/torch/utils/checkpoint.py:9", |_| 1_000)), []);
        // Gradients, which are kept by functions of C++.
        assert_eq!(all(&steps(60, 4, "MmBackward0::apply@Functions.cpp:2", |_| 1_000)), []);
    }

    #[test]
    fn what_stays_on_purpose_is_no_leak() {
        let found = |line: &str| all(&steps(100, 4, line, |_| 1_000)).first().map(|candidate| candidate.is_cache);
        assert_eq!(found("keep@/m/a.py:2"), Some(false));
        assert_eq!(found("update@/m/kv_cache.py:52"), Some(true));
        assert_eq!(found("zeros_like@/x/torch/_refs/__init__.py:5 step@/x/torch/optim/adam.py:9"), None);
        assert_eq!(
            found("to@/m/a.py:2 convert@/x/torch/nn/modules/module.py:1 _apply@/x/torch/nn/modules/module.py:2"),
            None
        );
    }

    #[test]
    fn what_is_replaced_all_along_is_no_leak() {
        // A buffer of twelve tensors, in which every new one replaces the one of twelve steps before.
        let mut lines = vec![SEGMENT.to_owned()];
        for step in 0..100_u64 {
            lines.extend(["alloc 0x1000000 4000 layer@/m/a.py:1".to_owned(), "free 0x1000000".to_owned()]);
            lines.extend(["alloc 0x1000000 4000 layer@/m/a.py:1".to_owned(), "free 0x1000000".to_owned()]);
            let address = 0x110_0000 + 8_192 * (step % 12);
            if step >= 12 {
                lines.push(format!("free {address}"));
            }
            lines.push(format!("alloc {address} 3000 keep@/m/a.py:2"));
        }
        assert_eq!(all(&lines), []);
    }

    #[test]
    fn setting_up_is_no_leak() {
        // Weights are allocated one after the other; every fourth needs a temporary tensor.
        let mut lines = vec![SEGMENT.to_owned()];
        for weight in 0..100_u64 {
            if weight % 4 == 0 {
                lines.extend(["alloc 0x1000000 2000 cast@/m/a.py:1".to_owned(), "free 0x1000000".to_owned()]);
            }
            lines.push(format!("alloc {} 2000 load@/m/a.py:2", 0x110_0000 + 8_192 * weight));
        }
        assert_eq!(all(&lines), []);
        assert_eq!(all(&[]), []);
    }
}
