//! Builds a snapshot from the leaves up: values become frames, stacks and rows of the trace columns as soon as they are
//! complete, so that the file is never held as a tree.
//!
//! Both formats complete children before parents. A dict is recognized by its keys: one with an `action` is a trace
//! entry and goes into the columns at once, one with a `filename` is a frame. A list of frames is a stack, a list of
//! entries is a range of rows. Everything else (segments, blocks, settings, annotations: little, however long the
//! trace) is kept until the end, when `crate::import` reads it.
//!
//! A pickle refers to lists and dicts before and after they are filled, so each is a node: four bytes that say what it
//! has become. JSON has no references, so its values need no nodes once they are converted.

use rustc_hash::FxHashMap;

use super::arena::ValueArena;
use super::keywords;
use super::rows::Rows;
use super::value::{Kind, Value};
use trace::error::{Checked, damaged, too_much};
use trace::frames::{Frame, FrameId, StackId, StrId, Symbols};
use trace::limits::ImportLimits;
use trace::narrow::number32;
use trace::units::{Count, PoolId};
use trace::{Events, Marks, PlainColumn, Tag, TagId, Tags};

/// Python's pickler splits lists into batches of 1,000 items, so a shorter batch is a whole list.
const BATCH: usize = 1_000;

/// Everything that has been read so far.
#[derive(Debug)]
pub(crate) struct SnapshotBuilder {
    pub(crate) limits: ImportLimits,
    pub(crate) symbols: Symbols,
    pub(crate) tags: Tags,
    /// All trace entries of all devices, in the order in which they were completed.
    pub(crate) events: Events,
    pub(crate) lists: Vec<Rows>,
    pub(crate) kept: ValueArena,
    /// The number of values of an unexpected type.
    pub(crate) malformed: u64,
    /// Counts changes to frames that a stack may hold already.
    pub(crate) frame_changes: u32,
    pub(crate) last_tag: (Tag, TagId),
    /// Which optional keys the trace entries have.
    pub(crate) marks: Marks,
    nodes: PlainColumn<u32>,
    pairs: Vec<PoolId>,
    pair_numbers: FxHashMap<PoolId, u32>,
    frames: Vec<FrameId>,
}

impl SnapshotBuilder {
    /// Creates an empty builder.
    pub(crate) fn new(limits: ImportLimits) -> Self {
        let mut tags = Tags::default();
        let default_tag = tags.intern(Tag::default());
        Self {
            limits,
            symbols: keywords::symbols(),
            tags,
            events: Events::default(),
            lists: Vec::new(),
            kept: ValueArena::default(),
            malformed: 0,
            frame_changes: 0,
            last_tag: (Tag::default(), default_tag),
            marks: Marks::default(),
            nodes: PlainColumn::default(),
            pairs: Vec::new(),
            pair_numbers: FxHashMap::default(),
            frames: Vec::new(),
        }
    }

    /// Returns the approximate bytes of memory of everything that has been read.
    pub(crate) fn memory(&self) -> usize {
        let lists = self.lists.capacity() * 2 * size_of::<Rows>();
        // Each pool stands in a list and in a table.
        let pools = self.pairs.capacity() * 3 * size_of::<PoolId>();
        let names = self.symbols.memory() + self.tags.memory();
        names + self.events.memory() + self.kept.memory() + self.nodes.memory() + lists + pools
    }

    /// Creates a node.
    #[inline]
    pub(crate) fn node(&mut self, kind: Kind) -> Checked<Value> {
        let id = self.nodes.len();
        if id >= self.node_limit() {
            return Err(too_much(format!("more than {} lists and dicts", Count(self.node_limit() as u64))));
        }
        self.nodes.push(kind.pack());
        Ok(Value::Node(number32(id)))
    }

    /// Returns the number of nodes.
    #[inline]
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Creates nodes that [`Self::has_room`] allows, given as [`Kind::pack`] packs them.
    #[inline]
    pub(crate) fn push_nodes(&mut self, kinds: &[u32]) {
        kinds.iter().for_each(|&kind| self.nodes.push(kind));
    }

    /// Returns whether this many nodes and one more trace entry are within the limits.
    #[inline]
    pub(crate) fn has_room(&self, nodes: usize) -> bool {
        let limit = self.node_limit();
        self.nodes.len() + nodes <= limit && self.events.len() < limit
    }

    fn node_limit(&self) -> usize {
        self.limits.items.min(Kind::MAX as usize)
    }

    /// Returns what a node has become.
    #[inline]
    pub(crate) fn kind(&self, id: u32) -> Kind {
        self.nodes.get(id as usize).map_or(Kind::Dropped, Kind::unpack)
    }

