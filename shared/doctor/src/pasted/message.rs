//! PyTorch's out-of-memory error, in the words of releases 1.0 to 2.15, of the native allocator and of cudaMallocAsync.

use super::explanation::{Explanation, Fact, NEXT, TextKind};
use super::size::{after, at_start, before, rounding};
use crate::{cause, remedies};
use query::diagnosis::Cause;
use trace::order::SortFew;
use trace::units::Bytes;

/// From this percentage of the memory that the process reached on, live tensors make a device full.
const FULL_PERCENT: u64 = 95;
/// From this request on, no device has as much.
const NO_DEVICE_HAS: u64 = 1 << 50;
/// The most processes that are read.
const PROCESSES: usize = 1_024;

/// The figures of the error, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// What the driver was asked for.
    pub(super) tried: u64,
    pub(super) total: Option<u64>,
    pub(super) free: Option<u64>,
    /// The most that the process may use.
    pub(super) allowed: Option<u64>,
    /// In live tensors, without what private pools have cached.
    pub(super) allocated: Option<u64>,
    /// Taken from the driver.
    pub(super) reserved: Option<u64>,
    /// Cached in private pools.
    pub(super) private: u64,
    /// All memory of this process, tensors or not.
    pub(super) this_process: Option<u64>,
    /// The processes that are named by number, and their memory.
    pub(super) processes: Vec<(u32, u64)>,
    /// The addresses that an expandable segment may have, if that was too little.
    pub(super) reserve: Option<u64>,
    /// Whether it was refused before the driver was asked.
    pub(super) is_rejected: bool,
    pub(super) is_expandable: bool,
}

/// Reads the last such error in a text; `None` if there is none.
pub(super) fn read(text: &str) -> Option<Message> {
    // A terminal wraps lines; a log may break them.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(at) = text.rfind("Tried to allocate ") {
        return native(text.get(at..)?);
    }
    if let Some(at) = text.rfind("Allocation was preemptively rejected") {
        let tried = after(text.get(at..)?, "Requested size:")?;
        return Some(Message { tried, is_rejected: true, ..Message::default() });
    }
    asynchronous(text.get(text.rfind("would exceed allowed memory")?..)?)
}

fn native(text: &str) -> Option<Message> {
    let rest = text.strip_prefix("Tried to allocate ")?;
    if rest.starts_with("more than 1EB") {
        return Some(Message { tried: 1 << 60, ..Message::default() });
    }
    let tried = at_start(rest)?;
    // Up to 2.0 in parentheses: (GPU 0; 8.00 GiB total capacity; ...).
    if let Some(total) = before(rest, " total capacity;") {
        return Some(Message {
            tried,
            total: Some(total),
            allocated: before(rest, " already allocated"),
            free: before(rest, " free;"),
            allowed: before(rest, " allowed;"),
            reserved: before(rest, " reserved in total").or_else(|| {
                // Up to 1.3, "cached" is what tensors don't hold.
                Some(before(rest, " cached)")?.saturating_add(before(rest, " already allocated")?))
            }),
            ..Message::default()
        });
    }
    let private = before(rest, " allocated in private pools").unwrap_or(0);
    // PyTorch adds the memory that private pools have cached to what it calls allocated.
    let allocated = after(rest, "Of the allocated memory").map(|bytes| bytes.saturating_sub(private));
    let unallocated = before(rest, " is reserved by PyTorch but unallocated");
    let reserved = allocated.zip(unallocated).map(|(held, unused)| held.saturating_add(unused).saturating_add(private));
    let processes = rest.split("Process ").skip(1).take(PROCESSES);
    Some(Message {
        tried,
        // Releases 2.1 and 2.2 misspell it.
        total: after(rest, "has a total capacity of").or_else(|| after(rest, "has a total capacty of")),
        free: after(rest, "of which"),
        allowed: before(rest, " allowed;"),
        allocated,
        reserved,
        private,
        this_process: after(rest, "this process has"),
        processes: processes.filter_map(process).collect(),
        reserve: after(rest, "exceeds the expandable-segment reserve of"),
        is_rejected: false,
        is_expandable: rest.contains("expandable_segments is enabled") || rest.contains("expandable-segment reserve"),
    })
}

/// Reads `2001 has 20.10 GiB memory in use`.
fn process(text: &str) -> Option<(u32, u64)> {
    let (number, rest) = text.split_once(" has ")?;
    let (size, _) = rest.split_once(" memory in use")?;
    Some((number.parse().ok()?, at_start(size)?))
}

