//! Steps from the allocation pattern: the same call sites ask for the same sizes, again and again.
//!
//! A *kind* is a call site with a size. A kind that is asked for at even distances, counted in allocations, votes for
//! that distance; what most kinds vote for is the length of a step. A layer's kinds are not evenly spaced, since the
//! backward pass lies between those of two steps, unless a program only infers: a distance whose kinds all lie within
//! one module's `forward` is a layer's, and one whose kinds all lie within the optimizer is a parameter's.
//!
//! This is an autocorrelation that costs a sort instead of a transform, and that a step of another length (evaluation,
//! the first one) does not blur.

use rustc_hash::FxHashMap;

use super::TrainingStep;
use crate::stack_traits::{StackTraits, Traits};
use replay::{Change, Replayed};
use trace::frames::{FrameId, StackId, Symbols};
use trace::order::SortFew;

/// The fewest steps: two distances that are equal.
const LEAST_STEPS: usize = 3;
/// The fewest steps that are believed if they have fewer than [`SHORT`] allocations.
const LEAST_SHORT_STEPS: usize = 8;
/// A step of fewer allocations is short.
const SHORT: u32 = 5;
/// How far a distance may be from the median, in percent.
const PERCENT_OFF: u64 = 15;
/// Of a hundred distances, how many have to be near the median.
const PERCENT_EVEN: usize = 70;
/// How far the sum of all distances may be from as many medians, in percent. Within a step of layers, half of the time
/// belongs to the backward pass.
const PERCENT_OFF_IN_ALL: u64 = 25;
/// The part of the trace, in percent, that the steps have to cover.
const PERCENT_COVERED: u64 = 40;

/// A kind that is asked for at even distances.
#[derive(Clone, Copy, Debug)]
struct EvenKind {
    kind: u32,
    stack: u32,
    /// Its median distance, in allocations.
    distance: u32,
    count: usize,
}

/// Returns the steps of a trace that repeats itself.
pub(super) fn steps(input: Replayed<'_>, symbols: &Symbols, traits: &StackTraits) -> Option<Vec<TrainingStep>> {
    let allocations = &input.replay.allocations;
    let sizes = || allocations.requested.iter();
    by_kind(input, symbols, traits, sizes())
        // Where the data has another length in each step, only the call sites repeat.
        .or_else(|| by_kind(input, symbols, traits, sizes().map(|_| 0)))
}

fn by_kind(
    input: Replayed<'_>,
    symbols: &Symbols,
    traits: &StackTraits,
    sizes: impl Iterator<Item = u64>,
) -> Option<Vec<TrainingStep>> {
    let allocations = &input.replay.allocations;
    let mut numbers: FxHashMap<(u32, u64), u32> = FxHashMap::default();
    let kinds: Vec<u32> = (allocations.stack.iter().zip(sizes))
        .map(|kind| {
            let next = numbers.len() as u32;
            *numbers.entry(kind).or_insert(next)
        })
        .collect();
    let mut stacks = vec![0; numbers.len()];
    for ((stack, _), number) in numbers {
        if let Some(known) = stacks.get_mut(number as usize) {
            *known = stack;
        }
    }
    let at_start = allocations.made_by(0) as usize;
    let places = Places::of(kinds.get(at_start..)?, stacks.len());
    let total = (kinds.len() - at_start) as u64;
    let mut scratch = Vec::new();
    let mut even: Vec<EvenKind> = (0..)
        .zip(&stacks)
        .filter_map(|(kind, &stack)| {
            let places = places.of_kind(kind);
            let distance = even_distance(places, total, &mut scratch)?;
            Some(EvenKind { kind, stack, distance, count: places.len() })
        })
        .collect();
    even.sort_few_by_key(|kind| (kind.distance, kind.kind));
    let class = best_class(&even, symbols, traits)?;
    let anchor = least_live(input, &kinds, stacks.len(), class)?;
    if !is_rule(class, &anchor, (0..stacks.len() as u32).map(|kind| places.of_kind(kind))) {
        return None;
    }
    let starts = places.of_kind(anchor.kind).iter().filter_map(|&place| {
        let begin = allocations.begin.get(at_start + place as usize)?;
        Some(begin.saturating_sub(1))
    });
    let steps = from_starts(input, &starts.collect::<Vec<_>>(), anchor.distance);
    gives_back(input, &steps).then_some(steps)
}

