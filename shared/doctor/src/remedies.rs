//! The remedies for each cause. They are advice that was not checked on the trace. `whatif` can check the settings.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::obstruction::Obstruction;
use super::request::is_small;
use super::rise::Rise;
use super::{Case, held};
use allocator::rounding::{LARGE_BUFFER, MIN_LARGE_ALLOC, SMALL_BUFFER, SMALL_SIZE};
use analysis::leak::is_cache;
use query::category::Category;
use query::diagnosis::{Cause, FailedRequest, HeldBlock, Verdict};
use query::finding::{Finding, FindingCode, Remedy};
use query::line_in_sentence;
use query::setting::{merged, option, with_option};
use replay::{AllocatorState, whole_pages};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::Bytes;

/// The number of remedies of a verdict.
const MOST: usize = 3;
/// The setting that keeps memory in segments that can grow.
pub const EXPANDABLE: &str = "expandable_segments:True";
/// What makes sizes repeat without a setting.
pub const FEW_LENGTHS: &str = "Make sizes repeat: pad sequences to a few lengths.";
/// Appended to a setting if those of the run are unknown.
const ADD_TO_SETTINGS: &str = " If the run has settings already, add it to them after a comma.";
/// The call that lifts the limit.
const NO_LIMIT: &str = "torch.cuda.set_per_process_memory_fraction(1.0)";
/// The call that computes activations again.
pub const RECOMPUTE: &str = "torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False)";
/// A block that is younger than one part in this many of the events does not live long.
const LONG_PART: u32 = 10;
/// Up to this number of distinct sizes, sizes repeat already.
const FEW_SIZES: usize = 8;
/// From one part in this many of the memory in use on, freed blocks that wait for streams matter.
const WAITING_PART: u64 = 10;

/// Returns what to try after a failure, the most promising first.
pub(super) fn of(
    case: &Case<'_>,
    cause: Cause,
    failed: &FailedRequest,
    (line_and_stack, obstruction): (Option<(&str, u32)>, &Obstruction),
) -> Vec<Remedy> {
    let (line, stack) = line_and_stack.unzip();
    let line = &*line.map_or(Cow::Borrowed("the line that holds most"), line_in_sentence);
    let mut remedies = match cause {
        Cause::None => Vec::new(),
        Cause::Leak => leak(line, stack.and_then(|stack| held::advice(case.symbols, StackId(stack)))),
        Cause::Full => remedies_if_full(case, failed),
        Cause::Fragmented => fragmented(case, failed, obstruction),
        Cause::OutOfReach => out_of_reach(),
        Cause::Limit => limit(failed),
        Cause::OtherProcess => with_other_processes(case, failed),
        Cause::Spike => spike(line),
    };
    if obstruction.largest_before.is_some() && matches!(cause, Cause::Fragmented | Cause::Full) {
        let line = if failed.line.is_empty() { Cow::Borrowed("the program") } else { line_in_sentence(&failed.line) };
        remedies.insert(
            0,
            Remedy::advice(format!(
                "Look why {line} asks for {} at once: bound that size, or do the work in parts.",
                Bytes(failed.requested)
            )),
        );
    }
    let waiting = failed.active.saturating_sub(failed.allocated);
    if waiting > 0 && waiting >= failed.active / WAITING_PART {
        remedies.insert(
            0,
            Remedy::advice(format!(
                "{} of freed blocks waited for other streams: synchronize those streams earlier, or call record_stream on \
                 fewer tensors.",
                Bytes(waiting)
            )),
        );
    }
    remedies.truncate(MOST);
    remedies
}

/// Returns what to try for a cause of which nothing but the name is known.
pub fn by_cause(cause: Cause, is_expandable: bool) -> Vec<Remedy> {
    let mut remedies = match cause {
        Cause::None => Vec::new(),
        Cause::Leak | Cause::Full | Cause::Spike => general_remedies(),
        Cause::Fragmented => (!is_expandable).then(|| grow(None)).into_iter().chain([round(None)]).collect(),
        Cause::OutOfReach => out_of_reach(),
        Cause::Limit => vec![Remedy::advice("Raise the limit.").with_copy(NO_LIMIT)],
        Cause::OtherProcess => other_process(),
    };
    remedies.truncate(MOST);
    remedies
}