    #[inline]
    pub(crate) fn set_kind(&mut self, id: u32, kind: Kind) {
        self.nodes.set(id as usize, kind.pack());
    }

    /// Returns a value, or what its node has become if that is complete.
    #[inline]
    pub(crate) fn look(&self, value: Value) -> Value {
        let Value::Node(id) = value else { return value };
        match self.kind(id) {
            Kind::Frame(frame) => Value::Frame(frame),
            Kind::Stack(stack) => Value::Stack(stack),
            Kind::Event(row) => Value::Event(row),
            _ => value,
        }
    }

    /// Interns a string.
    #[inline]
    pub(crate) fn string(&mut self, text: &[u8]) -> Checked<Value> {
        let id = self.symbols.intern(text);
        if self.symbols.string_bytes() > self.limits.strings_total_bytes {
            let limit = self.limits.strings_total_bytes as u64;
            return Err(too_much(format!("different strings of more than {} bytes together", Count(limit))));
        }
        Ok(Value::Str(id))
    }

    /// Returns the value for something unreadable, and counts it.
    pub(crate) fn odd(&mut self) -> Value {
        self.malformed += 1;
        Value::Odd
    }

    /// Converts a complete list: a JSON array, or a tuple.
    pub(crate) fn whole_list(&mut self, items: &[Value]) -> Checked<Value> {
        if let &[a, b] = items
            && let (Some(a), Some(b)) = (a.address(), b.address())
        {
            let pool = PoolId(a, b);
            let next = number32(self.pairs.len());
            let number = *self.pair_numbers.entry(pool).or_insert(next);
            if number == next {
                if self.pairs.len() >= self.limits.kept_values {
                    return Err(too_much(format!("more than {} pools", self.limits.kept_values)));
                }
                self.pairs.push(pool);
            }
            return Ok(Value::Pair(number));
        }
        if items.is_empty() {
            return Ok(Value::Stack(StackId(0)));
        }
        if let Some(stack) = self.stack_of_frames(items)? {
            return Ok(Value::Stack(stack));
        }
        let list = self.node(Kind::EmptyList)?;
        self.append(list, items)?;
        Ok(list)
    }