/// Reads the error of cudaMallocAsync, whose lines are `Requested : 20.00 MiB`.
fn asynchronous(text: &str) -> Option<Message> {
    let line = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        at_start(rest.trim_start().strip_prefix(':')?)
    };
    let allocated = line("Currently allocated");
    Some(Message {
        tried: line("Requested")?,
        total: line("Device limit"),
        free: line("Free (according to CUDA)"),
        allowed: line("PyTorch limit (set by user-supplied memory fraction)"),
        allocated,
        reserved: allocated,
        ..Message::default()
    })
}

impl Message {
    fn cached(&self) -> u64 {
        self.reserved.zip(self.allocated).map_or(0, |(reserved, held)| reserved.saturating_sub(held))
    }

    /// Returns the one of the named processes that is this one. In a container, PyTorch doesn't recognise it: it holds
    /// at least what is reserved, and the device has no room for that besides the named ones.
    fn own_process(&self) -> Option<(u32, u64)> {
        let reserved = self.reserved.filter(|_| self.this_process.is_none())?;
        let named = self.processes.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let room = self.total?.saturating_sub(self.free?).saturating_sub(named);
        let able = self.processes.iter().copied().filter(|(_, bytes)| *bytes >= reserved);
        if room >= reserved { None } else { able.min_by_key(|(_, bytes)| *bytes) }
    }

    /// Returns the other processes that the error names, the largest first.
    fn named_others(&self) -> Vec<(u32, u64)> {
        let own = self.own_process();
        let mut others: Vec<_> = self.processes.iter().copied().filter(|process| Some(*process) != own).collect();
        others.sort_few_by_key(|(number, bytes)| (std::cmp::Reverse(*bytes), *number));
        others
    }

