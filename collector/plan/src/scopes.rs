//! Finds the lines whose calls keep most for the backward pass.

use analysis::best_frames::BestFrames;
use analysis::site::name_of;
use query::folding::{is_python, short_location, short_name};
use replay::Replayed;
use replay::index::Index;
use rustc_hash::{FxHashMap, FxHashSet};
use trace::frames::{FrameId, StackId, Symbols};

use crate::call::{Call, place_backward};
use crate::phases::{Phase, Phases};
use crate::repetition::calls;
use crate::scope::{Callee, Scope};

/// The scopes that are kept. Each costs runs of the whole trace.
const MOST_SCOPES: usize = 10;
/// The lines that are looked at more closely.
const MOST_LINES: usize = 48;
/// A line that keeps less than one part in this many is not looked at.
const LEAST_PART: u64 = 50;
/// From this percentage of a line's memory on, a line that it calls as often stands for it.
const NEARLY_ALL_PERCENT: u128 = 90;

/// Returns the lines that call most of what the forward passes keep, those with the largest potential first.
pub(crate) fn scopes(input: Replayed<'_>, symbols: &Symbols, phases: &Phases) -> Vec<Scope> {
    let best = BestFrames::build(symbols);
    let allocations = &input.replay.allocations;
    let mut lines_of: FxHashMap<u32, Vec<FrameId>> = FxHashMap::default();
    // By line: what it kept of the pass that was met last, and the most of any.
    let mut kept: FxHashMap<FrameId, (u32, u64, u64)> = FxHashMap::default();
    let mut all = (0, 0, 0);
    for (id, allocation) in (0..).zip(allocations.iter()) {
        if !phases.is_saved(id, &allocation) {
            continue;
        }
        let lines = lines_of.entry(allocation.stack.0).or_insert_with(|| lines(symbols, allocation.stack));
        let pass = phases.pass(id);
        add(&mut all, pass, allocation.requested);
        for frame in lines.iter() {
            add(kept.entry(*frame).or_default(), pass, allocation.requested);
        }
    }
    let whole = all.2;
    let mut largest: Vec<(FrameId, u64)> = kept.iter().map(|(frame, (.., most))| (*frame, *most)).collect();
    largest.retain(|(_, bytes)| *bytes > whole / LEAST_PART);
    largest.sort_by_key(|(frame, bytes)| (std::cmp::Reverse(*bytes), *frame));
    largest.truncate(MOST_LINES);
    let wanted: FxHashSet<FrameId> = largest.into_iter().map(|(frame, _)| frame).collect();
    let mut made: FxHashMap<FrameId, Vec<u32>> = FxHashMap::default();
    for (id, stack) in (0..).zip(allocations.stack.iter()) {
        if phases.get(id) != Phase::Forward {
            continue;
        }
        let lines = lines_of.entry(stack).or_insert_with(|| lines(symbols, StackId(stack)));
        for frame in lines.iter().filter(|frame| wanted.contains(frame)) {
            made.entry(*frame).or_default().push(id);
        }
    }
    let mut found: Vec<Scope> =
        made.into_iter().map(|(frame, ids)| scope(input, (symbols, &best), phases, frame, &ids)).collect();
    found.retain(|scope| scope.potential(input, whole) > whole / LEAST_PART);
    found.sort_by_cached_key(|scope| (std::cmp::Reverse(scope.potential(input, whole)), scope.frame));
    let mut found = distinct(input, symbols, &lines_of, found);
    found.truncate(MOST_SCOPES);
    found
}

/// Adds the bytes of a pass: its number, its sum, and the largest sum of any.
fn add((last, sum, most): &mut (u32, u64, u64), pass: u32, bytes: u64) {
    if *last != pass {
        (*last, *sum) = (pass, 0);
    }
    *sum = sum.saturating_add(bytes);
    *most = (*most).max(*sum);
}

/// Returns the lines of a stack that can be scopes, innermost first, each once. PyTorch's own lines call everything, so they name no
/// part of a model.
fn lines(symbols: &Symbols, stack: StackId) -> Vec<FrameId> {
    let mut seen = FxHashSet::default();
    symbols.stack(stack).iter().copied().filter(|id| is_line(symbols, *id) && seen.insert(*id)).collect()
}

fn is_line(symbols: &Symbols, id: FrameId) -> bool {
    let file = symbols.text(symbols.frame(id).filename);
    is_python(&file) && !symbols.is_lost_frame(id) && !is_torch(&file)
}

fn is_torch(file: &str) -> bool {
    file.contains("/torch/") || file.contains("\\torch\\")
}