/// Returns whether the distance of a class is a regularity of the program and not chance. Of many kinds that come a few
/// times, some are evenly spaced whatever the program does. In steps, most kinds are that come as often as the class
/// and over as much of the trace.
fn is_rule<'a>(class: &[EvenKind], anchor: &EvenKind, kinds: impl Iterator<Item = &'a [u32]>) -> bool {
    let span = |places: &[u32]| places.last().copied().unwrap_or(0) - places.first().copied().unwrap_or(0);
    let is_as_often = |count: usize| count.abs_diff(anchor.count) <= anchor.count / 20;
    let least_span = anchor.distance.saturating_mul(anchor.count as u32 - 1) / 2;
    let alike = kinds.filter(|places| is_as_often(places.len()) && span(places) >= least_span).count();
    class.iter().filter(|kind| is_as_often(kind.count)).count() * 2 >= alike
}

/// Returns whether the steps give back most of what they take, by the end of the step after. A loop that fills memory has a
/// pattern, but no steps.
fn gives_back(input: Replayed<'_>, steps: &[TrainingStep]) -> bool {
    let allocations = &input.replay.allocations;
    let (mut taken, mut back) = (0_u64, 0_u64);
    let (freed, ends) = (&mut allocations.freed.reader(), &mut allocations.end.reader());
    // Whether the last steps free their memory, the trace does not show.
    for (step, next) in steps.iter().zip(steps.iter().skip(1)).filter(|(_, next)| next.is_whole) {
        for number in allocations.made_by(step.from)..allocations.made_by(step.to) {
            let bytes = allocations.requested.get(number as usize).unwrap_or(0);
            let gone = freed.get(number as usize).unwrap_or(0).min(ends.get(number as usize).unwrap_or(0));
            taken = taken.saturating_add(bytes);
            back = back.saturating_add(if gone <= next.to { bytes } else { 0 });
        }
    }
    back >= taken / 2
}

/// The places of each kind in the sequence of allocations, rising.
struct Places {
    order: Vec<u32>,
    ends: Vec<u32>,
}

impl Places {
    fn of(kinds: &[u32], count: usize) -> Self {
        let mut ends = vec![0_u32; count];
        for &kind in kinds {
            if let Some(end) = ends.get_mut(kind as usize) {
                *end += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum - *end;
        }
        let mut order = vec![0; kinds.len()];
        for (place, &kind) in (0..).zip(kinds) {
            let Some(next) = ends.get_mut(kind as usize) else { continue };
            if let Some(slot) = order.get_mut(*next as usize) {
                *slot = place;
            }
            *next += 1;
        }
        Self { order, ends }
    }

    fn of_kind(&self, kind: u32) -> &[u32] {
        let end = |kind: usize| self.ends.get(kind).copied().unwrap_or(0) as usize;
        let start = (kind as usize).checked_sub(1).map_or(0, end);
        self.order.get(start..end(kind as usize)).unwrap_or_default()
    }
}

/// Returns the median distance of a kind's places, if they are evenly spaced over most of the trace.
fn even_distance(places: &[u32], total: u64, scratch: &mut Vec<u32>) -> Option<u32> {
    let (&first, &last) = (places.first()?, places.last()?);
    if places.len() < LEAST_STEPS {
        return None;
    }
    scratch.clear();
    scratch.extend(places.windows(2).map(|pair| if let [a, b] = pair { b - a } else { 0 }));
    let distances = scratch.len();
    let (_, &mut median, _) = scratch.select_nth_unstable(distances / 2);
    if median < 2 || median < SHORT && places.len() < LEAST_SHORT_STEPS {
        return None;
    }
    let span = u64::from(last - first);
    let is_near = |a: u64, b: u64, percent: u64| a.abs_diff(b) * 100 <= b * percent;
    let near = scratch.iter().filter(|&&distance| {
        distance.abs_diff(median) <= 1 && median > 3 || is_near(distance.into(), median.into(), PERCENT_OFF)
    });
    let is_even = near.count() * 100 >= distances * PERCENT_EVEN;
    let in_all = is_near(u64::from(median) * distances as u64, span, PERCENT_OFF_IN_ALL);
    let is_covered = (span + u64::from(median)) * 100 >= total * PERCENT_COVERED;
    (is_even && in_all && is_covered).then_some(median)
}

/// Returns the kinds of about one distance that are most. `even` is in the order of distances.
fn best_class<'a>(even: &'a [EvenKind], symbols: &Symbols, traits: &StackTraits) -> Option<&'a [EvenKind]> {
    let is_same = |a: &EvenKind, b: &EvenKind| b.distance - a.distance <= (a.distance / 16).max(1);
    let classes = || even.chunk_by(is_same);
    let programs = classes().filter(|class| !is_part(class, symbols, traits));
    programs.max_by_key(|class| class.len())
}

