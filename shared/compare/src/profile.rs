//! A run at one moment in brief.

use analysis::best_frames::BestFrames;
use analysis::part_peak::PartPeak;
use analysis::roles::Roles;
use analysis::site::{frame_label, name_of};
use analysis::steps::{Steps, TrainingStep, named_spans};
use query::run_profile::{
    Conditions, MomentChoice, MostMemory, ProfiledLine, ProfiledMemory, ProfiledMoment, ProfiledPart, RunProfile,
    WholeSteps,
};
use query::{Category, pool_name, stream_name};
use replay::{Allocation, Replayed};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::event::Action;
use trace::frames::{FrameId, StackId, StackRecord, Symbols};
use trace::totals::Amount;
use trace::units::{Count, Micros, PoolId, Stream, counted};

use crate::pairing::sort;

/// One device of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The name of its file or job.
    pub name: &'a str,
    /// Its trace, with its states.
    pub input: Replayed<'a>,
    /// Strings, frames and stacks.
    pub symbols: &'a Symbols,
    /// Which frame represents each stack.
    pub best_frames: &'a BestFrames,
    /// Its steps and categories.
    pub roles: &'a Roles,
    /// The streams of its allocations, in the order of first use.
    pub streams: &'a [Stream],
    /// The most of the whole run.
    pub most: MostMemory,
    /// What the trace itself does not tell: release, settings, card, rank, damage. The rest is overwritten.
    pub known: &'a Conditions,
}

impl<'a> Run<'a> {
    /// Returns whether the trace says how its end came about. A trace of one event comes from another mode of recording.
    pub fn has_history(&self) -> bool {
        self.input.trace.events.len() > 1
    }

    /// Returns the steps that lie in the trace from their beginning to their end.
    pub fn whole_steps(&self) -> WholeSteps {
        let Some(found) = self.steps() else { return WholeSteps::default() };
        let whole = found.steps.iter().filter(|step| step.is_whole);
        let steps = whole.map(|step| (step.number, step.to.saturating_sub(step.from))).collect();
        WholeSteps { source: found.source.to_string(), steps }
    }

