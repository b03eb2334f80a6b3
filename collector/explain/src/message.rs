//! PyTorch's out-of-memory error, in the words of releases 1.0 to 2.15, of the native allocator and of cudaMallocAsync.

use crate::backend::Backend;
use crate::contradiction::Contradiction;
use crate::explanation::{Explanation, Fact, NEXT, NEXT_UP_TO_2_0, TextKind};
use crate::layout;
use crate::size::{after, at_start, before, rounding};
use doctor::{cause, remedies};
use query::diagnosis::Cause;
use query::finding::Remedy;
use trace::order::SortFew;
use trace::units::{Bytes, Count};

/// From this percentage of the memory that the process reached on, live tensors make a device full.
const FULL_PERCENT: u64 = 95;
/// From this request on, no device has as much.
const NO_DEVICE_HAS: u64 = 1 << 50;
/// From this figure on, it stands for one that isn't known, or for no limit: 2^64 bytes.
const UNKNOWN: u64 = 1 << 60;
/// The most processes that are read.
const PROCESSES: usize = 1_024;
/// The most errors of a text that are read, the last ones.
const ERRORS: usize = 256;
/// Intel's drivers refuse single allocations of this size and more by default.
const RELAXED: u64 = 4 << 30;
/// The most that a process which uses nothing of a device holds of it.
const CONTEXT: u64 = 2 << 30;
/// What helps where a driver refuses what it reports as free.
const LEAVE_ROOM: &str = "Leave room: another process may have taken the memory and given it back, and Windows and WSL give out less than \
                          they report.";
/// What CUDA itself takes for a process, about.
const USUAL_CONTEXT: u64 = 600 << 20;

/// The figures of the error, in bytes. What the text doesn't say is `None`, and never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) backend: Backend,
    /// `GPU 1`, as it is written.
    pub(super) device: Option<String>,
    /// The rank that a launcher wrote before it.
    pub(super) rank: Option<u32>,
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
    /// Whether the release that wrote it knows expandable segments: 2.1 and later.
    pub(super) knows_expandable: bool,
    /// Whether it is an error of a class of its own, as from 1.13 on.
    pub(super) is_own_class: bool,
    /// Whether the driver doesn't tell what this process holds.
    pub(super) is_process_hidden: bool,
    /// Whether the driver's own pool served the request (`backend:cudaMallocAsync`), of which nobody knows what it has cached.
    pub(super) is_asynchronous: bool,
}

/// Reads all such errors of a text, in order; equal ones that follow each other count as one.
pub(super) fn read(text: &str) -> Vec<Message> {
    let [spaced, unbroken] = [false, true].map(|breaks_words| read_joined(&layout::joined(text, breaks_words)));
    // A terminal may break a line within a word, and then more is understood without a space there.
    let figures = |messages: &[Message]| messages.iter().map(Message::figures).sum::<usize>();
    if figures(&unbroken) > figures(&spaced) { unbroken } else { spaced }
}

fn read_joined(text: &str) -> Vec<Message> {
    const BEGINNINGS: [&str; 3] =
        ["Tried to allocate ", "Allocation was preemptively rejected", "would exceed allowed memory"];
    let mut starts: Vec<usize> =
        BEGINNINGS.iter().flat_map(|beginning| text.match_indices(beginning)).map(|(at, _)| at).collect();
    starts.sort_few_by_key(|at| *at);
    let starts = starts.split_off(starts.len().saturating_sub(ERRORS));
    let is_own_class = text.contains("OutOfMemoryError");
    let mut found: Vec<Message> = Vec::new();
    for (i, start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(text.len());
        let Some((head, own)) = text.get(..*start).zip(text.get(*start..end)) else { continue };
        let own = layout::without_ranks(own);
        let Some(message) = one(&own) else { continue };
        let tail = head.get(head.len().saturating_sub(64)..).unwrap_or_default();
        let message = Message {
            backend: Backend::before(head),
            device: message.device.clone().or_else(|| device(tail)),
            rank: layout::rank_before(text, *start),
            is_own_class,
            ..message
        };
        if found.last() != Some(&message) {
            found.push(message);
        }
    }
    found
}

