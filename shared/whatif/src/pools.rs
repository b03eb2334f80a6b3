//! Which pool each segment of a recorded run belonged to.
//!
//! Up to torch 2.11, only the pools of the segments that are left at the end are recorded. For the others it follows
//! from what the allocator did: it reserves memory only if no free block of the same pool can serve a request, takes
//! the smallest one that can, and releases all free segments of a pool or none. Each time that a free block was passed
//! over, its segment was of another pool. Of all ways to put the segments into pools that obey this, one with few pools
//! is taken.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ledger::{Ledger, Node, SegmentKind};
use allocator::rounding::{LARGE_BUFFER, SMALL_BUFFER, SMALL_SIZE, round_size};
use replay::{Change, Replay};
use trace::event::Action;
use trace::frames::{FrameId, StackId, Symbols};
use trace::units::PoolId;
use trace::{DeviceTrace, Event, Segment, Settings, Tags};

/// Free blocks that are looked at for one request. More of them say nothing new: they are of the same few segments.
const LOOKED_AT: usize = 64;
/// Free blocks among which unused segments are looked for after a release. Few blocks are free then.
const MOST_FREE: usize = 1 << 10;
/// Pairs of segments that are kept apart. Runs with private pools have thousands.
const MOST_PAIRS: usize = 1 << 20;
/// The first part of the ids of pools that are inferred. PyTorch's count from 0.
const INFERRED: u64 = 1 << 62;
/// No segment.
const NONE: u32 = u32::MAX;

/// The pools of a trace with releases.
#[derive(Debug, Default)]
pub(super) struct Pools {
    /// The pool of each segment, by number.
    of_node: Vec<PoolId>,
    /// The segment of each segment at the start.
    start: Vec<u32>,
    /// The segment of each allocation, by number.
    node_of: Vec<u32>,
    /// The segment that each event released memory of.
    released: FxHashMap<u32, u32>,
    /// The segments that could have served a request before memory was released ahead of it, by the request's event.
    serving: FxHashMap<u32, Vec<u32>>,
    /// The event of the last request of each pool.
    last_used: FxHashMap<PoolId, u32>,
}

impl Pools {
    /// Infers the pools; returns `None` for a trace in which nothing was released, where what is known is all there is.
    pub(super) fn of(
        trace: &DeviceTrace,
        (symbols, tags): (&Symbols, &Tags),
        replay: &Replay,
        settings: &Settings,
        start: &[Segment],
    ) -> Option<Self> {
        let actions = || trace.events.action.iter().map(Action::from_code);
        if !actions().any(is_release) {
            return None;
        }
        let mut reading = Reading::new(trace, (symbols, tags), replay, settings, start);
        replay.changes(trace, 0, replay.positions(), |position, change| reading.change(position, change));
        Some(reading.finish())
    }

    /// Returns the pool of an allocation, if its segment is known.
    pub(super) fn of_allocation(&self, number: u32) -> Option<PoolId> {
        let node = self.node_of.get(number as usize)?;
        self.of_node.get(*node as usize).copied()
    }

    /// Returns the pools of the segments at the start.
    pub(super) fn at_start(&self) -> impl Iterator<Item = PoolId> + '_ {
        self.start.iter().map(|node| self.of_node.get(*node as usize).copied().unwrap_or_default())
    }

    /// Returns the pool of the memory that an event released.
    pub(super) fn of_release(&self, event: u32) -> PoolId {
        let node = self.released.get(&event);
        node.and_then(|node| self.of_node.get(*node as usize)).copied().unwrap_or_default()
    }

    /// Returns whether the cache could serve a request before memory was released ahead of it.
    pub(super) fn could_serve(&self, event: u32, number: Option<u32>) -> bool {
        let pool = number.and_then(|number| self.of_allocation(number)).unwrap_or_default();
        let serving = self.serving.get(&event).into_iter().flatten();
        serving.filter_map(|node| self.of_node.get(*node as usize)).any(|known| *known == pool)
    }

    /// Returns whether no request of a pool follows an event.
    pub(super) fn is_over(&self, pool: PoolId, event: u32) -> bool {
        self.last_used.get(&pool).is_none_or(|last| *last < event)
    }
}

