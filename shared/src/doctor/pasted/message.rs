//! PyTorch's out-of-memory error, in the words of releases 1.0 to 2.15, of the native allocator and of cudaMallocAsync.

use super::explanation::{Explanation, Fact, NEXT, TextKind};
use super::size::{after, at_start, before};
use crate::diagnosis::Cause;
use crate::doctor::remedies;
use crate::units::Bytes;

/// From this percentage of the memory that the process reached on, live tensors make a device full.
const FULL_PERCENT: u64 = 95;
/// Other processes count from this percentage of the device on.
const OTHERS_PERCENT: u64 = 10;
/// The most processes that are read.
const PROCESSES: usize = 1_024;

/// What the error says, in bytes.
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
    /// The memory of processes that are named by number.
    pub(super) processes: Vec<u64>,
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
        processes: processes.filter_map(|text| after(text.get(..text.find(" memory in use")?)?, " has ")).collect(),
        reserve: after(rest, "exceeds the expandable-segment reserve of"),
        is_rejected: false,
        is_expandable: rest.contains("expandable_segments is enabled") || rest.contains("expandable-segment reserve"),
    })
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

    /// Returns what the device's other users hold: other processes, and CUDA itself if the error names no processes.
    fn others(&self) -> Option<u64> {
        let (total, free) = self.total.zip(self.free)?;
        let own = match self.this_process {
            Some(own) => own,
            // In a container, PyTorch doesn't recognise its own process: it is one that holds what is reserved.
            None => {
                let reserved = self.reserved.unwrap_or(0);
                let own = self.processes.iter().copied().filter(|bytes| *bytes >= reserved).min();
                own.unwrap_or(reserved)
            }
        };
        Some(total.saturating_sub(free).saturating_sub(own))
    }

    fn cause(&self) -> Cause {
        let Some(free) = self.free else {
            return if self.is_rejected || self.reserve.is_some() { Cause::Limit } else { Cause::Full };
        };
        let (held, cached) = (self.allocated.unwrap_or(0), self.cached());
        if self.total.is_some_and(|total| self.tried > total) {
            return Cause::Full;
        }
        if free >= self.tried || self.reserve.is_some() {
            return Cause::Limit;
        }
        let left = cached.saturating_add(free);
        if left < self.tried {
            let missing = self.tried - left;
            let is_large = |others: u64| {
                let total = u128::from(self.total.unwrap_or(u64::MAX));
                others >= missing && u128::from(others) * 100 >= total * u128::from(OTHERS_PERCENT)
            };
            return if self.others().is_some_and(is_large) { Cause::OtherProcess } else { Cause::Full };
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
            Cause::OtherProcess => format!(
                "Another process, most likely: {} of {whole} were held outside of PyTorch's allocator, and the request \
                 of {tried} lacked {}.",
                Bytes(self.others().unwrap_or(0)),
                Bytes(self.tried.saturating_sub(cached).saturating_sub(free))
            ),
            Cause::OutOfReach => format!(
                "Out of reach: private pools, such as those of CUDA graphs, have {} cached that the request of {tried} \
                 could not use.",
                Bytes(self.private)
            ),
            Cause::Fragmented => format!(
                "Fragmented, most likely: {} was cached and {} was free, enough together for the {tried} that the driver \
                 was asked for, but not in one piece that the request could use.",
                Bytes(cached),
                Bytes(free)
            ),
            _ if self.free.is_none() => format!("Full: one request was for {tried} or more, more than any device has."),
            _ if self.total.is_some_and(|total| self.tried > total) => {
                format!("Full: one request was for {tried}, and the device has {whole} in all.")
            }
            _ if self.tried <= cached.saturating_add(free) => format!(
                "Full: live tensors held {} of {whole}; what was left, {left}, had no piece large enough for {tried}.",
                Bytes(held)
            ),
            _ => format!(
                "Full: live tensors held {} of {whole}, and {left} was left in all for the {tried} that the driver was \
                 asked for.",
                Bytes(held)
            ),
        }
    }

    pub(super) fn explain(self) -> Explanation {
        let cause = self.cause();
        let known = [
            ("asked of the driver", Some(self.tried)),
            ("in live tensors", self.allocated),
            ("cached by PyTorch", self.reserved.map(|_| self.cached()).filter(|bytes| *bytes > 0)),
            ("of it in private pools", Some(self.private).filter(|bytes| *bytes > 0)),
            ("free on the device", self.free),
            ("held outside of this process", self.others().filter(|bytes| *bytes > 0)),
            (
                "held by this process outside of PyTorch's allocator",
                self.this_process.zip(self.reserved).and_then(|(all, own)| all.checked_sub(own)),
            ),
            ("allowed to this process", self.allowed),
            ("on the device in all", self.total),
        ];
        let facts = known.into_iter().filter_map(|(name, bytes)| Some(Fact { name, bytes: bytes? })).collect();
        Explanation {
            kind: TextKind::OutOfMemory,
            is_failure: true,
            cause,
            sentence: self.sentence(cause),
            facts,
            remedies: remedies::by_cause(cause, self.is_expandable),
            next: NEXT,
        }
    }
}