/// Adds what a finding about rounding says to a verdict, if less rounding would have made room for the request.
pub(super) fn add_rounding(verdict: &mut Verdict, failed: &FailedRequest, findings: &[Finding]) {
    let rounding = findings.iter().find(|finding| finding.code == FindingCode::Rounding);
    let Some(bytes) = rounding.and_then(|finding| finding.bytes) else { return };
    if verdict.cause == Cause::Full && bytes >= failed.missing {
        let text = format!(
            "Round up less: roundup_power2_divisions took {} at the peak. Set more divisions, or leave it out.",
            Bytes(bytes)
        );
        verdict.remedies.insert(0, Remedy::advice(text));
        verdict.remedies.truncate(MOST);
    }
}

/// Puts a piece of advice before the rest.
pub(super) fn put_first(verdict: &mut Verdict, remedy: Remedy) {
    verdict.remedies.insert(0, remedy);
    verdict.remedies.truncate(MOST);
}

/// Returns what to try before anything has failed.
pub(super) fn before_failure(
    case: &Case<'_>,
    (rise, has_unused_reserve): (Option<&Rise>, bool),
    retries: u32,
) -> Vec<Remedy> {
    const SPLIT: &str = "max_split_size_mb";
    let mut remedies = Vec::new();
    let conf = &case.settings.conf;
    if has_unused_reserve && case.settings.expandable_segments && !option(conf, SPLIT).is_empty() {
        remedies.push(Remedy::advice(format!("Leave {SPLIT} out.")).with_setting(&with_option(conf, SPLIT, "")));
    }
    remedies.extend(rise.map(|rise| of_rise(case, rise)).unwrap_or_default());
    if retries > 0 || has_unused_reserve {
        remedies.extend(expandable(case));
    }
    remedies.truncate(MOST);
    remedies
}

/// Returns the advice to use expandable segments, unless the trace has them.
fn expandable(case: &Case<'_>) -> Option<Remedy> {
    // Settings may be missing, and then the trace shows them.
    let has_them = case.settings.expandable_segments
        || case.trace.segments.iter().any(|segment| segment.is_expandable)
        || case.trace.events.action.iter().any(|action| action == Action::SegmentMap as u8);
    (!has_them).then(|| grow(Some(&case.settings.conf)))
}

/// Adds a setting to copy, together with those of the run if they are known.
fn set(text: &str, conf: Option<&str>, setting: &str) -> Remedy {
    let added = if conf.is_none() { ADD_TO_SETTINGS } else { "" };
    Remedy::advice([text, added].concat()).with_setting(&merged(conf.unwrap_or_default(), setting))
}

fn grow(conf: Option<&str>) -> Remedy {
    let text = "Let segments grow, so that free memory does not end up in gaps: set expandable_segments:True.";
    set(text, conf, EXPANDABLE)
}

/// Returns whether expandable segments would have made room for a request: the pages that gaps hold as a whole go back to
/// the driver, or are joined, and what is left of a gap stays where it is.
pub(super) fn would_grow(case: &Case<'_>, state: &AllocatorState, requested: u64, driver_free: u64) -> bool {
    let pages_in = |i: usize, is_small: bool| {
        let gaps = state.gaps_in(i, &case.replay.allocations);
        gaps.fold(0_u64, |sum, gap| sum.saturating_add(whole_pages(gap.size, is_small)))
    };
    // Pages of private pools stay with them.
    let ranges = state.ranges.iter().enumerate().filter(|(_, range)| !range.pool.is_private());
    let given = ranges.fold(0_u64, |sum, (i, range)| sum.saturating_add(pages_in(i, range.is_small)));
    let page = if is_small(requested) { SMALL_BUFFER } else { LARGE_BUFFER };
    given.saturating_add(driver_free) >= requested.checked_next_multiple_of(page).unwrap_or(u64::MAX)
}

/// Returns the advice to use few sizes, with rounding by the allocator.
fn round(conf: Option<&str>) -> Remedy {
    let text = "Make sizes repeat: pad sequences to a few lengths, or let the allocator round sizes up to steps.";
    set(text, conf, "roundup_power2_divisions:8")
}