    fn steps(&self) -> Option<&'a Steps> {
        self.roles.steps(self.input, self.symbols)
    }

    fn conditions(&self) -> Conditions {
        let Replayed { trace, replay, .. } = self.input;
        Conditions {
            reserved_at_start: replay.reserved_at_start(),
            lost: trace.losses.iter().fold(0, |sum, loss| sum.saturating_add(loss.events)),
            has_history: self.has_history(),
            // The blocks of a snapshot have stacks even if its events have none.
            has_stacks: replay.allocations.stack.iter().any(|stack| stack != 0),
            steps: self.steps().map_or_else(String::new, |steps| steps.source.to_string()),
            failed: trace.events.action.iter().filter(|action| *action == Action::Oom as u8).count() as u64,
            ..self.known.clone()
        }
    }

    /// Returns the moment that was chosen, and the part of the trace that it stands for.
    fn moment(&self, choice: &MomentChoice) -> Result<(ProfiledMoment, TrainingStep), String> {
        let end = self.input.replay.positions();
        let until = |to: u32| TrainingStep { number: 0, from: 0, to: to.min(end), is_whole: true };
        let at = |position: u32, text: String| {
            let position = position.min(end);
            let time_us = u64::try_from(self.input.replay.time_at(self.input.trace, position)).unwrap_or(0);
            (ProfiledMoment { position, time_us, step: None, phase: None, is_peak: false, text }, until(position))
        };
        Ok(match choice {
            MomentChoice::Peak => {
                let (moment, _) = at(self.peak_in(&until(end)), "the peak of the run".to_owned());
                (ProfiledMoment { is_peak: true, ..moment }, until(end))
            }
            MomentChoice::End => at(end, "the end of the trace".to_owned()),
            MomentChoice::Event(event) => {
                if *event > end {
                    let events = counted(end.into(), "event");
                    return Err(format!("{} has {events}, and no event {event}.", self.name));
                }
                at(*event, format!("event {}", Count((*event).into())))
            }
            MomentChoice::Time(time_us) => {
                let (input, wanted) = (self.input, Micros(i64::try_from(*time_us).unwrap_or(i64::MAX)));
                let last = input.replay.time_at(input.trace, end);
                if wanted.0 > last {
                    return Err(format!("{} takes {}, and has no moment at {wanted}.", self.name, Micros(last)));
                }
                at(input.replay.position_at_time(input.trace, wanted.0 as f64), format!("{wanted} after the start"))
            }
            MomentChoice::Step(number) => {
                let step = self.step(*number)?;
                let (moment, _) = at(self.peak_in(&step), format!("the peak of step {number}"));
                (ProfiledMoment { step: Some(*number), is_peak: true, ..moment }, step)
            }
            MomentChoice::StepEnd(number) => {
                let step = self.step(*number)?;
                let (moment, _) = at(step.to, format!("the end of step {number}"));
                (ProfiledMoment { step: Some(*number), ..moment }, step)
            }
            MomentChoice::Mark(name) => {
                let (_, to) = self.spans(name).next().ok_or_else(|| self.no_annotation(name))?;
                at(to, format!("the end of {name}"))
            }
            MomentChoice::Phase(name) => {
                let within = |(from, to): (u32, u32)| TrainingStep { number: 0, from, to, is_whole: true };
                let swept = self.spans(name).map(|span| (within(span), PartPeak::of(self.input, span.0, span.1)));
                // Of equal ones, the first.
                let most = swept.reduce(|most, other| if other.1.bytes > most.1.bytes { other } else { most });
                let (part, peak) = most.ok_or_else(|| self.no_annotation(name))?;
                let (moment, _) = at(peak.position, format!("the peak within {name}"));
                (ProfiledMoment { phase: Some(name.clone()), is_peak: true, ..moment }, part)
            }
        })
    }

    fn step(&self, number: u64) -> Result<TrainingStep, String> {
        let found = self.steps().and_then(|steps| steps.numbered(number)).copied();
        found.ok_or_else(|| self.no_step(number))
    }

    fn no_step(&self, number: u64) -> String {
        match self.steps().map(|steps| steps.steps.as_slice()) {
            Some([first, .., last]) => {
                format!("{} has no step {number}: its steps are {} to {}.", self.name, first.number, last.number)
            }
            _ => {
                format!("{} has no steps: nothing in it repeats. Name another moment, such as peak or end.", self.name)
            }
        }
    }

    /// Returns where the annotations with a name begin and end.
    fn spans(&self, name: &str) -> impl Iterator<Item = (u32, u32)> {
        let named = named_spans(self.input).filter(move |(text, ..)| self.symbols.text(*text) == name);
        named.map(|(_, from, to)| (from, to))
    }

    fn no_annotation(&self, name: &str) -> String {
        format!("{} has no annotation named {name:?}. Names are compared as they were written.", self.name)
    }

    /// Returns the first position in a part of the trace at which most was requested.
    fn peak_in(&self, part: &TrainingStep) -> u32 {
        PartPeak::of(self.input, part.from, part.to).position
    }

    /// Returns the frame that stands for a stack; `None` without one.
    fn frame(&self, stack: StackId) -> Option<FrameId> {
        match self.symbols.recorded(stack) {
            StackRecord::Nothing | StackRecord::Lost => None,
            StackRecord::Partly | StackRecord::Whole => self.best_frames.frame(self.symbols.stack(stack)),
        }
    }
}

/// The sums of a line.
#[derive(Default)]
struct LineSums {
    /// The frame that stands for its stacks.
    frame: FrameId,
    /// One of its stacks.
    stack: StackId,
    held: Amount,
    requests: Amount,
    /// A digest of the sizes of the requests.
    sizes: u64,
    /// Bytes by category: held, and requested.
    by_category: [(u64, u64); Category::ALL.len()],
}

/// The lines of a run. Which one a stack is of is found once: a trace has far fewer stacks than allocations.
struct Lines<'a> {
    run: &'a Run<'a>,
    /// The place of each stack's line, by the stack's number, once it is known; [`Self::NONE`] if it has none.
    of_stack: Vec<Option<u32>>,
    places: FxHashMap<FrameId, u32>,
    sums: Vec<LineSums>,
}

