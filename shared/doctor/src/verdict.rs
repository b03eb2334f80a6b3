//! The verdict: one cause and one sentence for a trace.

use super::blocking::Pins;
use super::course::{MemoryHistory, Spike};
use super::failure::{Failures, asked, lines, takes_more};
use super::obstruction::{Obstruction, place};
use super::rise::Rise;
use super::rules::StepGrowth;
use super::{Case, cause, headline, remedies};
use analysis::retries;
use query::diagnosis::{Cause, FailedRequest, HeldLine, Verdict};
use query::finding::Integrity;
use query::line_in_sentence;
use replay::{AllocatorState, ReservedRange};
use trace::frames::{StackId, StackRecord};
use trace::totals::Totals;
use trace::units::{Bytes, Count, counted, distinguished, percent};

/// From one part in this many of the reserved memory on, segments without a live block are named.
const WHOLE_PART: u64 = 10;
/// Reserved memory that tensors never held is the verdict only above this many bytes: less decides on few devices whether a run fits.
const LEAST_UNUSED_BYTES: u64 = 256 << 20;

/// Reserved memory that live tensors never filled by half: what people see growing in `nvidia-smi`.
#[derive(Clone, Copy, Debug)]
struct UnusedReserve {
    reserved: u64,
    live: u64,
    /// Whether settings that work against each other make it.
    has_both_settings: bool,
}

impl UnusedReserve {
    /// Returns it if there is one, larger than what a line kept.
    fn of(case: &Case<'_>, rise: Option<&Rise>) -> Option<Self> {
        let (reserved, live) = (case.usage.peak_reserved, case.usage.peak_bytes);
        // What was reserved before the first event may have been in use then.
        let unused = reserved.saturating_sub(live.max(case.replay.state_at(0).totals.reserved));
        let least = rise.map_or(0, |rise| rise.candidate.last_bytes).max(LEAST_UNUSED_BYTES);
        let has_both_settings = case.settings.expandable_segments && case.settings.max_split_size.is_some();
        (unused >= reserved / 2 && unused > least).then_some(Self { reserved, live, has_both_settings })
    }

    fn headline(&self, rise: Option<&Rise>) -> String {
        let growing = rise.map_or_else(String::new, |rise| format!("; {}", rise.in_short()));
        format!("Reserved: {}, while live tensors held at most {}{growing}", Bytes(self.reserved), Bytes(self.live))
    }

    /// Returns the sentence, without its end. What grows at the same time is said, too.
    fn sentence(&self, rise: Option<&Rise>) -> String {
        let (reserved, live) = (Bytes(self.reserved), Bytes(self.live));
        let why = match self.has_both_settings {
            true => {
                ", since max_split_size_mb together with expandable_segments:True keeps requests from cached blocks"
            }
            false => "",
        };
        let growing = rise.map_or_else(String::new, |rise| format!(". Growing, too: {}", rise.text()));
        format!("Reserved memory came to {reserved}, while live tensors held at most {live}{why}{growing}")
    }
}

/// Returns the verdict on a request that failed. It may set the failure's cause: a leak or a spike takes precedence over
/// what the memory at that moment shows.
pub(super) fn of_failure(case: &Case<'_>, failures: &Failures<'_>, failed: &mut FailedRequest) -> Verdict {
    let position = failed.position();
    let rise = Rise::until(case, position).filter(|rise| rise.candidate.rise() >= further_bytes(failed));
    let history = (rise.is_none() && depends_on_history(failed)).then(|| MemoryHistory::until(case, position));
    let spike = history.as_ref().and_then(|history| history.spike(case, failed.requested));
    let spike = spike.filter(|spike| spike.bytes >= further_bytes(failed));
    let is_rising = history.is_some_and(|history| history.is_new_high(failed.requested));
    let is_full = cause::is_brimful(failed) || is_rising && cause::is_nearly_full(failed);
    if failed.cause == Cause::Fragmented && is_full {
        failed.cause = Cause::Full;
    }
    let obstruction = Obstruction::of(case, failed);
    let (cause, sentence, about) = if let Some(rise) = &rise {
        (Cause::Leak, leak(failed, rise), Some((rise.line.clone(), rise.candidate.stack.0)))
    } else if let Some(spike) = &spike {
        (Cause::Spike, of_spike(failed, spike), Some((spike.line.clone(), spike.stack.0)))
    } else {
        let about = match failed.cause {
            Cause::Fragmented => obstruction.block(failed).map(|block| (block.line.clone(), block.stack)),
            Cause::Full => {
                let is_lost = |held: &&HeldLine| case.symbols.recorded(StackId(held.stack)) == StackRecord::Lost;
                let held = failed.lines.first().filter(|held| !is_lost(held));
                held.map(|held| (held.line.clone(), held.stack))
            }
            _ => None,
        };
        (failed.cause, obstruction_sentence(failed, failures, (&obstruction, is_rising)), about)
    };
    let headline = headline::of_failure(failed, rise.as_ref(), spike.as_ref());
    failed.cause = cause;
    let (line, stack) = about.unzip();
    // The verdict of a leak or a spike already has its bytes.
    let is_named = rise.is_some() || spike.is_some();
    let refused = match cause {
        Cause::Full | Cause::Fragmented | Cause::OtherProcess => {
            cause::refused_free(failed.driver_free, failed.asked_of_driver)
        }
        _ => String::new(),
    };
    let inexact = if case.trace.losses.is_empty() { "" } else { " Events were lost, so these sizes may be off." };
    let sentence = sentence + &refused + inexact + &holder_sentence(case, failed, line.as_deref().filter(|_| is_named));
    let remedies = remedies::of(case, cause, failed, (line.as_deref().zip(stack), &obstruction));
    let position = Some(position);
    let is_one_of_many = cause == Cause::Fragmented && obstruction.is_one_of_many(failed);
    Verdict { cause, headline, sentence, line, stack, is_one_of_many, position, remedies, ..Verdict::default() }
}