/// Returns whether a frame is a call of `empty_cache`.
pub(super) fn is_empty_cache(symbols: &Symbols, frame: FrameId) -> bool {
    symbols.text(symbols.frame(frame).name).contains("empty_cache")
}

fn is_release(action: Action) -> bool {
    matches!(action, Action::SegmentFree | Action::SegmentUnmap)
}

/// The segments of a private pool among which requests choose. Segments of another stream or size class serve none of these
/// requests, so it doesn't matter whether they are of the same pool.
struct PoolPart {
    pool: PoolId,
    kind: SegmentKind,
    /// The position at which the last one was reserved.
    last_begin: u32,
    /// The position at which the first one was released, which happens only after the pool was given up.
    first_end: u32,
}

impl PoolPart {
    fn of(pool: PoolId, node: &Node) -> Self {
        Self { pool, kind: node.kind, last_begin: node.begin, first_end: node.end }
    }

    fn add(&mut self, node: &Node) {
        (self.last_begin, self.first_end) = (self.last_begin.max(node.begin), self.first_end.min(node.end));
    }

    fn can_have(&self, node: &Node) -> bool {
        self.kind == node.kind && node.begin < self.first_end && self.last_begin < node.end
    }
}

/// Adds a segment to a pool. All parts of a pool end together.
fn add(open: &mut Vec<PoolPart>, pool: PoolId, node: &Node) {
    let mut of_pool = PoolPart::of(pool, node);
    for part in open.iter_mut().filter(|part| part.pool == pool) {
        part.add(node);
        (of_pool.last_begin, of_pool.first_end) = (part.last_begin, part.first_end);
    }
    if !open.iter().any(|part| (part.pool, part.kind) == (pool, node.kind)) {
        open.push(of_pool);
    }
}

/// A trace while its pools are inferred.
struct Reading<'a> {
    trace: &'a DeviceTrace,
    symbols: &'a Symbols,
    tags: &'a Tags,
    replay: &'a Replay,
    settings: &'a Settings,
    ledger: Ledger,
    /// The pool that the trace names for each segment, if it does.
    recorded: Vec<Option<PoolId>>,
    /// Segments that are of different pools.
    apart: FxHashSet<(u32, u32)>,
    /// Segments that are not of the default pool.
    private: FxHashSet<u32>,
    /// The call sites that segments were first reserved for.
    sites: Vec<StackId>,
    /// The segment that was reserved last, if no request was served since.
    fresh: u32,
    /// Blocks that streams are done with, as it turned out since the last request or free. If a request waited for them, it was
    /// not served from them.
    settled: Vec<u64>,
    /// Whether memory was released since the last request.
    has_released: bool,
    /// Segments that were released in a row, in the order of one pool.
    rows: Vec<Vec<u32>>,
    /// The segments that were released by the run of releases so far, with size and address, and the event after it.
    run: Vec<(u32, (u64, u64))>,
    run_end: u32,
    /// The call site of what the program did after the run.
    asked_from: StackId,
    /// Whether the run has the stack of a call that is neither `empty_cache` nor the request that follows.
    is_call: bool,
    pools: Pools,
}

impl<'a> Reading<'a> {
    fn new(
        trace: &'a DeviceTrace,
        (symbols, tags): (&'a Symbols, &'a Tags),
        replay: &'a Replay,
        settings: &'a Settings,
        start: &[Segment],
    ) -> Self {
        let pools = Pools { node_of: vec![NONE; replay.allocations.len()], ..Pools::default() };
        let mut new = Self {
            trace,
            symbols,
            tags,
            replay,
            settings,
            ledger: Ledger::default(),
            recorded: Vec::new(),
            apart: FxHashSet::default(),
            private: FxHashSet::default(),
            sites: Vec::new(),
            asked_from: StackId(0),
            is_call: false,
            fresh: NONE,
            settled: Vec::new(),
            has_released: false,
            rows: Vec::new(),
            run: Vec::new(),
            run_end: 0,
            pools,
        };
        let is_recorded = trace.events.iter().find(|event| event.action == Action::Alloc);
        let is_recorded = is_recorded.is_some_and(|event| tags.get(event.tag).pool.is_some());
        for segment in start {
            let kind = SegmentKind { stream: segment.stream, is_small: segment.is_small };
            let node = new.ledger.reserve((segment.address.0, segment.size), kind, segment.is_expandable, 0);
            new.pools.start.push(node);
            new.recorded.resize(new.ledger.nodes.len(), is_recorded.then_some(segment.pool));
            new.sites.resize(new.ledger.nodes.len(), segment.stack);
        }
        for number in replay.active_at(0) {
            new.begin(number, 0);
        }
        new
    }