/// Returns whether a class is a part of a step: all its stacks lie within the same call of a module, of the backward
/// pass or of the optimizer, or have no frames although those of other classes do, or frames that were lost.
fn is_part(class: &[EvenKind], symbols: &Symbols, traits: &StackTraits) -> bool {
    const PARTS: Traits = Traits::FORWARD.and(Traits::BACKWARD).and(Traits::OPTIMIZER).and(Traits::SETUP);
    let traits_of = |kind: &EvenKind| traits.of(StackId(kind.stack));
    let mut stacks =
        class.iter().filter(|kind| traits_of(kind).has(Traits::PYTHON)).map(|kind| python(kind, symbols, traits));
    let Some(first) = stacks.next() else {
        let is_known = |kind: &EvenKind| kind.stack != 0 && !traits_of(kind).has(PARTS.and(Traits::LOST));
        return symbols.stack_count() > 1 && !class.iter().any(is_known);
    };
    let common = stacks
        .fold(first.len(), |common, stack| common.min(first.iter().zip(&stack).take_while(|(a, b)| a == b).count()));
    first.iter().take(common).any(|frame| traits.of_frame(*frame).has(PARTS))
}

/// Returns the frames of Python, the outermost first. Some versions of PyTorch put frames of C++ between them, and some
/// after them.
fn python(kind: &EvenKind, symbols: &Symbols, traits: &StackTraits) -> Vec<FrameId> {
    let frames = symbols.stack(StackId(kind.stack)).iter().rev().copied();
    frames.filter(|frame| traits.of_frame(*frame).has(Traits::PYTHON)).collect()
}

/// Returns the kind before whose allocations least is in use on average: what a step begins with.
fn least_live(input: Replayed<'_>, kinds: &[u32], count: usize, class: &[EvenKind]) -> Option<EvenKind> {
    let mut live_sum = vec![0.0_f64; count];
    let allocations = &input.replay.allocations;
    let bytes = |id: u32| allocations.requested.get(id as usize).unwrap_or(0);
    let at_start = 0..allocations.made_by(0);
    let mut live = at_start.fold(0_u64, |sum, id| sum.saturating_add(bytes(id)));
    input.replay.changes(input.trace, 0, u32::MAX, |_, change| match change {
        Change::Begin(id) => {
            if let Some(sum) = kinds.get(id as usize).and_then(|&kind| live_sum.get_mut(kind as usize)) {
                *sum += live as f64;
            }
            live = live.saturating_add(bytes(id));
        }
        Change::End(id) => live = live.saturating_sub(bytes(id)),
        Change::Freed(_) | Change::Reserved(_) => {}
    });
    let most = class.iter().map(|kind| kind.count).max()?;
    // A kind that some steps don't have would merge them.
    let complete = class.iter().filter(|kind| kind.count + most / 20 >= most);
    let mean = |kind: &EvenKind| live_sum.get(kind.kind as usize).copied().unwrap_or(0.0) / kind.count as f64;
    complete.copied().min_by(|a, b| mean(a).total_cmp(&mean(b)).then(a.kind.cmp(&b.kind)))
}

/// Makes steps that begin at `starts`. The last one is whole if it has about as many allocations as the others.
fn from_starts(input: Replayed<'_>, starts: &[u32], distance: u32) -> Vec<TrainingStep> {
    let end = input.replay.positions();
    let made = |position: u32| input.replay.allocations.made_by(position);
    let ends = starts.iter().skip(1).copied().chain([end]);
    let step = |((&from, to), number): ((&u32, u32), u64)| {
        let is_whole = to < end || u64::from(made(to) - made(from)) * 100 >= u64::from(distance) * (100 - PERCENT_OFF);
        TrainingStep { number, from, to, is_whole }
    };
    starts.iter().zip(ends).zip(1..).map(step).collect()
}