    /// Returns what the device's other users hold: other processes, and CUDA itself if the error doesn't say what this
    /// process holds.
    fn others(&self) -> Option<u64> {
        let (total, free) = self.total.zip(self.free)?;
        let own = self.this_process.or_else(|| self.own_process().map(|(_, bytes)| bytes));
        let rest = total.saturating_sub(free).saturating_sub(own.or(self.reserved).unwrap_or(0));
        let named = self.named_others();
        Some(match (own, named.is_empty()) {
            // The memory of named processes is known more exactly than the rest of the device.
            (None, false) => named.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes)),
            _ => rest,
        })
    }

    /// Returns whether the error distinguishes this process's memory from that of others.
    fn knows_own(&self) -> bool {
        self.this_process.is_some() || !self.processes.is_empty()
    }

    /// Returns the most that rounding of the error's figures may add to a difference of them.
    fn rounding(&self) -> u64 {
        let figures = [self.total, self.free, self.this_process, self.allocated, self.reserved];
        let named = self.processes.iter().map(|(_, bytes)| *bytes);
        figures.into_iter().flatten().chain(named).map(rounding).fold(0, u64::saturating_add)
    }

    /// Returns who holds what others do, as the start of a sentence.
    fn holders(&self) -> String {
        let bytes = Bytes(self.others().unwrap_or(0));
        let whole = Bytes(self.total.unwrap_or(0));
        match self.named_others().as_slice() {
            [] if self.knows_own() => format!("{bytes} of {whole} were held outside of this process"),
            [] => format!("{bytes} of {whole} were held outside of PyTorch's allocator"),
            [(number, own)] => format!("Process {number} held {} of {whole}", Bytes(*own)),
            [(number, own), ..] => {
                format!("other processes held {bytes} of {whole} (the largest: Process {number} with {})", Bytes(*own))
            }
        }
    }

    fn cause(&self) -> Cause {
        let Some(free) = self.free else {
            return match self.is_rejected || self.reserve.is_some() {
                true => Cause::Limit,
                false if self.tried >= NO_DEVICE_HAS || self.total.is_some_and(|total| self.tried > total) => {
                    Cause::Full
                }
                // The numbers are missing.
                false => Cause::None,
            };
        };
        let (held, cached) = (self.allocated.unwrap_or(0), self.cached());
        if self.total.is_some_and(|total| self.tried > total) {
            return Cause::Full;
        }
        let is_limited = self.allowed.is_some() && free >= self.tried;
        if is_limited || cause::is_enough(free, self.tried) || self.reserve.is_some() {
            return Cause::Limit;
        }
        let left = cached.saturating_add(free);
        let missing = self.tried.saturating_sub(left);
        let others = self.others().zip(self.total);
        if others.is_some_and(|(others, total)| cause::is_of_others(others, total, missing, self.tried)) {
            return Cause::OtherProcess;
        }
        if missing > 0 {
            return Cause::Full;
        }
        let reached = u128::from(held) + u128::from(left);
        if u128::from(held) * 100 >= reached * u128::from(FULL_PERCENT) {
            return Cause::Full;
        }
        if left.saturating_sub(self.private) < self.tried { Cause::OutOfReach } else { Cause::Fragmented }
    }

    fn sentence(&self, cause: Cause) -> String {
        let tried = Bytes(self.tried);
        let (free, held) = (self.free.unwrap_or(0), self.allocated.unwrap_or(0));
        let cached = self.cached();
        let whole = Bytes(self.total.unwrap_or_else(|| held.saturating_add(cached).saturating_add(free)));
        let left = Bytes(cached.saturating_add(free));
        match cause {
            Cause::Limit if self.is_rejected => format!(
                "A limit: a request of {tried} was refused before the driver was asked, since it would exceed \
                 per_process_memory_fraction."
            ),
            Cause::Limit if let Some(reserve) = self.reserve => format!(
                "A limit: an expandable segment may have {} of addresses (expandable_segments_reserve), and the request \
                 takes {tried}.",
                Bytes(reserve)
            ),
            Cause::Limit if let Some(allowed) = self.allowed => format!(
                "A limit: the driver had {} free, enough for the {tried} that it was asked for, but the process may use \
                 only {} of {whole}.",
                Bytes(free),
                Bytes(allowed)
            ),
            Cause::Limit => format!(
                "A limit, most likely: the driver had {} free, enough for the {tried} that it was asked for; a limit \
                 stood in the way, or memory was freed in the meantime.",
                Bytes(free)
            ),
            Cause::None => format!(
                "A request of {tried} failed, but this text doesn't say how much memory there was: paste the whole message, \
                 up to \"reserved by PyTorch but unallocated\", or the output of torch.cuda.memory_summary()."
            ),
            Cause::OtherProcess if self.tried <= cached.saturating_add(free) => format!(
                "Another process, most likely: {}, and {left} was left for the request of {tried}, but no free gap was large \
                 enough.",
                self.holders()
            ),
            Cause::OtherProcess => format!(
                "Another process, most likely: {}, and the request of {tried} was {} short.",
                self.holders(),
                Bytes(self.tried.saturating_sub(cached).saturating_sub(free))
            ),
            Cause::OutOfReach => format!(
                "Out of reach: private pools, such as those of CUDA graphs, have {} cached that the request of {tried} \
                 could not use.",
                Bytes(self.private)
            ),
            Cause::Fragmented => format!(
                "Fragmented, most likely: {} was cached and {} was free, enough together for the {tried} that the driver \
                 was asked for, but in gaps that were too small.",
                Bytes(cached),
                Bytes(free)
            ),
            _ if self.tried >= NO_DEVICE_HAS => {
                format!("Full: one request was for {tried} or more, more than any device has.")
            }
            _ if self.total.is_some_and(|total| self.tried > total) => {
                format!("Full: one request was for {tried}, and the device has {whole} in all.")
            }
            _ if self.tried <= cached.saturating_add(free) => format!(
                "Full: live tensors held {} of {whole}; {left} was left, but no free gap was large enough for {tried}.",
                Bytes(held)
            ),
            _ => format!(
                "Full: live tensors held {} of {whole}, and {left} was left in all for the {tried} that the driver was \
                 asked for.",
                Bytes(held)
            ),
        }
    }

    /// Says that the driver refused what it reported as free, if it did.
    fn refused(&self, cause: Cause) -> String {
        let free = self.free.filter(|_| matches!(cause, Cause::Full | Cause::Fragmented | Cause::OtherProcess));
        free.map(|free| cause::refused_free(free, self.tried)).unwrap_or_default()
    }

    pub(super) fn explain(self) -> Explanation {
        let cause = self.cause();
        // Less than the figures are exact to is nothing.
        let is_exact = |bytes: &u64| *bytes > self.rounding();
        let others = if self.knows_own() {
            "held outside of this process"
        } else {
            "held outside of PyTorch's allocator: this process's CUDA context and other processes"
        };
        let known = [
            ("asked of the driver", Some(self.tried)),
            ("in live tensors", self.allocated),
            ("cached by PyTorch", self.reserved.map(|_| self.cached()).filter(|bytes| *bytes > 0)),
            ("of it in private pools", Some(self.private).filter(|bytes| *bytes > 0)),
            ("free on the device", self.free),
            (others, self.others().filter(is_exact)),
            (
                "held by this process outside of PyTorch's allocator",
                self.this_process.zip(self.reserved).and_then(|(all, own)| all.checked_sub(own)).filter(is_exact),
            ),
            ("allowed to this process", self.allowed),
            ("on the device in all", self.total),
        ];
        let facts = known.into_iter().filter_map(|(name, bytes)| Some(Fact { name, bytes: bytes? })).collect();
        Explanation {
            kind: TextKind::OutOfMemory,
            is_failure: true,
            cause,
            sentence: self.sentence(cause) + &self.refused(cause),
            line: None,
            facts,
            remedies: remedies::by_cause(cause, self.is_expandable),
            next: NEXT,
        }
    }
}