    fn change(&mut self, position: u32, change: Change) {
        // What became free after a run of releases says nothing about it.
        if self.run_end != position.saturating_sub(1) || !matches!(change, Change::Reserved(_)) {
            self.end_run();
        }
        match change {
            Change::Begin(number) => self.begin(number, position),
            Change::End(number) => {
                let address = self.replay.allocations.address.get(number as usize).unwrap_or_default();
                let is_late = self
                    .replay
                    .allocations
                    .freed
                    .get(number as usize)
                    .is_some_and(|freed| freed.saturating_add(1) < position);
                if is_late {
                    self.settled.push(address);
                } else {
                    self.settle();
                    self.ledger.free(address);
                }
            }
            Change::Reserved(_) => self.segment(position.saturating_sub(1)),
            Change::Freed(_) => {
                self.settle();
            }
        }
    }

    /// Frees the blocks that streams were done with; returns whether there were any.
    fn settle(&mut self) -> bool {
        let settled = std::mem::take(&mut self.settled);
        settled.iter().for_each(|address| self.ledger.free(*address));
        !settled.is_empty()
    }

    fn segment(&mut self, number: u32) {
        let Some(event) = self.trace.events.get(number as usize) else { return };
        let tag = self.tags.get(event.tag);
        if !is_release(event.action) {
            self.end_run();
            let is_expandable = event.action == Action::SegmentMap;
            let kind = SegmentKind { stream: tag.stream, is_small: event.size == SMALL_BUFFER };
            self.fresh = self.ledger.reserve((event.address.0, event.size), kind, is_expandable, number + 1);
            self.recorded.resize(self.ledger.nodes.len(), None);
            self.sites.resize(self.ledger.nodes.len(), event.stack);
            if let Some(recorded) = self.recorded.get_mut(self.fresh as usize) {
                *recorded = recorded.or(tag.pool);
            }
            return;
        }
        if self.run_end != number {
            self.look_ahead(number);
        }
        self.settle();
        (self.run_end, self.has_released) = (number + 1, true);
        if let Some(node) = self.ledger.release(event.address.0, event.size, number + 1) {
            // A trace with stacks of allocations only has those of the segments here.
            self.is_call |= self.is_other_call(&event, node);
            self.pools.released.insert(number, node);
            self.run.push((node, (event.size, event.address.0)));
        }
    }

    /// Returns whether an event has the stack of a call that released memory, and is neither `empty_cache` nor a request.
    fn is_other_call(&self, event: &Event, node: u32) -> bool {
        let is_of_segment = self.sites.get(node as usize).is_none_or(|site| *site == event.stack);
        if event.stack == StackId(0) || is_of_segment || self.asked_from == event.stack {
            return false;
        }
        let mut frames = self.symbols.stack(event.stack).iter();
        !frames.any(|frame| is_empty_cache(self.symbols, *frame))
    }

    /// Returns the event that follows a run of releases.
    fn asked_after(&self, number: u32) -> Option<(u32, Event)> {
        let mut events = (number..).zip(self.trace.events.iter_from(number as usize));
        events.find(|(_, event)| !event.action.is_segment() && event.action != Action::FreeCompleted)
    }

    /// Notes what could have served the request ahead of which memory is released.
    fn look_ahead(&mut self, number: u32) {
        let Some((asked, event)) = self.asked_after(number) else { return };
        self.asked_from = event.stack;
        if matches!(event.action, Action::Alloc | Action::Oom) {
            let rounded = round_size(&self.settings.roundup_power2_divisions, event.size);
            let kind = SegmentKind { stream: self.tags.get(event.tag).stream, is_small: rounded <= SMALL_SIZE };
            let serving = self.serving(kind, rounded, u64::MAX);
            self.pools.serving.insert(asked, serving);
        }
    }