/// Splits what a line called in each forward pass into calls.
fn scope(
    input: Replayed<'_>,
    (symbols, best): (&Symbols, &BestFrames),
    phases: &Phases,
    frame: FrameId,
    ids: &[u32],
) -> Scope {
    let stack = |id: u32| input.replay.allocations.stack.get(id as usize).unwrap_or_default();
    let mut passes = Vec::new();
    for made in ids.chunk_by(|one, other| phases.pass(*one) == phases.pass(*other)) {
        let stacks: Vec<u32> = made.iter().map(|id| stack(*id)).collect();
        let parts = calls(&stacks).into_iter().filter_map(|part| made.get(part));
        let mut calls: Vec<Call> = parts.filter_map(|part| Call::of(input, phases, part.to_vec())).collect();
        place_backward(input, phases, &mut calls);
        if !calls.is_empty() {
            passes.push(calls);
        }
    }
    let stacks: FxHashSet<u32> = ids.iter().map(|id| stack(*id)).collect();
    let called: FxHashSet<FrameId> =
        stacks.iter().filter_map(|stack| called_line(symbols, StackId(*stack), frame)).collect();
    let place = short_location(symbols, symbols.frame(frame));
    let callee = callee(symbols, best, frame, (&stacks, &called));
    Scope { frame, place, callee, passes, has_several_lines: called.len() > 1 }
}

/// Returns the next line of a program that a line called.
fn called_line(symbols: &Symbols, stack: StackId, line: FrameId) -> Option<FrameId> {
    let frames = symbols.stack(stack);
    let place = frames.iter().position(|frame| *frame == line)?;
    frames.get(..place)?.iter().rev().copied().find(|frame| is_line(symbols, *frame))
}

/// Tells what a line calls.
fn callee(
    symbols: &Symbols,
    best: &BestFrames,
    line: FrameId,
    (stacks, called): (&FxHashSet<u32>, &FxHashSet<FrameId>),
) -> Callee {
    let is_transformers = |frame: &FrameId| best.library_name(best.library(*frame)) == "transformers";
    if called.iter().chain([&line]).any(is_transformers) {
        return Callee::Transformers;
    }
    let is_container =
        |frame: FrameId| symbols.text(symbols.frame(frame).filename).ends_with("nn/modules/container.py");
    let calls_container = |stack: &u32| {
        let frames = symbols.stack(StackId(*stack));
        let place = frames.iter().position(|frame| *frame == line).unwrap_or_default();
        let inner = frames.get(..place).unwrap_or_default().iter().rev().copied();
        inner.take_while(|frame| !is_line(symbols, *frame)).any(is_container)
    };
    if !stacks.is_empty() && stacks.iter().all(calls_container) {
        return Callee::Sequential;
    }
    let names: FxHashSet<String> = called
        .iter()
        .map(|frame| {
            let name = name_of(symbols, symbols.frame(*frame).name);
            short_name(&name, &symbols.text(symbols.frame(*frame).filename)).to_owned()
        })
        .collect();
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(name), None) => match name.rsplit_once('.') {
            Some((class, "forward")) => {
                let class = class.rsplit('.').next().unwrap_or(class);
                if is_identifier(class) { Callee::Class(class.to_owned()) } else { Callee::Module }
            }
            _ if name == "forward" || name == "__call__" || !is_identifier(&name) => Callee::Module,
            _ => Callee::Function(name),
        },
        _ => Callee::Module,
    }
}

/// Whether a name of a file can stand in lines of Python. What isn't a name there might be code that somebody wants to be pasted.
fn is_identifier(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.starts_with(|first: char| !first.is_ascii_digit())
}

/// Keeps one of several lines that stand for the same calls.
fn distinct(
    input: Replayed<'_>,
    symbols: &Symbols,
    lines_of: &FxHashMap<u32, Vec<FrameId>>,
    found: Vec<Scope>,
) -> Vec<Scope> {
    let is_inside = |inner: FrameId, outer: FrameId| {
        let place = |lines: &[FrameId], frame| lines.iter().position(|known| *known == frame);
        let is_inside = |lines: &Vec<FrameId>| place(lines, inner).zip(place(lines, outer)).is_some_and(|(i, o)| i < o);
        lines_of.values().any(is_inside)
    };
    let saved: Vec<(&Scope, u64)> = found.iter().map(|scope| (scope, scope.saved_bytes(input))).collect();
    let is_named = |scope: &Scope| symbols.text(symbols.frame(scope.frame).name) != "__call__";
    // Of a line and one that it calls as often, with nearly the same memory.
    let is_inner_better = |(inner, less): (&Scope, u64), (outer, more): (&Scope, u64)| {
        let is_unit = |scope: &Scope| scope.has_several_lines && is_named(scope);
        match (less < more || is_unit(inner), is_unit(outer)) {
            // What the outer one calls besides isn't called as often, or the inner one calls the parts of a layer.
            (true, _) => true,
            (false, true) => false,
            (false, false) => is_named(inner),
        }
    };
    let mut keep = vec![true; found.len()];
    for (outer_at, outer) in saved.iter().copied().enumerate() {
        for (inner_at, inner) in saved.iter().copied().enumerate() {
            let is_as_much = u128::from(inner.1) * 100 >= u128::from(outer.1) * NEARLY_ALL_PERCENT;
            let are_same = is_as_much && inner.0.calls() == outer.0.calls();
            if outer_at == inner_at || !are_same || !is_inside(inner.0.frame, outer.0.frame) {
                continue;
            }
            let worse = if is_inner_better(inner, outer) { outer_at } else { inner_at };
            if let Some(keep) = keep.get_mut(worse) {
                *keep = false;
            }
        }
    }
    found.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(scope, _)| scope).collect()
}