/// Reads the error that a text begins with.
fn one(text: &str) -> Option<Message> {
    if text.starts_with("Tried to allocate ") {
        return native(text);
    }
    if text.starts_with("Allocation was preemptively rejected") {
        let tried = after(text, "Requested size:")?;
        return Some(Message { tried, is_rejected: true, knows_expandable: true, ..Message::default() });
    }
    asynchronous(text)
}

/// Reads the device that a text names: `GPU 1`.
fn device(text: &str) -> Option<String> {
    ["GPU ", "NPU ", "device "].iter().find_map(|word| {
        let (_, rest) = text.rsplit_once(word)?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).take(6).collect();
        let word = if *word == "NPU " { "NPU" } else { "GPU" };
        (!number.is_empty()).then(|| format!("{word} {number}"))
    })
}

fn native(text: &str) -> Option<Message> {
    let rest = text.strip_prefix("Tried to allocate ")?;
    if rest.starts_with("more than 1EB") {
        return Some(Message { tried: UNKNOWN, ..Message::default() });
    }
    let tried = at_start(rest)?;
    let figure = |figure: Option<u64>| figure.filter(|bytes| *bytes < UNKNOWN);
    let device = device(rest.get(..rest.len().min(64)).unwrap_or(rest));
    // Up to 2.0 in parentheses: (GPU 0; 8.00 GiB total capacity; ...).
    if let Some(total) = before(rest, " total capacity;") {
        let allocated = before(rest, " already allocated");
        // Up to 1.3, "cached" is what tensors don't hold.
        let cached = || before(rest, " cached)").zip(allocated).map(|(cached, held)| cached.saturating_add(held));
        return Some(Message {
            device,
            tried,
            total: Some(total),
            allocated,
            free: before(rest, " free;"),
            allowed: figure(before(rest, " allowed;")),
            reserved: before(rest, " reserved in total").or_else(cached),
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
        device,
        tried,
        // Releases 2.1 and 2.2 misspell it.
        total: after(rest, "has a total capacity of").or_else(|| after(rest, "has a total capacty of")),
        free: after(rest, "of which"),
        allowed: figure(before(rest, " allowed;")),
        allocated,
        reserved,
        private,
        this_process: figure(after(rest, "this process has")),
        processes: processes.filter_map(process).collect(),
        reserve: after(rest, "exceeds the expandable-segment reserve of"),
        is_process_hidden: after(rest, "this process has").is_some_and(|bytes| bytes >= UNKNOWN),
        is_expandable: rest.contains("expandable_segments is enabled") || rest.contains("expandable-segment reserve"),
        knows_expandable: true,
        ..Message::default()
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
        at_start(rest.trim_start().strip_prefix(':')?).filter(|bytes| *bytes < UNKNOWN)
    };
    Some(Message {
        tried: line("Requested")?,
        total: line("Device limit"),
        free: line("Free (according to CUDA)"),
        allowed: line("PyTorch limit (set by user-supplied memory fraction)"),
        allocated: line("Currently allocated"),
        knows_expandable: true,
        is_asynchronous: true,
        ..Message::default()
    })
}

/// Why a request failed, as far as the figures tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// A cause that the figures support.
    Cause(Cause),
    /// The size itself is wrong.
    Impossible,
    /// The figures can't be true together.
    Contradiction(Contradiction),
    /// The driver refused although it had enough, and nothing limits the process.
    Refused,
    /// The driver's own pool, or other processes, hold what is missing.
    DriverPool,
    /// The text lacks the figures that would tell.
    Unknown,
}

impl Message {
    /// Returns how many figures the text has.
    fn figures(&self) -> usize {
        let all = [self.total, self.free, self.allowed, self.allocated, self.reserved, self.this_process, self.reserve];
        1 + all.into_iter().flatten().count() + self.processes.len()
    }

    /// Returns what PyTorch has cached; `None` if the text doesn't say.
    fn cached(&self) -> Option<u64> {
        Some(self.reserved?.saturating_sub(self.allocated?))
    }

    /// Returns what is free on the device; on Intel's, whose error doesn't say, all that PyTorch didn't take.
    fn free(&self) -> Option<u64> {
        let untaken = || self.total.zip(self.reserved).map(|(total, reserved)| total.saturating_sub(reserved));
        self.free.or_else(|| untaken().filter(|_| self.backend == Backend::Xpu))
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
    /// process holds. `None` if the text lacks what PyTorch took.
    fn others(&self) -> Option<u64> {
        let (total, free) = self.total.zip(self.free)?;
        let own = self.this_process.or_else(|| self.own_process().map(|(_, bytes)| bytes));
        let named = self.named_others();
        if own.is_none() && !named.is_empty() && self.reserved.is_some() {
            // The memory of named processes is known more exactly than the rest of the device.
            return Some(named.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes)));
        }
        Some(total.saturating_sub(free).saturating_sub(own.or(self.reserved)?))
    }

    /// Returns how many other processes hold about as much as each other, and as little as a context takes, and the largest of
    /// them: the contexts of other ranks, most likely.
    fn contexts(&self) -> Option<(usize, u64)> {
        let others = self.named_others();
        let (largest, least) = (others.first()?.1, others.last()?.1);
        (others.len() >= 2 && largest <= CONTEXT && least >= largest / 4 * 3).then_some((others.len(), largest))
    }

    /// Returns whether the error distinguishes this process's memory from that of others.
    fn knows_own(&self) -> bool {
        self.this_process.is_some() || !self.processes.is_empty()
    }

    /// Returns the most that rounding of the error's figures may add to a difference of them.
    pub(super) fn rounding(&self) -> u64 {
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

    fn reading(&self) -> Reading {
        if self.tried >= NO_DEVICE_HAS {
            return Reading::Impossible;
        }
        if self.is_rejected || self.reserve.is_some() {
            return Reading::Cause(Cause::Limit);
        }
        if let Some(contradiction) = Contradiction::of(self) {
            return Reading::Contradiction(contradiction);
        }
        if self.total.is_some_and(|total| self.tried > total) {
            return Reading::Cause(Cause::Full);
        }
        let Some(free) = self.free() else { return Reading::Unknown };
        if self.allowed.is_some() && free >= self.tried {
            return Reading::Cause(Cause::Limit);
        }
        if cause::is_enough(free, self.tried) {
            return Reading::Refused;
        }
        let Some(held) = self.allocated else { return Reading::Unknown };
        if self.is_asynchronous {
            let pool = self.total.map(|total| total.saturating_sub(free).saturating_sub(held));
            let is_enough = pool.is_some_and(|pool| pool.saturating_add(free) >= self.tried);
            return if is_enough { Reading::DriverPool } else { Reading::Cause(Cause::Full) };
        }
        let Some(cached) = self.cached() else { return Reading::Unknown };
        let left = cached.saturating_add(free);
        let missing = self.tried.saturating_sub(left);
        // Unless the error says what this process holds, a part of the rest is its own context.
        let context = if self.knows_own() { 0 } else { USUAL_CONTEXT };
        let others = self.others().map(|others| others.saturating_sub(context)).zip(self.total);
        let is_of_others = |(others, total): (u64, u64)| {
            // What is just enough is not, as far as the figures are exact, where others hold a large part.
            let is_scarce = left < self.tried.saturating_add(self.rounding()) && others >= total / 4;
            cause::is_of_others(others, total, missing.max(u64::from(is_scarce)), self.tried)
        };
        if others.is_some_and(is_of_others) {
            return Reading::Cause(Cause::OtherProcess);
        }
        if missing > 0 {
            return Reading::Cause(Cause::Full);
        }
        let reached = u128::from(held) + u128::from(left);
        if u128::from(held) * 100 >= reached * u128::from(FULL_PERCENT) {
            return Reading::Cause(Cause::Full);
        }
        let is_in_reach = left.saturating_sub(self.private) >= self.tried;
        Reading::Cause(if is_in_reach { Cause::Fragmented } else { Cause::OutOfReach })
    }

    fn sentence(&self, reading: Reading) -> String {
        let tried = Bytes(self.tried);
        match reading {
            Reading::Cause(cause) => self.sentence_of_cause(cause),
            Reading::Impossible => format!(
                "The size itself is wrong: no device has {tried}. It was negative, overflowed, or was read from data that never \
                 arrived."
            ),
            Reading::Contradiction(contradiction) => contradiction.sentence(self),
            Reading::Refused => {
                let free = Bytes(self.free().unwrap_or(0));
                let unlimited = match self.is_asynchronous {
                    true => "PyTorch's own limit was not set.",
                    false if self.is_own_class || self.knows_expandable => {
                        "PyTorch's own limit was not set, or the error would say \"allowed\"."
                    }
                    false => "PyTorch's own limit, which releases before 1.8 don't have, was not set.",
                };
                match self.backend {
                    Backend::Xpu if self.tried >= RELAXED => format!(
                        "The driver refused {tried} at once, though {free} was not taken: Intel's drivers refuse single \
                         allocations of 4 GiB and more by default."
                    ),
                    Backend::Xpu if self.free.is_none() => {
                        format!("The driver refused {tried}, though PyTorch had left {free} of the device.")
                    }
                    _ => format!("The driver refused {tried}, though it reported {free} as free. {unlimited}"),
                }
            }
            Reading::DriverPool => {
                let (total, free) = (self.total.unwrap_or(0), self.free.unwrap_or(0));
                let held = self.allocated.unwrap_or(0);
                format!(
                    "Live tensors held {} of {}. {} is held by the driver's pool of this process (freed memory that it keeps, \
                     or gaps), or by other processes: with cudaMallocAsync, the error can't tell which.",
                    Bytes(held),
                    Bytes(total),
                    Bytes(total.saturating_sub(free).saturating_sub(held))
                )
            }
            Reading::Unknown => self.what_is_missing(),
        }
    }

    /// Says what the text has, and that the rest is missing.
    fn what_is_missing(&self) -> String {
        let tried = Bytes(self.tried);
        let ending = match self.knows_expandable || self.total.is_none() {
            true => "\"reserved by PyTorch but unallocated\"",
            false => "\"reserved in total by PyTorch\"",
        };
        let Some((total, free)) = self.total.zip(self.free) else {
            return format!(
                "A request of {tried} failed, but this text doesn't say how much memory there was: paste the whole message, \
                 up to {ending}, or the output of torch.cuda.memory_summary()."
            );
        };
        let held = match self.allocated {
            Some(held) => format!("{} of {} was in live tensors and {}", Bytes(held), Bytes(total), Bytes(free)),
            None => format!("{} of {}", Bytes(free), Bytes(total)),
        };
        let rest = Bytes(total.saturating_sub(free).saturating_sub(self.allocated.unwrap_or(0)));
        let (named, wanted) = match self.named_others().as_slice() {
            [] => (String::new(), format!("who held the other {rest}")),
            [(number, bytes)] => {
                (format!(" Process {number} held {}.", Bytes(*bytes)), "whether that is this one".to_owned())
            }
            [(number, bytes), others @ ..] => {
                let count = Count(1 + others.len() as u64);
                let named =
                    format!(" It names {count} processes (the largest: Process {number} with {}).", Bytes(*bytes));
                (named, "which of them is this one".to_owned())
            }
        };
        format!(
            "A request of {tried} failed while {held} was free.{named} The text ends before PyTorch's own figures, which would \
             tell {wanted}: paste the whole message, up to {ending}."
        )
    }

    fn sentence_of_cause(&self, cause: Cause) -> String {
        let tried = Bytes(self.tried);
        let (free, held) = (self.free().unwrap_or(0), self.allocated.unwrap_or(0));
        let cached = self.cached().unwrap_or(0);
        let whole = Bytes(self.total.unwrap_or_else(|| held.saturating_add(cached).saturating_add(free)));
        let left = Bytes(cached.saturating_add(free));
        let other = match self.backend {
            _ if self.knows_own() => "Another process, most likely",
            Backend::Hip => "Another process, or on an APU the host, most likely",
            _ => "Another process, or this one outside of PyTorch, most likely",
        };
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
            Cause::Limit => format!(
                "A limit: the driver had {} free, enough for the {tried} that it was asked for, but the process may use \
                 only {} of {whole}.",
                Bytes(free),
                Bytes(self.allowed.unwrap_or(0))
            ),
            Cause::OtherProcess if self.tried <= cached.saturating_add(free) => format!(
                "{other}: {}, and {left} was left for the request of {tried}, but no free gap was large enough.",
                self.holders()
            ),
            Cause::OtherProcess => format!(
                "{other}: {}, and the request of {tried} was {} short.",
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

    /// Says what stands beside the cause: that the driver refused what it reported as free, and what contexts of other ranks look
    /// like.
    fn asides(&self, reading: Reading) -> String {
        let may_be_refused = matches!(
            reading,
            Reading::Cause(Cause::Full | Cause::Fragmented | Cause::OtherProcess) | Reading::DriverPool
        );
        let refused = self.free.filter(|_| may_be_refused).map(|free| cause::refused_free(free, self.tried));
        let contexts = self.contexts().map(|(count, bytes)| {
            format!(" {count} other processes hold up to {} each, as the contexts of other ranks do.", Bytes(bytes))
        });
        let hidden = " The driver doesn't tell what this process holds, as on Windows and WSL.";
        let hidden = self.is_process_hidden.then(|| hidden.to_owned());
        // What is not to blame, but more than a context.
        let outside = self.others().filter(|others| {
            let is_more = |total: u64| others.saturating_sub(USUAL_CONTEXT) >= total / 5;
            reading == Reading::Cause(Cause::Full) && !self.knows_own() && self.total.is_some_and(is_more)
        });
        let outside = outside.map(|bytes| format!(" {} was held outside of PyTorch's allocator.", Bytes(bytes)));
        [refused, contexts, hidden, outside].into_iter().flatten().collect()
    }

    /// Returns whether the allocator has `roundup_power2_divisions`: PyTorch's from 1.12 on, and never Ascend's.
    fn knows_rounding(&self) -> bool {
        self.backend != Backend::Npu && (self.knows_expandable || self.is_own_class)
    }

    fn remedies(&self, reading: Reading) -> Vec<Remedy> {
        let mut remedies = match reading {
            Reading::Cause(Cause::Limit) if self.reserve.is_some() => vec![Remedy::advice(
                "Raise expandable_segments_reserve in PYTORCH_CUDA_ALLOC_CONF above the request, or ask for less at once.",
            )],
            Reading::Cause(cause) => {
                // Earlier releases have no expandable segments to advise; Ascend's have them, and their error is in parentheses.
                let has_them = self.knows_expandable || self.backend == Backend::Npu;
                let can_grow = has_them && !self.is_expandable && !self.is_asynchronous;
                remedies::by_cause(cause, !can_grow)
            }
            Reading::Impossible => vec![Remedy::advice(
                "Look for the error before this one: a time-out in all_gather_object or broadcast_object_list leaves such sizes, \
                 and so does arithmetic in 32 bits.",
            )],
            Reading::Contradiction(contradiction) => contradiction.remedies(),
            Reading::Refused if self.backend == Backend::Xpu => {
                let relaxed = Remedy::advice("Let the driver serve large allocations.")
                    .with_copy("UR_L0_USE_RELAXED_ALLOCATION_LIMITS=1");
                // Intel's own extension, whose error is in parentheses, refuses them whatever the driver does.
                let relaxed = Some(relaxed).filter(|_| self.tried >= RELAXED && self.knows_expandable);
                let leave_room = Some(Remedy::advice(LEAVE_ROOM)).filter(|_| self.tried < RELAXED);
                relaxed.into_iter().chain([Remedy::advice("Ask for less at once.")]).chain(leave_room).collect()
            }
            Reading::Refused => vec![
                Remedy::advice("Let segments grow: smaller pieces may be served.").with_setting(remedies::EXPANDABLE),
                Remedy::advice(LEAVE_ROOM),
                Remedy::advice(
                    "Look for the driver's reason; on Windows or WSL, pin less memory of the host (pin_memory=False).",
                )
                .with_copy("sudo dmesg | grep -iE \"nvrm|amdgpu\""),
            ],
            Reading::DriverPool => vec![
                Remedy::advice("See who holds the device's memory.").with_copy("nvidia-smi"),
                Remedy::advice("Try PyTorch's own allocator, whose gaps can be looked into.")
                    .with_setting("backend:native,expandable_segments:True"),
                Remedy::advice("Give back what the pool keeps.").with_copy("torch.cuda.empty_cache()"),
            ],
            Reading::Unknown => Vec::new(),
        };
        if reading == Reading::Refused && (!self.knows_expandable || self.is_expandable || self.is_asynchronous) {
            remedies.retain(|remedy| remedy.setting().is_none());
        }
        if !self.knows_rounding() {
            for remedy in remedies.iter_mut().filter(|remedy| remedy.copy.contains("roundup")) {
                *remedy = Remedy::advice(remedies::FEW_LENGTHS);
            }
        }
        if self.contexts().is_some() {
            let text = "Use one device a process: choose it before anything else uses CUDA, and load checkpoints with \
                        map_location=\"cpu\".";
            remedies.insert(0, Remedy::advice(text).with_copy("torch.cuda.set_device(local_rank)"));
            remedies.truncate(3);
        }
        remedies.into_iter().map(|remedy| self.backend.advise(remedy)).collect()
    }

    pub(super) fn explain(self) -> Explanation {
        let reading = self.reading();
        // Less than the figures are exact to is nothing.
        let is_exact = |bytes: &u64| *bytes > self.rounding();
        let others = if self.knows_own() {
            "held outside of this process"
        } else {
            "held outside of PyTorch's allocator: this process's own context and other processes"
        };
        let is_consistent = !matches!(reading, Reading::Contradiction(_));
        let outside = self.this_process.zip(self.reserved).and_then(|(all, own)| all.checked_sub(own));
        let known = [
            ("asked of the driver", Some(self.tried).filter(|_| reading != Reading::Impossible)),
            ("in live tensors", self.allocated),
            ("cached by PyTorch", self.cached().filter(|bytes| *bytes > 0)),
            ("of it in private pools", Some(self.private).filter(|bytes| *bytes > 0)),
            ("free on the device", self.free),
            (others, self.others().filter(is_exact).filter(|_| is_consistent)),
            ("held by this process", self.this_process.filter(|_| !is_consistent)),
            ("held by this process outside of PyTorch's allocator", outside.filter(is_exact)),
            ("allowed to this process", self.allowed),
            ("on the device in all", self.total),
        ];
        let facts =
            known.into_iter().filter_map(|(name, bytes)| Some(Fact { name: name.into(), bytes: bytes? })).collect();
        let cause = if let Reading::Cause(cause) = reading { cause } else { Cause::None };
        Explanation {
            kind: TextKind::OutOfMemory,
            is_failure: true,
            cause,
            sentence: self.sentence(reading) + &self.asides(reading),
            line: None,
            facts,
            remedies: self.remedies(reading),
            next: match self.backend {
                Backend::Cuda | Backend::Hip if self.knows_expandable || self.tried >= NO_DEVICE_HAS => NEXT,
                Backend::Cuda | Backend::Hip => NEXT_UP_TO_2_0,
                Backend::Xpu | Backend::Npu => "",
            },
            device: self.device,
            rank: self.rank,
        }
    }
}