    /// Returns the pool that a pair stands for.
    pub(crate) fn pool(&self, value: Value) -> Option<PoolId> {
        match value {
            Value::Pair(number) => self.pairs.get(number as usize).copied(),
            Value::Node(id) => match self.kind(id) {
                Kind::List(place) => match *self.kept.get(place) {
                    [a, b] => Some(PoolId(a.address()?, b.address()?)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Converts a complete dict: a JSON object.
    pub(crate) fn whole_dict(&mut self, pairs: &[Value]) -> Checked<Value> {
        if has_key(pairs, keywords::ACTION) {
            return Ok(self.entry(pairs)?.map_or(Value::Odd, Value::Event));
        }
        if has_key(pairs, keywords::FILENAME) {
            return Ok(Value::Frame(self.frame(None, pairs)?));
        }
        let kind = match pairs {
            [] => Kind::EmptyDict,
            _ => Kind::Dict(self.kept.add(pairs, self.limits.kept_values)?),
        };
        self.node(kind)
    }

    /// Appends items to a list.
    pub(crate) fn append(&mut self, list: Value, items: &[Value]) -> Checked {
        let id = match list {
            Value::Node(id) => id,
            // Picklers never append to a tuple or a complete list.
            _ => return Err(damaged("it adds items to a value that is not a list")),
        };
        if items.is_empty() {
            return Ok(());
        }
        let kind = self.kind(id);
        // Nearly all items of a long file are trace entries that were just read.
        if matches!(kind, Kind::EmptyList | Kind::Events(_))
            && let Some(rows) = self.new_rows(items)
        {
            self.append_rows(id, kind, rows);
            return Ok(());
        }
        match kind {
            Kind::EmptyList => {
                if (2..BATCH).contains(&items.len())
                    && let Some(stack) = self.stack_of_frames(items)?
                {
                    self.set_kind(id, Kind::Stack(stack));
                    return Ok(());
                }
                let mut is_trace = true;
                for &item in items {
                    is_trace &= self.settle(item)?;
                }
                if is_trace {
                    let number = number32(self.lists.len());
                    self.lists.push(Rows::new());
                    self.set_kind(id, Kind::Events(number));
                    return self.append_events(number, items);
                }
                let place = self.kept.add(items, self.limits.kept_values)?;
                self.set_kind(id, Kind::List(place));
            }
            Kind::Events(number) => {
                for &item in items {
                    self.settle(item)?;
                }
                self.append_events(number, items)?;
            }
            Kind::List(place) => {
                for &item in items {
                    self.settle(item)?;
                }
                self.kept.extend(place, items, self.limits.kept_values)?;
            }
            Kind::Stack(stack) => {
                // More frames follow: it becomes a kept list again, and a stack when it is used.
                let mut values: Vec<Value> = self.symbols.stack(stack).iter().map(|&f| Value::Frame(f)).collect();
                values.extend_from_slice(items);
                let place = self.kept.add(&values, self.limits.kept_values)?;
                self.set_kind(id, Kind::List(place));
            }
            Kind::Dropped => {}
            _ => return Err(damaged("it adds items to a dict, as if that were a list")),
        }
        Ok(())
    }

    /// Converts a dict that was filled entry by entry, now that it is used. Returns whether it is a trace entry.
    fn settle(&mut self, value: Value) -> Checked<bool> {
        let id = match value {
            Value::Node(id) => id,
            Value::Event(_) => return Ok(true),
            _ => return Ok(false),
        };
        match self.kind(id) {
            Kind::Event(_) => Ok(true),
            Kind::Dict(place) => {
                let is_entry = has_key(self.kept.get(place), keywords::ACTION);
                if is_entry {
                    let pairs = self.kept.release(place);
                    let row = self.entry(&pairs)?;
                    self.set_kind(id, row.map_or(Kind::Dropped, Kind::Event));
                } else if has_key(self.kept.get(place), keywords::FILENAME) {
                    let pairs = self.kept.release(place);
                    let frame = self.frame(None, &pairs)?;
                    self.set_kind(id, Kind::Frame(frame));
                }
                Ok(is_entry)
            }
            _ => Ok(false),
        }
    }

    /// Returns the stack of some values, if all are frames.
    pub(crate) fn stack_of_frames(&mut self, items: &[Value]) -> Checked<Option<StackId>> {
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        let mut found = true;
        for &item in items {
            match self.look(item) {
                Value::Frame(frame) => frames.push(frame),
                _ => {
                    found = false;
                    break;
                }
            }
        }
        let stack = if found { Some(self.intern_stack(&mut frames)?) } else { None };
        self.frames = frames;
        Ok(stack)
    }

    fn intern_stack(&mut self, frames: &mut Vec<FrameId>) -> Checked<StackId> {
        if frames.len() > self.limits.stack_frames {
            frames.truncate(self.limits.stack_frames);
            self.malformed += 1;
        }
        let stack = self.symbols.intern_stack(frames);
        let limit = self.limits.stacks_total_frames;
        if self.symbols.stack_frames() > limit {
            return Err(too_much(format!("different stacks of more than {} frames together", Count(limit as u64))));
        }
        Ok(stack)
    }

    /// Returns the stack that a value stands for: a list of frames, or of strings (the C++ frames of torch 2.0).
    pub(crate) fn stack(&mut self, value: Value) -> Checked<StackId> {
        let id = match self.look(value) {
            Value::Stack(stack) => return Ok(stack),
            Value::None => return Ok(StackId(0)),
            Value::Node(id) => id,
            _ => {
                self.malformed += 1;
                return Ok(StackId(0));
            }
        };
        let place = match self.kind(id) {
            Kind::EmptyList => return Ok(StackId(0)),
            Kind::List(place) => place,
            _ => {
                self.malformed += 1;
                return Ok(StackId(0));
            }
        };
        let mut frames = Vec::new();
        for value in self.kept.release(place) {
            self.settle(value)?;
            match self.look(value) {
                Value::Frame(frame) => frames.push(frame),
                Value::Str(name) => {
                    frames.push(self.symbols.intern_frame(Frame { name, filename: StrId(0), line: 0 }));
                }
                _ => self.malformed += 1,
            }
        }
        let stack = self.intern_stack(&mut frames)?;
        self.set_kind(id, Kind::Stack(stack));
        Ok(stack)
    }

    /// Inserts entries into a dict.
    pub(crate) fn set_items(&mut self, dict: Value, pairs: &[Value]) -> Checked {
        let Value::Node(id) = dict else { return Err(damaged("it adds keys to a value that is not a dict")) };
        if pairs.is_empty() {
            return Ok(());
        }
        match self.kind(id) {
            Kind::EmptyDict => {
                // A single entry may be the first of many: protocol 0 sets them one by one.
                let kind = if pairs.len() > 2 && has_key(pairs, keywords::ACTION) {
                    self.entry(pairs)?.map_or(Kind::Dropped, Kind::Event)
                } else if pairs.len() > 4 && has_key(pairs, keywords::FILENAME) {
                    Kind::Frame(self.frame(None, pairs)?)
                } else {
                    Kind::Dict(self.kept.add(pairs, self.limits.kept_values)?)
                };
                self.set_kind(id, kind);
            }
            Kind::Dict(place) => self.kept.extend(place, pairs, self.limits.kept_values)?,
            Kind::Event(row) => self.change_entry(row, pairs)?,
            Kind::Frame(frame) => {
                self.frame_changes = self.frame_changes.wrapping_add(1);
                let changed = self.frame(Some(frame), pairs)?;
                self.set_kind(id, Kind::Frame(changed));
            }
            Kind::Dropped => {}
            _ => return Err(damaged("it adds keys to a list, as if that were a dict")),
        }
        Ok(())
    }

    /// Returns the frame that some entries describe, based on an earlier one. Unknown keys (`fx_…`) don't locate the
    /// frame and are ignored.
    fn frame(&mut self, before: Option<FrameId>, pairs: &[Value]) -> Checked<FrameId> {
        if self.symbols.frame_count() >= self.node_limit() {
            return Err(too_much(format!("more than {} different frames", Count(self.node_limit() as u64))));
        }
        let blank = Frame { name: StrId(0), filename: StrId(0), line: 0 };
        let mut frame = before.map_or(blank, |id| self.symbols.frame(id));
        for (key, value) in entries(pairs) {
            let text = matches!(value, Value::Str(_));
            match (key, value) {
                (keywords::NAME, Value::Str(name)) => frame.name = name,
                (keywords::FILENAME, Value::Str(name)) => frame.filename = name,
                (keywords::LINE, value) if !text => match value.int().map(u32::try_from) {
                    Some(Ok(line)) => frame.line = line,
                    // Negative if the symbolizer found no line.
                    Some(Err(_)) => frame.line = 0,
                    None => self.malformed += u64::from(value != Value::None),
                },
                (keywords::NAME | keywords::FILENAME | keywords::LINE, _) => {
                    self.malformed += u64::from(value != Value::None);
                }
                _ => self.drop_kept(value),
            }
        }
        Ok(self.symbols.intern_frame(frame))
    }

    /// Removes and returns the entries of a kept dict; `None` for another value. Each dict is read once, so that a file
    /// that refers to one dict a million times does not grow in memory.
    pub(crate) fn dict(&mut self, value: Value) -> Option<Vec<Value>> {
        let Value::Node(id) = value else { return None };
        match self.kind(id) {
            Kind::Dict(place) => Some(self.kept.empty(place)),
            Kind::EmptyDict => Some(Vec::new()),
            _ => None,
        }
    }

    /// Returns the entries of a kept dict.
    pub(crate) fn dict_entries(&self, value: Value) -> &[Value] {
        let Value::Node(id) = value else { return &[] };
        if let Kind::Dict(place) = self.kind(id) { self.kept.get(place) } else { &[] }
    }

    /// Removes and returns the items of a kept list (see [`Self::dict`]); none for another value.
    pub(crate) fn items(&mut self, value: Value) -> Vec<Value> {
        match value {
            Value::Node(id) => match self.kind(id) {
                Kind::List(place) => self.kept.empty(place),
                Kind::EmptyList => Vec::new(),
                _ => {
                    self.malformed += 1;
                    Vec::new()
                }
            },
            Value::None | Value::Stack(StackId(0)) => Vec::new(),
            _ => {
                self.malformed += 1;
                Vec::new()
            }
        }
    }

    /// Returns what a value was read as; if it could not be read, counts it and returns the default.
    pub(crate) fn checked<T: Default>(&mut self, value: Value, read: Option<T>) -> T {
        self.malformed += u64::from(read.is_none() && value != Value::None);
        read.unwrap_or_default()
    }

    /// Frees the value of an unknown key: there may be one in each of millions of entries.
    pub(crate) fn drop_kept(&mut self, value: Value) {
        let mut left = vec![];
        let mut next = Some(value);
        while let Some(value) = next {
            if let Value::Node(id) = value
                && let Kind::Dict(place) | Kind::List(place) = self.kind(id)
            {
                self.set_kind(id, Kind::Dropped);
                left.extend(self.kept.release(place));
            }
            next = left.pop();
        }
    }
}

/// Iterates over keys and values; skips keys that are not strings.
pub(crate) fn entries(pairs: &[Value]) -> impl Iterator<Item = (StrId, Value)> + '_ {
    pairs.chunks_exact(2).filter_map(|pair| match *pair {
        [Value::Str(key), value] => Some((key, value)),
        _ => None,
    })
}

/// Whether some entries contain a key.
#[inline]
pub(crate) fn has_key(pairs: &[Value], key: StrId) -> bool {
    entries(pairs).any(|(k, _)| k == key)
}