/// Returns the advice for gaps that no setting joins.
pub(super) fn allocate_early(line: &str) -> Remedy {
    let of_line = if line.is_empty() { String::new() } else { format!(" of {line}") };
    Remedy::advice(format!(
        "Allocate the large tensor{of_line} once, before the blocks that lie between the gaps, and use it again; or \
         free neighbouring blocks together, so that larger gaps remain."
    ))
}

/// Returns what to try against a line that keeps what it allocates.
fn of_rise(case: &Case<'_>, rise: &Rise) -> Vec<Remedy> {
    leak(&line_in_sentence(&rise.line), held::advice(case.symbols, rise.candidate.stack))
}

fn leak(line: &str, by_stack: Option<&str>) -> Vec<Remedy> {
    vec![
        match by_stack {
            Some(advice) => Remedy::advice(advice),
            None => Remedy::advice(format!(
                "Don't keep GPU tensors from {line}: store numbers (tensor.item()), or copies on the CPU \
                 (tensor.detach().cpu())."
            ))
            .with_copy(".detach().cpu()"),
        },
        Remedy::advice(
            "Look for a list, dictionary or closure that keeps them from step to step, and clear it; a tensor that requires \
             gradients keeps its whole graph.",
        ),
    ]
}

fn remedies_if_full(case: &Case<'_>, failed: &FailedRequest) -> Vec<Remedy> {
    // Such a request would have fitted into a smaller segment.
    let is_in_large = failed.requested > SMALL_SIZE && failed.requested < MIN_LARGE_ALLOC && !failed.is_expandable;
    if is_in_large && failed.asked_of_driver > failed.whole() && failed.requested <= failed.whole() {
        let text = "Take smaller segments: a request between 1 and 10 MiB takes one of large_segment_size_mb (torch 2.11 and \
                    later).";
        return vec![
            set(text, Some(&case.settings.conf), "large_segment_size_mb:11"),
            Remedy::advice("Use a device with more memory."),
        ];
    }
    if !case.roles.is_training(case.symbols) {
        let has_cache = failed.lines.iter().any(|held| is_cache(&held.line));
        // A run that failed in its first forward pass shows no training yet.
        return if has_cache { serving_remedies() } else { general_remedies() };
    }
    let mut remedies = vec![
        Remedy::advice("Use a smaller batch or shorter sequences, and accumulate gradients over several of them."),
        Remedy::advice("Recompute activations in the backward pass instead of keeping them.").with_copy(RECOMPUTE),
    ];
    // What is free would hold this request in one piece: a check on the trace tells whether that helps.
    remedies.extend(expandable(case).filter(|_| failed.fits_if_packed()));
    remedies.push(Remedy::advice(
        "Hold less besides activations: bf16 instead of fp32, an 8-bit optimizer, or weights and optimizer state divided over \
         several devices (FSDP).",
    ));
    remedies
}

/// Returns what to try for a server of a model.
fn serving_remedies() -> Vec<Remedy> {
    vec![
        Remedy::advice("Bound the KV cache: allocate pages of one size, and admit a request only if it has room."),
        Remedy::advice("Serve fewer requests at once, or shorter contexts."),
        Remedy::advice(
            "Hold weights in fewer bytes: quantised, bf16 instead of fp32, or divided over several devices.",
        ),
    ]
}

/// Returns what to try if it is not known whether the program trains.
fn general_remedies() -> Vec<Remedy> {
    vec![
        Remedy::advice("Use a smaller batch, shorter sequences, or fewer requests at once."),
        Remedy::advice(
            "Hold weights in fewer bytes: bf16 instead of fp32, quantised, or divided over several devices.",
        ),
        Remedy::advice("In training, recompute activations in the backward pass instead of keeping them.")
            .with_copy(RECOMPUTE),
    ]
}