/// Adds to the verdict on a failure that the steps before it needed more and more: with room for that request, or without a limit, a
/// later one would have failed.
pub(super) fn add_growth(verdict: &mut Verdict, growth: Option<&StepGrowth>) {
    let is_about_room = matches!(verdict.cause, Cause::Full | Cause::Fragmented | Cause::Limit);
    let Some(growth) = growth.filter(|_| is_about_room && verdict.position.is_some()) else { return };
    verdict.sentence = format!("Growing: {growth}. {}", verdict.sentence);
    verdict.headline = format!("Growing, then {}", uncapitalized(&verdict.headline));
    verdict.is_growing = true;
    remedies::put_first(verdict, growth.remedy());
}

/// Returns the sentence about the line that held most, unless it is `named` already.
fn holder_sentence(case: &Case<'_>, failed: &FailedRequest, named: Option<&str>) -> String {
    let Some(held) = failed.lines.first().filter(|held| Some(held.line.as_str()) != named) else {
        return String::new();
    };
    // Both are requested bytes, as in every table of lines.
    let live = failed.categories.iter().fold(0_u64, |sum, of| sum.saturating_add(of.bytes)).max(held.bytes);
    let percent = percent(held.bytes, live);
    let (bytes, blocks) = (Bytes(held.bytes), counted(held.count.into(), "allocation"));
    match unnamed_holder(case, held) {
        Some(how) => format!(" Most was held {how}: {bytes} in {blocks}, {percent} % of what was live."),
        None => {
            format!(" {} held most: {bytes} in {blocks}, {percent} % of what was live.", line_in_sentence(&held.line))
        }
    }
}