impl<'a> Lines<'a> {
    const NONE: u32 = u32::MAX;

    fn new(run: &'a Run<'a>) -> Self {
        Self { run, of_stack: Vec::new(), places: FxHashMap::default(), sums: Vec::new() }
    }

    /// Returns the line of a stack; `None` without one.
    fn of(&mut self, stack: StackId) -> Option<&mut LineSums> {
        let known = self.of_stack.get(stack.0 as usize).copied().flatten();
        let place = known.unwrap_or_else(|| self.find(stack));
        self.sums.get_mut(place as usize)
    }

    fn find(&mut self, stack: StackId) -> u32 {
        let Self { run, of_stack, places, sums } = self;
        let place = run.frame(stack).map_or(Self::NONE, |frame| {
            *places.entry(frame).or_insert_with(|| {
                sums.push(LineSums { frame, stack, ..LineSums::default() });
                sums.len() as u32 - 1
            })
        });
        let index = stack.0 as usize;
        // Numbers of stacks are those of the trace, without gaps; any other is looked up each time.
        if index < run.symbols.stack_count() {
            of_stack.resize(of_stack.len().max(index + 1), None);
            if let Some(known) = of_stack.get_mut(index) {
                *known = Some(place);
            }
        }
        place
    }

    /// Returns the lines that hold or requested anything.
    fn used(&self) -> impl Iterator<Item = &LineSums> {
        self.sums.iter().filter(|sums| sums.held.count > 0 || sums.requests.count > 0)
    }
}

/// Returns the digest of some sizes with one more. Profiles are kept in files: it is the same on every machine and in every release.
const fn digest(before: u64, size: u64) -> u64 {
    // The multiplier of SplitMix64.
    (before.rotate_left(5) ^ size).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl LineSums {
    fn category(&self) -> Category {
        let of = |bytes: fn(&(u64, u64)) -> u64| {
            let all = Category::ALL.into_iter().zip(self.by_category.iter().map(bytes));
            all.filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes).map(|(category, _)| category)
        };
        of(|(held, _)| *held).or_else(|| of(|(_, requested)| *requested)).unwrap_or_default()
    }
}