fn fragmented(case: &Case<'_>, failed: &FailedRequest, obstruction: &Obstruction) -> Vec<Remedy> {
    let state = case.replay.state_at(failed.position());
    let grows = would_grow(case, &state, failed.requested, failed.driver_free);
    let mut remedies: Vec<Remedy> = expandable(case).filter(|_| grows).into_iter().collect();
    let block = obstruction.block(failed);
    let is_young = |since: u32| failed.position().saturating_sub(since) < failed.position() / LONG_PART;
    let line = line_in_sentence(block.map_or("", |block| block.line.as_str()));
    match block {
        Some(block) if is_of_step(case, block, is_young(block.since)) => remedies.push(
            Remedy::advice(format!(
                "Let a step hold less: its backward pass may still need the blocks of {line}, so that nothing can free them. \
                 Use a smaller batch or shorter sequences, or recompute activations in the backward pass."
            ))
            .with_copy(RECOMPUTE),
        ),
        Some(block) if is_young(block.since) => remedies.push(Remedy::advice(format!(
            "Free the blocks of {line} before the large request, for example with del, if they are not needed any more."
        ))),
        Some(_) => remedies.push(Remedy::advice(format!(
            "Allocate what lives long, such as the blocks of {line}, before what comes and goes, or free them before the \
             large request."
        ))),
        None => {}
    }
    if has_many_sizes(case) {
        let has_rounding = case.settings.roundup_power2_divisions.iter().any(|divisions| *divisions > 1);
        remedies.push(match has_rounding {
            true => Remedy::advice(FEW_LENGTHS),
            false => round(Some(&case.settings.conf)),
        });
    }
    if remedies.is_empty() || !grows && failed.obstacle.is_none() {
        remedies.insert(0, allocate_early(&line_in_sentence(&failed.line)));
    }
    remedies
}

/// Returns whether a block belongs to a step of training, which frees it by itself when the backward pass has used it.
fn is_of_step(case: &Case<'_>, block: &HeldBlock, is_young: bool) -> bool {
    if !case.roles.is_training(case.symbols) {
        return false;
    }
    let category = case.roles.categories(case.replayed(), case.symbols).get(block.allocation);
    is_young || matches!(category, Category::Activations | Category::Gradients | Category::Temporary)
}

/// Returns whether the requests that large pools serve have more than a few sizes.
pub(super) fn has_many_sizes(case: &Case<'_>) -> bool {
    let mut sizes = FxHashSet::default();
    let requested = case.replay.allocations.requested.iter().filter(|bytes| *bytes > SMALL_SIZE);
    requested.into_iter().any(|bytes| sizes.insert(bytes) && sizes.len() > FEW_SIZES)
}

fn out_of_reach() -> Vec<Remedy> {
    vec![
        Remedy::advice(
            "Give cached memory back before the request: segments without a live block return to the driver.",
        )
        .with_copy("torch.cuda.empty_cache()"),
        Remedy::advice(
            "Allocate on one stream, and let CUDA graphs share a pool: what is cached for one serves no other.",
        )
        .with_copy("torch.cuda.graph(g, pool=shared_pool)"),
    ]
}

fn limit(failed: &FailedRequest) -> Vec<Remedy> {
    let need = failed.reserved.saturating_add(failed.asked_of_driver);
    vec![
        Remedy::advice(format!(
            "Raise the limit to at least {}: look for set_per_process_memory_fraction in the program and \
             per_process_memory_fraction in its settings.",
            Bytes(need)
        ))
        .with_copy(NO_LIMIT),
    ]
}

/// Returns what to try if other processes hold memory. If what this program has in gaps would have been enough in one
/// piece, that is also to let segments grow, which a run of the trace can check.
fn with_other_processes(case: &Case<'_>, failed: &FailedRequest) -> Vec<Remedy> {
    let own = expandable(case).filter(|_| failed.fits_if_packed());
    other_process().into_iter().chain(own).collect()
}

fn other_process() -> Vec<Remedy> {
    vec![
        Remedy::advice("See who holds the device's memory, and end what is not needed.").with_copy("nvidia-smi"),
        Remedy::advice("Use another device, or fewer processes on this one."),
    ]
}

fn spike(line: &str) -> Vec<Remedy> {
    vec![
        Remedy::advice(format!(
            "Do what {line} does in parts: copy one tensor at a time to the host and free it before the next."
        ))
        .with_copy("{name: tensor.cpu() for name, tensor in model.state_dict().items()}"),
        Remedy::advice("Free gradients and cached memory first.")
            .with_copy("optimizer.zero_grad(set_to_none=True); torch.cuda.empty_cache()"),
    ]
}