/// Returns how something was held that no line is known of; `None` if one is.
fn unnamed_holder(case: &Case<'_>, held: &HeldLine) -> Option<&'static str> {
    match case.symbols.recorded(StackId(held.stack)) {
        StackRecord::Nothing => Some("without a recorded stack"),
        StackRecord::Lost => Some("by stacks that were lost to damage"),
        StackRecord::Partly | StackRecord::Whole => None,
    }
}

/// Returns the further bytes that had to be free for the request to fit. If free memory is in pieces, these are as many
/// as the request.
fn further_bytes(failed: &FailedRequest) -> u64 {
    if failed.fits_if_packed() { failed.requested } else { failed.missing }
}

/// Returns whether the history of the memory matters.
fn depends_on_history(failed: &FailedRequest) -> bool {
    matches!(failed.cause, Cause::Full | Cause::Fragmented | Cause::OtherProcess)
}

fn leak(failed: &FailedRequest, rise: &Rise) -> String {
    let (rise, requested) = (rise.text(), Bytes(failed.requested));
    if failed.fits_if_packed() && failed.gaps > 1 {
        let (free, gaps, usable) =
            (Bytes(failed.cached), counted(failed.gaps.into(), "gap"), Bytes(failed.largest_servable));
        format!(
            "A leak: {rise}. A request of {requested} then failed: {free} was free in {gaps}, and the largest gap for it was \
             {usable}."
        )
    } else {
        format!("A leak: {rise}. A request of {requested} then no longer fitted.")
    }
}

fn of_spike(failed: &FailedRequest, spike: &Spike) -> String {
    format!(
        "A spike: {} held {} for the moment in which a request of {} failed; the program had never needed more than {} \
         before.",
        line_in_sentence(&spike.line),
        Bytes(spike.bytes),
        Bytes(failed.requested),
        Bytes(spike.otherwise)
    )
}

/// Returns the sentence about what stood in the way at that moment.
fn obstruction_sentence(
    failed: &FailedRequest,
    failures: &Failures<'_>,
    (obstruction, is_rising): (&Obstruction, bool),
) -> String {
    let request = Bytes(failed.requested);
    let free = Bytes(failed.driver_free);
    let whole = Bytes(failed.whole());
    match failed.cause {
        Cause::Limit => {
            let limit = failures.fraction().map_or_else(
                || "a limit of this process, such as set_per_process_memory_fraction,".to_owned(),
                |share| format!("per_process_memory_fraction:{share}"),
            );
            format!(
                "A limit: the driver had {free} free and was asked for {}, so {limit} stood in the way, or memory was \
                 freed in the meantime.",
                Bytes(failed.asked_of_driver)
            )
        }
        Cause::OtherProcess => {
            let others = Bytes(failed.held_by_others.unwrap_or_default());
            let rest = if failed.fits_if_packed() {
                let left = Bytes(failed.cached.saturating_add(failed.driver_free));
                format!("{request} was requested; of the {left} that was left, no free gap was large enough")
            } else {
                format!("{request} was requested, {} short", Bytes(failed.missing))
            };
            format!("Another process: {others} of {whole} was held outside of this program's allocator; {rest}.")
        }
        Cause::OutOfReach => out_of_reach(failed),
        Cause::Fragmented => format!(
            "Fragmented: {}{} was free in {} and {free} at the driver, but the largest gap for {} was {}{}.",
            request_size(failed, obstruction),
            Bytes(failed.cached),
            counted(failed.gaps.into(), "gap"),
            if obstruction.largest_before.is_some() { "it".to_owned() } else { format!("a request of {request}") },
            Bytes(failed.largest_servable),
            obstacle(failed, obstruction)
        ),
        _ => full_sentence(failed, is_rising),
    }
}

/// Returns how large a request is that asks for most of the memory at once.
fn request_size(failed: &FailedRequest, obstruction: &Obstruction) -> String {
    let Some(before) = obstruction.largest_before else { return String::new() };
    let (request, whole) = (Bytes(failed.requested), Bytes(failed.whole()));
    let percent = percent(failed.requested, failed.whole());
    let times = Count(failed.requested / before.max(1));
    format!("one request was for {request}, {percent} % of the {whole} and {times} times as much as any before; ")
}

fn obstacle(failed: &FailedRequest, obstruction: &Obstruction) -> String {
    let Some(obstacle) = place(failed) else {
        // No segment that is given back makes room for most of the memory at once.
        return obstruction
            .pins
            .as_ref()
            .filter(|_| obstruction.largest_before.is_none())
            .map(pinned)
            .unwrap_or_default();
    };
    let line = line_in_sentence(obstacle.largest.first().map_or("", |block| block.line.as_str()));
    let blocks = match obstacle.blocks {
        1 => format!("one block of {} from {line}", Bytes(obstacle.bytes)),
        count => {
            format!("{} of {} in all, the largest from {line},", counted(count.into(), "block"), Bytes(obstacle.bytes))
        }
    };
    format!("; {blocks} stood in the way where it was closest to fitting")
}

fn pinned(pins: &Pins) -> String {
    let Pins { block, own: (own, own_bytes), all: (all, all_bytes), segments } = pins;
    let kept = match segments {
        1 => "kept the segment with these gaps from being released".to_owned(),
        count => format!("kept the {} with these gaps from being released", counted((*count).into(), "segment")),
    };
    let line = line_in_sentence(&block.line);
    if own == all {
        return format!("; {} from {line}, {} in all, {kept}", counted((*own).into(), "block"), Bytes(*own_bytes));
    }
    let (own, all) = (Count((*own).into()), counted((*all).into(), "block"));
    format!("; {all}, {} in all, {own} of them from {line}, {kept}", Bytes(*all_bytes))
}

fn out_of_reach(failed: &FailedRequest) -> String {
    let request = Bytes(failed.requested);
    if failed.largest_servable >= failed.requested {
        return format!(
            "Out of reach: a gap of {} was free, but a request of {request} could not use it: it was for a private \
             pool, or max_split_size_mb keeps large blocks whole.",
            Bytes(failed.largest_servable)
        );
    }
    let can = match failed.largest_servable {
        0 => "had no free gap that it could use".to_owned(),
        bytes => format!("could use {} at most", Bytes(bytes)),
    };
    format!(
        "Out of reach: a gap of {} was free in another pool or for another stream, but a request of {request} {can}.",
        Bytes(failed.largest_gap)
    )
}

fn full_sentence(failed: &FailedRequest, is_rising: bool) -> String {
    let FailedRequest { requested, asked_of_driver, driver_free, cached, allocated, .. } = *failed;
    let whole = failed.whole();
    let request = Bytes(requested);
    // What others held while the capacity is not known can't be distinguished from memory that the device lacks.
    let owner = if failed.capacity.is_some() { "the device has" } else { "this process could use" };
    let need = if takes_more(failed) {
        format!(", for which the driver was asked for {},", asked(failed))
    } else {
        String::new()
    };
    if requested > whole {
        return format!("Full: one request was for {request}, and {owner} {} in all.", Bytes(whole));
    }
    if asked_of_driver > whole {
        return format!("Full: a request of {request} takes {}, and {owner} {} in all.", asked(failed), Bytes(whole));
    }
    let (live, all) = distinguished(Bytes(allocated), Bytes(whole));
    let held = format!("Full: live tensors held {live} of {all}");
    let left = cached.saturating_add(driver_free);
    if failed.fits_if_packed() {
        let held = if is_rising {
            format!("{held}, and with this request it would have been more than ever before")
        } else {
            held
        };
        let largest = Bytes(failed.largest_servable);
        return format!(
            "{held}. {request} was requested; {} was free, but the largest gap for it was {largest}.",
            Bytes(left)
        );
    }
    let missing = Bytes(failed.missing);
    if left == 0 {
        return format!("{held}, nothing was left, and a request of {request}{need} failed.");
    }
    // The driver gives whole pages, so what is missing is more than the difference.
    let is_rounded = failed.missing > requested.saturating_sub(left) && need.is_empty();
    let why = if is_rounded && failed.is_expandable {
        ", since an expandable segment grows by whole pages"
    } else if is_rounded {
        ", since the driver gives whole segments"
    } else {
        ""
    };
    format!(
        "{held}. {request} was requested{}; {} was free, {missing} short even without fragmentation{why}.",
        need.trim_end_matches(','),
        Bytes(left)
    )
}

/// Returns what part of the gaps are segments without a block in use, if that is worth mentioning. `empty_cache`
/// releases those of a private pool only once its graphs and `MemPool` objects are gone, which a trace doesn't show.
fn whole_segments(state: &AllocatorState) -> String {
    let is_whole = |(i, range): &(usize, &ReservedRange)| !range.is_expandable && state.active_in(*i).is_empty();
    let whole = |is_private: bool| {
        let ranges = state.ranges.iter().enumerate().filter(is_whole);
        let bytes = ranges.map(|(_, range)| if range.pool.is_private() == is_private { range.size } else { 0 });
        bytes.fold(0_u64, u64::saturating_add)
    };
    let (released, kept) = (whole(false), whole(true));
    let is_much = |bytes: u64| bytes > 0 && bytes >= state.totals.reserved / WHOLE_PART;
    let parts = [
        is_much(released).then(|| {
            let released = Bytes(released);
            format!("{released} of it in segments without a live block, which torch.cuda.empty_cache() releases")
        }),
        is_much(kept).then(|| {
            let kept = Bytes(kept);
            format!(
                "{kept} of it in empty segments of private pools, which stay until their graphs and MemPools are gone"
            )
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Returns a text with its first letter in lower case.
fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Returns what a file is that lacks a part, what it lacks, and in a sentence what is not known for that.
const fn incomplete(integrity: Integrity) -> Option<(&'static str, &'static str, &'static str)> {
    match integrity {
        Integrity { is_cut: true, .. } => {
            Some(("Cut off", "the end is missing", "The file is cut off, so how the run ended is not known"))
        }
        Integrity { is_damaged: true, .. } => {
            Some(("Damaged", "a part is missing", "The file is damaged, so whether a request failed is not known"))
        }
        _ => None,
    }
}

/// Returns the verdict on a trace in which no request failed: what it used at its peak, and what will fail if the run
/// continues.
pub(super) fn without_failure(case: &Case<'_>) -> Verdict {
    let peak = case.usage.peak_position;
    let state = case.replay.state_at(peak);
    let totals = state.totals;
    let held = lines(case, case.replay, peak).into_iter().next();
    let rise = Rise::until(case, case.replay.positions());
    let retries = retries::count(case.trace);
    // One event is what recording leaves that keeps the newest one only.
    let has_history = case.trace.events.len() > 1;
    let used = format!("{} allocated at the peak, {} reserved", Bytes(totals.allocated), Bytes(totals.reserved));
    let unused_reserve = UnusedReserve::of(case, rise.as_ref());
    let (headline, start) = if !has_history && case.integrity.is_cut {
        let headline = "Cut off before the first event".to_owned();
        let start = "The file ends before its first event, so whether a request failed is not known".to_owned();
        if totals == Totals::default() {
            return Verdict { headline, sentence: start + ".", ..Verdict::default() };
        }
        (headline, start)
    } else if !has_history && case.integrity.is_damaged {
        let headline = format!("Damaged: {} allocated, {} reserved", Bytes(totals.allocated), Bytes(totals.reserved));
        (
            headline,
            "No history could be read from the damaged file, so whether a request failed is not known".to_owned(),
        )
    } else if !has_history {
        let headline =
            format!("No history: {} allocated, {} reserved", Bytes(totals.allocated), Bytes(totals.reserved));
        (headline, "There is no history, so whether a request failed is not known".to_owned())
    } else if let Some((what, missing, start)) = incomplete(case.integrity) {
        // What is missing may be the failure.
        match &rise {
            None => (format!("{what}, {missing}: {used}"), start.to_owned()),
            Some(rise) => (
                format!("Growing: {}, {missing}", rise.in_short()),
                format!("Growing, as far as was read: {}", rise.text()),
            ),
        }
    } else if let Some(unused_reserve) = &unused_reserve {
        (unused_reserve.headline(rise.as_ref()), unused_reserve.sentence(rise.as_ref()))
    } else if let Some(rise) = &rise {
        let headline = format!("Growing: {}, nothing failed yet", rise.in_short());
        (headline, format!("Growing, but nothing failed yet: {}", rise.text()))
    } else if retries > 0 {
        let requests = counted(retries.into(), "request");
        (
            format!("Tight: {requests} waited until cached memory was released"),
            format!("Tight, but nothing failed: {requests} had to wait until cached memory was released"),
        )
    } else if case.usage.peak_bytes == 0 && totals.reserved == 0 {
        let headline = "No request failed, and the trace holds no memory".to_owned();
        return Verdict { sentence: format!("{headline}."), headline, ..Verdict::default() };
    } else {
        let is_whole = case.trace.losses.is_empty()
            && case.integrity == Integrity::default()
            && case.replay.state_at(0).totals.reserved == 0;
        let start = if is_whole { "No request failed" } else { "No recorded request failed" };
        (format!("{start}: {used}"), start.to_owned())
    };
    let most = held.as_ref().map_or_else(String::new, |held| match unnamed_holder(case, held) {
        Some(how) => format!(", {} of it {how}", Bytes(held.bytes)),
        None => format!(", {} of it by {}", Bytes(held.bytes), line_in_sentence(&held.line)),
    });
    let held = held.filter(|held| unnamed_holder(case, held).is_none());
    let gaps = match totals.cached {
        0 => "and nothing was cached".to_owned(),
        cached => format!(
            "and {} was free in {}{}, the largest {}",
            Bytes(cached),
            counted(totals.gaps.into(), "gap"),
            whole_segments(&state),
            Bytes(totals.largest_gap)
        ),
    };
    let when = if has_history { "at the peak" } else { "when the snapshot was taken" };
    let reserved = if totals.allocated > totals.reserved {
        // Only a trace that contradicts its segments.
        format!("more than the {} of the segments that the file names", Bytes(totals.reserved))
    } else {
        format!("{} was reserved, {gaps}", Bytes(totals.reserved))
    };
    let sentence = format!("{start}; {when}, {} was allocated{most}, {reserved}.", Bytes(totals.allocated));
    let about = rise
        .as_ref()
        .map(|rise| (rise.line.clone(), rise.candidate.stack.0))
        .or_else(|| held.map(|held| (held.line, held.stack)));
    let remedies = remedies::before_failure(case, (rise.as_ref(), unused_reserve.is_some()), retries);
    let (line, stack) = about.unzip();
    let is_growing = rise.is_some();
    Verdict { headline, sentence, line, stack, is_growing, remedies, ..Verdict::default() }
}