    /// Returns the segments with a free block of at least `rounded` and less than `most` bytes that can serve a request.
    fn serving(&self, kind: SegmentKind, rounded: u64, most: u64) -> Vec<u32> {
        let max_split = self.settings.max_split_size.unwrap_or(u64::MAX);
        let serves = |size: u64| match rounded < max_split {
            true => size < max_split,
            false => size < rounded.saturating_add(LARGE_BUFFER),
        };
        let blocks = self.ledger.free_blocks(kind, rounded, most).take(LOOKED_AT);
        let mut found: Vec<u32> = blocks.take_while(|(size, _)| serves(*size)).map(|(_, node)| node).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Keeps two segments apart.
    fn keep_apart(&mut self, one: u32, other: u32) {
        if one != other && self.apart.len() < MOST_PAIRS {
            self.apart.insert((one.min(other), one.max(other)));
        }
    }

    /// Ends a run of releases: what is still free as a whole was of other pools.
    fn end_run(&mut self) {
        let (run, is_call) = (std::mem::take(&mut self.run), std::mem::take(&mut self.is_call));
        let releases_all = self.settings.max_split_size.is_none() && self.settings.garbage_collection_threshold == 0.0;
        if run.is_empty() || !releases_all || self.apart.len() >= MOST_PAIRS {
            return;
        }
        let kind = |place: usize| {
            run.get(place).and_then(|(node, _)| self.ledger.nodes.get(*node as usize)).map(|node| node.kind)
        };
        // Of the default pool large segments go first, of private ones small ones.
        let is_behind = |place: &usize| {
            let (before, this) = (kind(place.wrapping_sub(1)), kind(*place));
            before.is_some_and(|kind| kind.is_small) && this.is_some_and(|kind| !kind.is_small)
        };
        let mut from = if is_call { 0 } else { (1..run.len()).find(is_behind).unwrap_or(run.len()) };
        let stream = kind(from).map(|kind| kind.stream);
        // Small ones before that are of the same pool if nothing goes ahead of them.
        if (0..from).all(|place| kind(place).is_some_and(|kind| kind.is_small && Some(kind.stream) == stream)) {
            from = 0;
        }
        self.private.extend(run.iter().skip(from).map(|(node, _)| node));
        let is_in_row = |place: usize| {
            let (before, this) = (run.get(place.wrapping_sub(1)), run.get(place));
            let is_in_order = before.zip(this).is_some_and(|(before, this)| before.1 < this.1 && before.0 != this.0);
            is_in_order && kind(place.wrapping_sub(1)) == kind(place)
        };
        for (place, (node, _)) in run.iter().enumerate() {
            match self.rows.last_mut() {
                Some(row) if is_in_row(place) => row.push(*node),
                _ => self.rows.push(vec![*node]),
            }
        }
        let unused: Vec<u32> = self.ledger.unused(MOST_FREE).collect();
        for &(one, _) in run.iter().take(LOOKED_AT) {
            for &other in unused.iter().take(LOOKED_AT) {
                self.keep_apart(one, other);
            }
        }
    }

    fn begin(&mut self, number: u32, position: u32) {
        let has_settled = self.settle();
        let Some(allocation) = self.replay.allocations.get(number) else { return };
        let rounded = round_size(&self.settings.roundup_power2_divisions, allocation.requested);
        let place = self.ledger.node_at(allocation.address.0);
        let node = place.and_then(|node| self.ledger.nodes.get(node as usize)).copied();
        if let (Some(place), Some(node)) = (place, node) {
            if let Some(known) = self.pools.node_of.get_mut(number as usize) {
                *known = place;
            }
            let is_fresh = place == self.fresh;
            // A block of an expandable segment is not always the smallest one. After a release, a request is not served from
            // what became free with it.
            let may_have_waited = self.has_released || has_settled && is_fresh;
            let excludes_others = position > 0 && !may_have_waited && (is_fresh || !node.is_expandable);
            let chosen = self.ledger.take(allocation.address.0, allocation.size).map(|(_, size)| size);
            if let Some(chosen) = chosen.filter(|_| excludes_others) {
                let most = if is_fresh { u64::MAX } else { chosen };
                for other in self.serving(node.kind, rounded, most) {
                    self.keep_apart(place, other);
                }
            }
        }
        (self.fresh, self.has_released) = (NONE, false);
    }

    fn finish(mut self) -> Pools {
        self.end_run();
        self.recorded.resize(self.ledger.nodes.len(), None);
        for segment in &self.trace.segments {
            let node = self.ledger.node_at(segment.address.0);
            if let Some(recorded) = node.and_then(|node| self.recorded.get_mut(node as usize)) {
                *recorded = recorded.or(Some(segment.pool));
            }
        }
        self.pools.of_node = self.choose();
        for (number, begin) in (0..).zip(self.replay.allocations.begin.iter()) {
            let Some(pool) = self.pools.of_allocation(number) else { continue };
            self.pools.last_used.insert(pool, begin.saturating_sub(1));
        }
        self.pools
    }

    /// Chooses a pool for each segment: the recorded one, or the first that no segment forbids.
    fn choose(&self) -> Vec<PoolId> {
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); self.ledger.nodes.len()];
        for &(one, other) in &self.apart {
            for (segment, other) in [(one, other), (other, one)] {
                if let Some(neighbours) = neighbours.get_mut(segment as usize) {
                    neighbours.push(other);
                }
            }
        }
        let mut chosen = self.recorded.clone();
        let mut open: Vec<PoolPart> = Vec::new();
        for (recorded, node) in self.recorded.iter().zip(&self.ledger.nodes) {
            let Some(pool) = recorded.filter(|pool| pool.is_private()) else { continue };
            add(&mut open, pool, node);
        }
        let mut inferred = 0;
        let rows = self.rows_of(&neighbours);
        for first in 0..self.ledger.nodes.len() as u32 {
            if chosen.get(first as usize).is_none_or(Option::is_some) {
                continue;
            }
            let alone = [first];
            let row = rows.get(&first).copied().unwrap_or(&alone);
            let pool_of = |other: &u32| chosen.get(*other as usize).copied().flatten();
            let neighbours = row.iter().filter_map(|node| neighbours.get(*node as usize)).flatten();
            let forbidden: FxHashSet<PoolId> = neighbours.filter_map(pool_of).collect();
            let nodes = || row.iter().filter_map(|node| self.ledger.nodes.get(*node as usize));
            let is_private = row.iter().any(|node| self.private.contains(node));
            let pool = if forbidden.contains(&PoolId::default()) || is_private {
                let begin = nodes().map(|node| node.begin).min().unwrap_or_default();
                if open.len() > LOOKED_AT {
                    open.retain(|part| part.first_end > begin);
                }
                let can_have =
                    |part: &&PoolPart| nodes().all(|node| part.can_have(node)) && !forbidden.contains(&part.pool);
                let known = open.iter().take(LOOKED_AT).find(can_have).map(|part| part.pool);
                inferred += u64::from(known.is_none());
                let pool = known.unwrap_or(PoolId(INFERRED, inferred));
                nodes().for_each(|node| add(&mut open, pool, node));
                pool
            } else {
                PoolId::default()
            };
            for node in row {
                if let Some(place) = chosen.get_mut(*node as usize) {
                    *place = Some(pool);
                }
            }
        }
        chosen.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Returns the row of each segment, apart from rows that can't be of one pool.
    fn rows_of(&self, neighbours: &[Vec<u32>]) -> FxHashMap<u32, &[u32]> {
        let mut rows = FxHashMap::default();
        for row in self.rows.iter().filter(|row| row.len() > 1) {
            let members: FxHashSet<u32> = row.iter().copied().collect();
            let is_apart = |node: &u32| {
                let neighbours = neighbours.get(*node as usize);
                neighbours.is_some_and(|neighbours| neighbours.iter().any(|other| members.contains(other)))
            };
            let is_recorded = |node: &u32| self.recorded.get(*node as usize).copied().flatten().is_some();
            if !row.iter().any(|node| is_apart(node) || is_recorded(node)) {
                rows.extend(row.iter().map(|node| (*node, row.as_slice())));
            }
        }
        rows
    }
}