/// Profiles a run at a moment.
///
/// # Errors
///
/// Returns a sentence if the run has no such moment.
pub fn profile(run: &Run<'_>, choice: &MomentChoice) -> Result<RunProfile, String> {
    let Replayed { trace, replay, .. } = run.input;
    let (moment, part) = run.moment(choice)?;
    let state = replay.state_at(moment.position);
    let categories = run.roles.categories(run.input, run.symbols);
    let mut lines = Lines::new(run);
    let (mut without_stack, mut at_start) = (Amount::default(), Amount::default());
    let mut by_category = vec![Amount::default(); Category::ALL.len()];
    let place = |id: u32| categories.get(id) as usize;
    let mut memory = ProfiledMemory {
        blocks: state.totals.allocated,
        active: state.totals.active,
        reserved: state.totals.reserved,
        outside: outside_at(run, moment.position),
        ..ProfiledMemory::default()
    };
    let mut parts: FxHashMap<PartKey, ProfiledPart> = FxHashMap::default();
    // All pools that are not private are one.
    let pool_of = |pool: PoolId| if pool.is_private() { pool } else { PoolId::default() };
    for range in &state.ranges {
        for key in [PartKey::Stream(range.stream), PartKey::Pool(pool_of(range.pool))] {
            let reserved = &mut parts.entry(key).or_default().reserved;
            *reserved = reserved.saturating_add(range.size);
        }
    }
    let is_live = |allocation: &Allocation| allocation.is_allocated_at(moment.position);
    for (id, allocation) in state.active.iter().filter_map(|id| Some((*id, replay.allocations.get(*id)?))) {
        if !is_live(&allocation) {
            continue;
        }
        let bytes = allocation.requested;
        memory.allocated = memory.allocated.saturating_add(bytes);
        let stream = run.input.tags.get(allocation.tag).stream;
        for key in [PartKey::Stream(stream), PartKey::Pool(replay.pool(&allocation))] {
            parts.entry(key).or_default().held.add(bytes);
        }
        let line = lines.of(allocation.stack);
        if allocation.begin == 0 && line.is_none() {
            at_start.add(bytes);
            continue;
        }
        if let Some(amount) = by_category.get_mut(place(id)) {
            amount.add(bytes);
        }
        let Some(line) = line else {
            without_stack.add(bytes);
            continue;
        };
        line.held.add(bytes);
        if let Some((held, _)) = line.by_category.get_mut(place(id)) {
            *held = held.saturating_add(bytes);
        }
    }
    let made = replay.allocations.made_by(part.from)..replay.allocations.made_by(part.to);
    let mut inputs = Amount::default();
    for (id, allocation) in made.filter_map(|id| Some((id, replay.allocations.get(id)?))) {
        if moment.step.is_some() && categories.get(id) == Category::Inputs {
            inputs.add(allocation.requested);
        }
        let Some(line) = lines.of(allocation.stack).filter(|_| allocation.begin > 0) else { continue };
        line.requests.add(allocation.requested);
        line.sizes = digest(line.sizes, allocation.requested);
        if let Some((_, requested)) = line.by_category.get_mut(place(id)) {
            *requested = requested.saturating_add(allocation.requested);
        }
    }
    // A stream may have memory and no tensor.
    let mut in_order = run.streams.to_vec();
    in_order.extend(state.ranges.iter().map(|range| range.stream));
    let mut seen = FxHashSet::default();
    in_order.retain(|stream| seen.insert(*stream));
    let mut pools: Vec<PoolId> = parts.keys().filter_map(|key| key.pool()).collect();
    pools.sort_unstable();
    let mut part = |key: PartKey, name: &dyn Fn() -> String| {
        let found = parts.remove(&key)?;
        Some(ProfiledPart { name: name(), ..found })
    };
    let streams = in_order.iter();
    let streams =
        streams.filter_map(|stream| part(PartKey::Stream(*stream), &|| stream_name(*stream, &in_order))).collect();
    let pools = pools.into_iter().filter_map(|pool| part(PartKey::Pool(pool), &|| pool_name(pool))).collect();
    let mut lines: Vec<ProfiledLine> = lines.used().map(|sums| line(run.symbols, sums)).collect();
    sort(&mut lines);
    Ok(RunProfile {
        name: run.name.to_owned(),
        device: trace.device,
        conditions: run.conditions(),
        moment,
        memory,
        most: run.most,
        lines,
        without_stack,
        at_start,
        inputs,
        categories: by_category,
        streams,
        pools,
    })
}

/// A stream or a pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PartKey {
    Stream(Stream),
    Pool(PoolId),
}

impl PartKey {
    const fn pool(self) -> Option<PoolId> {
        match self {
            Self::Stream(_) => None,
            Self::Pool(pool) => Some(pool),
        }
    }
}

fn line(symbols: &Symbols, sums: &LineSums) -> ProfiledLine {
    let frame = symbols.frame(sums.frame);
    let file = symbols.text(frame.filename);
    ProfiledLine {
        function: name_of(symbols, frame.name).into_owned(),
        file: if file == "??" { String::new() } else { file.into_owned() },
        number: frame.line,
        label: frame_label(symbols, frame),
        stack: sums.stack.0,
        held: sums.held,
        requests: sums.requests,
        sizes: sums.sizes,
        category: sums.category(),
    }
}

/// Returns what the process had outside the allocator at a position, by the last sample before it.
fn outside_at(run: &Run<'_>, position: u32) -> Option<u64> {
    let Replayed { trace, replay, .. } = run.input;
    let now = replay.time_at(trace, position).saturating_add(trace.start_us());
    let known = trace.outside.iter().take_while(|sample| sample.time_us <= now).last().or(trace.outside.first());
    known.and_then(|sample| Some(sample.outside?.saturating_sub(sample.others.unwrap_or(0))))
}
