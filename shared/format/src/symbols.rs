//! The symbols chunk: strings, frames, stacks and tags that are new since the previous one.
//!
//! Numbers count through the whole file, and each chunk says with which number it begins. A lost chunk therefore costs
//! only its own names. What refers to them stays apart from what has none: see [`StackRecord`](trace::frames::StackRecord).

use super::lost_names::{LostNames, LostNumbers, Named};
use super::varint::{Varints, push, zigzag};
use codec::msgpack::{MapReader, MapWriter};
use trace::error::{Checked, damaged, too_much};
use trace::frames::{Frame, FrameId, StackId, StackRecord, StrId, Symbols};
use trace::limits::ImportLimits;
use trace::narrow::number32;
use trace::units::{PoolId, Stream};
use trace::{Tag, TagId, Tags};

/// Bytes after which the next chunk begins. A string or stack is never split.
const CHUNK_BYTES: usize = 1 << 20;

/// How many symbols were written: the next number of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SymbolCursor {
    strings: usize,
    frames: usize,
    stacks: usize,
    tags: usize,
}

impl Default for SymbolCursor {
    /// The empty string and the empty stack are number 0 of every file and are never written.
    fn default() -> Self {
        Self { strings: 1, frames: 0, stacks: 1, tags: 0 }
    }
}

/// The columns of one chunk.
#[derive(Default)]
struct Columns {
    lengths: Vec<u8>,
    texts: Vec<u8>,
    frames: Vec<u8>,
    stacks: Vec<u8>,
    tags: Vec<u8>,
}

impl Columns {
    fn is_full(&self) -> bool {
        [&self.lengths, &self.texts, &self.frames, &self.stacks, &self.tags].iter().map(|c| c.len()).sum::<usize>()
            >= CHUNK_BYTES
    }
}

/// Returns the payload of the next chunk, with the symbols that are new since `written`; `None` if there are none.
pub(super) fn encode(symbols: &Symbols, tags: &Tags, written: &mut SymbolCursor) -> Option<Vec<u8>> {
    let from = *written;
    let mut columns = Columns::default();
    // In this order: each kind refers only to those before it.
    while written.strings < symbols.string_count() && !columns.is_full() {
        let text = symbols.bytes(StrId(number32(written.strings)));
        push(&mut columns.lengths, text.len() as u64);
        columns.texts.extend_from_slice(text);
        written.strings += 1;
    }
    while written.frames < symbols.frame_count() && !columns.is_full() {
        let frame = symbols.frame(FrameId(number32(written.frames)));
        for n in [frame.name.0, frame.filename.0, frame.line] {
            push(&mut columns.frames, n.into());
        }
        written.frames += 1;
    }
    while written.stacks < symbols.stack_count() && !columns.is_full() {
        let stack = symbols.stack(StackId(number32(written.stacks)));
        push(&mut columns.stacks, stack.len() as u64);
        let mut last = 0;
        for frame in stack {
            push(&mut columns.stacks, zigzag(i64::from(frame.0) - last));
            last = i64::from(frame.0);
        }
        written.stacks += 1;
    }
    while written.tags < tags.len() && !columns.is_full() {
        encode_tag(&mut columns.tags, &tags.get(TagId(number32(written.tags))));
        written.tags += 1;
    }
    if *written == from {
        return None;
    }
    let mut message = MapWriter::map(9);
    message.unsigned("strings_from", from.strings as u64);
    message.column("string_lengths", &columns.lengths);
    message.column("strings", &columns.texts);
    message.unsigned("frames_from", from.frames as u64);
    message.column("frames", &columns.frames);
    message.unsigned("stacks_from", from.stacks as u64);
    message.column("stacks", &columns.stacks);
    message.unsigned("tags_from", from.tags as u64);
    message.column("tags", &columns.tags);
    Some(message.into_bytes())
}

fn encode_tag(column: &mut Vec<u8>, tag: &Tag) {
    push(column, zigzag(tag.stream.0));
    push(column, u64::from(tag.pool.is_some()));
    let pool = tag.pool.unwrap_or_default();
    for n in [pool.0, pool.1] {
        push(column, n);
    }
    for text in [tag.compile_context, tag.user_metadata, tag.other_action] {
        push(column, text.0.into());
    }
}

/// Numbers of a frame, and of a tag: as many bytes at least.
const FRAME_NUMBERS: usize = 3;
const TAG_NUMBERS: usize = 7;

/// The contents of a symbols chunk, read by a [`SymbolMap`] or [`TagStreams`].
#[derive(Clone, Copy, Debug)]
pub struct SymbolsChunk<'a> {
    lengths: Varints<'a>,
    texts: Varints<'a>,
    frames: Varints<'a>,
    stacks: Varints<'a>,
    tags: Varints<'a>,
    /// The first number of the strings, frames, stacks and tags.
    from: [u32; 4],
}

impl<'a> SymbolsChunk<'a> {
    /// Reads the payload of a symbols chunk. Damage inside the columns is found when they are added to a map.
    pub fn decode(payload: &'a [u8]) -> Checked<Self> {
        let none = Varints::new(&[]);
        let mut new = Self { lengths: none, texts: none, frames: none, stacks: none, tags: none, from: [0; 4] };
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "strings_from" => new.from[0] = values.number()?,
                "string_lengths" => new.lengths = Varints::new(values.column()?),
                "strings" => new.texts = Varints::new(values.column()?),
                "frames_from" => new.from[1] = values.number()?,
                "frames" => new.frames = Varints::new(values.column()?),
                "stacks_from" => new.from[2] = values.number()?,
                "stacks" => new.stacks = Varints::new(values.column()?),
                "tags_from" => new.from[3] = values.number()?,
                "tags" => new.tags = Varints::new(values.column()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(new)
    }
}

/// Maps the numbers of a recording to those of the tables that it is read into.
#[derive(Debug)]
pub struct SymbolMap {
    strings: Vec<StrId>,
    frames: Vec<FrameId>,
    stacks: Vec<StackId>,
    tags: Vec<TagId>,
    lost: LostNumbers,
    /// How many numbers no chunk has defined.
    holes: usize,
    /// How many stacks and tags, from the first on, are known to have the same number on both sides.
    same: (usize, usize),
    /// Whether some of those were defined again.
    is_redefined: bool,
}

/// In the lists of a map: a number that no chunk has defined.
const HOLE: u32 = u32::MAX;

impl Default for SymbolMap {
    fn default() -> Self {
        Self {
            strings: vec![StrId(0)],
            frames: Vec::new(),
            stacks: vec![StackId(0)],
            tags: Vec::new(),
            lost: LostNumbers::default(),
            holes: 0,
            same: (0, 0),
            is_redefined: false,
        }
    }
}

impl SymbolMap {
    /// Returns the string with this number; one that is lost if its chunk is.
    pub fn string(&mut self, number: u32, symbols: &mut Symbols) -> StrId {
        match self.strings.get(number as usize) {
            Some(&id) if id.0 != HOLE => id,
            _ => StrId(self.lost.stand_in(Named::String, number, || symbols.lose_string().0)),
        }
    }

    fn frame(&mut self, number: u32, symbols: &mut Symbols) -> FrameId {
        match self.frames.get(number as usize) {
            Some(&id) if id.0 != HOLE => id,
            _ => FrameId(self.lost.stand_in(Named::Frame, number, || symbols.lose_frame().0)),
        }
    }

    /// Returns the stack with this number; one that is lost if its chunk is.
    #[inline]
    pub fn stack(&mut self, number: u32, symbols: &mut Symbols) -> StackId {
        match self.stacks.get(number as usize) {
            Some(&id) if id.0 != HOLE => id,
            _ => StackId(self.lost.stand_in(Named::Stack, number, || symbols.lose_stack().0)),
        }
    }

    /// Returns whether names of a stack were lost.
    #[inline]
    pub fn has_lost(&self, number: u32, stack: StackId, symbols: &Symbols) -> bool {
        let is_undefined = self.stacks.get(number as usize).is_none_or(|id| id.0 == HOLE);
        let is_written = || self.lost.has_written() && symbols.recorded(stack) == StackRecord::Lost;
        is_undefined || self.lost.is_part(stack) || is_written()
    }

    /// Returns how much of the names was lost, of what something refers to.
    pub fn lost(&self) -> LostNames {
        self.lost.told()
    }

    /// Returns the tag with this number; that of the default stream if its chunk is lost.
    #[inline]
    pub fn tag(&self, number: u32, tags: &mut Tags) -> TagId {
        match self.tags.get(number as usize) {
            Some(&id) if id.0 != HOLE => id,
            _ => tags.intern(Tag::default()),
        }
    }

    /// Returns whether no chunk has defined a tag.
    #[inline]
    pub fn is_lost_tag(&self, number: u32) -> bool {
        self.tags.get(number as usize).is_none_or(|id| id.0 == HOLE)
    }

    /// Whether the first so many stacks and tags have the same numbers in the tables. It may be false for tables in which a
    /// number was defined twice.
    pub(crate) fn keeps(&mut self, stacks: usize, tags: usize) -> bool {
        // Each number is compared once.
        let more = |from: usize, ids: &mut dyn Iterator<Item = u32>| {
            (number32(from)..).zip(ids).take_while(|(number, id)| number == id).count()
        };
        if self.same.0 < stacks {
            self.same.0 += more(self.same.0, &mut self.stacks.iter().skip(self.same.0).map(|id| id.0));
        }
        if self.same.1 < tags {
            self.same.1 += more(self.same.1, &mut self.tags.iter().skip(self.same.1).map(|id| id.0));
        }
        !self.is_redefined && self.same.0 >= stacks && self.same.1 >= tags
    }

    /// Returns the bytes of memory that it occupies.
    pub fn bytes(&self) -> usize {
        let Self { strings, frames, stacks, tags, .. } = self;
        let numbers = strings.capacity() + frames.capacity() + stacks.capacity() + tags.capacity();
        numbers * size_of::<u32>() + self.lost.bytes()
    }

    /// Reads a chunk into the tables.
    pub fn extend(
        &mut self,
        chunk: SymbolsChunk<'_>,
        symbols: &mut Symbols,
        tags: &mut Tags,
        limits: &ImportLimits,
    ) -> Checked {
        let SymbolsChunk { mut lengths, mut texts, mut frames, mut stacks, tags: mut tag_column, from } = chunk;
        let mut holes = self.holes;
        self.is_redefined |= (from[2] as usize) < self.same.0 || (from[3] as usize) < self.same.1;
        if !lengths.is_empty() {
            begin(&mut self.strings, from[0], StrId(HOLE), &mut holes, limits)?;
        }
        if !frames.is_empty() {
            begin(&mut self.frames, from[1], FrameId(HOLE), &mut holes, limits)?;
        }
        if !stacks.is_empty() {
            begin(&mut self.stacks, from[2], StackId(HOLE), &mut holes, limits)?;
        }
        if !tag_column.is_empty() {
            begin(&mut self.tags, from[3], TagId(HOLE), &mut holes, limits)?;
        }
        self.holes = holes;
        // What a few bytes of repeated names may add is bounded before it is read.
        if self.frames.len() + frames.count() / FRAME_NUMBERS > limits.frames {
            return Err(too_much(format!("it has more than {} frames", limits.frames)));
        }
        check_tags(self.tags.len(), &tag_column, limits)?;
        while !lengths.is_empty() {
            let length = lengths.small()? as usize;
            if length > limits.string_bytes || symbols.string_bytes() + length > limits.strings_total_bytes {
                return Err(too_much("its strings are too long"));
            }
            let text = texts.bytes(length)?;
            // The empty string is number 0: who writes another one has read a recording whose names were lost.
            self.strings.push(if length == 0 { symbols.lose_string() } else { symbols.intern(text) });
        }
        while !frames.is_empty() {
            let (name, filename, line) = (frames.small()?, frames.small()?, frames.small()?);
            let frame = Frame { name: self.string(name, symbols), filename: self.string(filename, symbols), line };
            self.frames.push(symbols.intern_frame(frame));
        }
        let mut list = Vec::new();
        while !stacks.is_empty() {
            let length = stacks.small()? as usize;
            if length > limits.stack_frames || symbols.stack_frames() + length > limits.stacks_total_frames {
                return Err(too_much("its stacks are too deep"));
            }
            list.clear();
            let (mut number, mut has_lost) = (0_i64, false);
            for _ in 0..length {
                number = number.wrapping_add(stacks.signed()?);
                let number = u32::try_from(number).map_err(|_| damaged("a stack refers to a frame beyond all"))?;
                let frame = self.frame(number, symbols);
                has_lost |= symbols.is_lost_frame(frame);
                list.push(frame);
            }
            // As with strings.
            let stack = if length == 0 { self.lost.written(symbols) } else { symbols.intern_stack(&list) };
            if has_lost {
                self.lost.add_part(stack);
            }
            self.stacks.push(stack);
        }
        while !tag_column.is_empty() {
            let tag = self.decode_tag(&mut tag_column, symbols)?;
            self.tags.push(tags.intern(tag));
        }
        Ok(())
    }

    fn decode_tag(&mut self, column: &mut Varints<'_>, symbols: &mut Symbols) -> Checked<Tag> {
        let (stream, pool) = stream_and_pool(column)?;
        Ok(Tag {
            stream,
            pool,
            compile_context: self.string(column.small()?, symbols),
            user_metadata: self.string(column.small()?, symbols),
            other_action: self.string(column.small()?, symbols),
        })
    }
}

fn stream_and_pool(column: &mut Varints<'_>) -> Checked<(Stream, Option<PoolId>)> {
    let stream = Stream(column.signed()?);
    let has_pool = column.next()? != 0;
    let pool = PoolId(column.next()?, column.next()?);
    Ok((stream, has_pool.then_some(pool)))
}

/// The stream and pool of each tag, for readers that need no names.
#[derive(Debug, Default)]
pub struct TagStreams {
    streams: Vec<(Stream, Option<PoolId>)>,
    holes: usize,
}

impl TagStreams {
    /// Returns the stream and pool of a tag; the default stream if its chunk is lost.
    #[inline]
    pub fn get(&self, tag: TagId) -> (Stream, Option<PoolId>) {
        self.streams.get(tag.0 as usize).copied().unwrap_or_default()
    }

    /// Reads the tags of a chunk. Fails before it allocates anything if they would take more than `room` further bytes
    /// of memory.
    pub fn extend(&mut self, chunk: SymbolsChunk<'_>, limits: &ImportLimits, room: usize) -> Checked {
        let SymbolsChunk { mut tags, from: [.., from], .. } = chunk;
        if tags.is_empty() {
            return Ok(());
        }
        check_tags(from as usize, &tags, limits)?;
        let count = from as usize + tags.count() / TAG_NUMBERS;
        // The list grows to at most twice what it needs.
        let most = 2 * count * size_of::<(Stream, Option<PoolId>)>();
        if count > self.streams.capacity() && most.saturating_sub(self.bytes()) > room {
            return Err(too_much("it has more tags than can be kept"));
        }
        begin(&mut self.streams, from, <_>::default(), &mut self.holes, limits)?;
        while !tags.is_empty() {
            self.streams.push(stream_and_pool(&mut tags)?);
            // Three strings follow.
            for _ in 0..3 {
                tags.next()?;
            }
        }
        Ok(())
    }

    /// Returns the bytes of memory that it occupies.
    pub fn bytes(&self) -> usize {
        self.streams.capacity() * size_of::<(Stream, Option<PoolId>)>()
    }
}

/// Fails if the tags of a column, of which the first has the number `from`, exceed the limit.
fn check_tags(from: usize, tags: &Varints<'_>, limits: &ImportLimits) -> Checked {
    if from.saturating_add(tags.count() / TAG_NUMBERS) > limits.tags {
        return Err(too_much(format!("it has more than {} tags", limits.tags)));
    }
    Ok(())
}

/// Makes `from` the next number. Later numbers are dropped (a chunk that occurs twice defines them again); missing ones
/// become `hole`.
fn begin<T: Clone>(list: &mut Vec<T>, from: u32, hole: T, holes: &mut usize, limits: &ImportLimits) -> Checked {
    let from = from as usize;
    if from <= list.len() {
        list.truncate(from);
        return Ok(());
    }
    *holes += from - list.len();
    if *holes > limits.lost_symbols {
        return Err(too_much(format!("more than {} names are lost", limits.lost_symbols)));
    }
    list.resize(from, hole);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> (Symbols, Tags) {
        let (mut symbols, mut tags) = (Symbols::default(), Tags::default());
        let names: Vec<StrId> = ["forward", "model.py", "", "grüß\u{0}"].map(|t| symbols.intern(t.as_bytes())).to_vec();
        let bad = symbols.intern(b"\xff\xfe");
        let frames: Vec<FrameId> =
            (0..9).map(|line| symbols.intern_frame(Frame { name: names[0], filename: names[1], line })).collect();
        symbols.intern_stack(&frames);
        symbols.intern_stack(&[frames[8], frames[0], frames[0]]);
        let tag = |stream, pool| Tag { stream: Stream(stream), pool, user_metadata: bad, ..Tag::default() };
        for tag in [tag(0, None), tag(-7, Some(PoolId(0, u64::MAX))), tag(i64::MIN, Some(PoolId(0, 0)))] {
            tags.intern(tag);
        }
        (symbols, tags)
    }

    fn chunk(payload: &[u8]) -> SymbolsChunk<'_> {
        SymbolsChunk::decode(payload).unwrap()
    }

    fn describe(symbols: &Symbols, tags: &Tags) -> String {
        let strings: Vec<_> = (0..symbols.string_count()).map(|n| symbols.bytes(StrId(n as u32))).collect();
        let frames: Vec<_> = (0..symbols.frame_count()).map(|n| symbols.frame(FrameId(n as u32))).collect();
        let stacks: Vec<_> = (0..symbols.stack_count()).map(|n| symbols.stack(StackId(n as u32))).collect();
        format!("{strings:?} {frames:?} {stacks:?} {:?}", tags.iter().collect::<Vec<_>>())
    }

    #[test]
    fn tables_survive_a_round_trip_in_one_chunk_or_several() {
        let (symbols, tags) = tables();
        let mut written = SymbolCursor::default();
        let payload = encode(&symbols, &tags, &mut written).unwrap();
        assert_eq!(encode(&symbols, &tags, &mut written), None);
        let limits = ImportLimits::default();
        let (mut numbers, mut read, mut read_tags) = (SymbolMap::default(), Symbols::default(), Tags::default());
        numbers.extend(chunk(&payload), &mut read, &mut read_tags, &limits).unwrap();
        let whole = describe(&read, &read_tags);
        assert_eq!(whole, describe(&symbols, &tags));
        numbers.extend(chunk(&payload), &mut read, &mut read_tags, &limits).unwrap();
        assert_eq!(describe(&read, &read_tags), whole, "a chunk that occurs twice changes nothing");
    }

    #[test]
    fn a_lost_chunk_costs_only_its_own_names() {
        let (mut symbols, tags) = tables();
        let mut written = SymbolCursor::default();
        encode(&symbols, &tags, &mut written).unwrap();
        let name = symbols.intern(b"backward");
        let frame = symbols.intern_frame(Frame { name, filename: StrId(1), line: 77 });
        let stack = symbols.intern_stack(&[frame]);
        let payload = encode(&symbols, &tags, &mut written).unwrap();
        let (mut numbers, mut read, mut read_tags) = (SymbolMap::default(), Symbols::default(), Tags::default());
        numbers.extend(chunk(&payload), &mut read, &mut read_tags, &ImportLimits::default()).unwrap();
        let known = numbers.stack(stack.0, &mut read);
        let got = read.frame(read.stack(known)[0]);
        assert_eq!((read.text(got.name).as_ref(), read.text(got.filename).as_ref(), got.line), ("backward", "", 77));
        assert!(read.is_lost_string(got.filename) && numbers.has_lost(stack.0, known, &read));
        // Each lost stack stays apart from the others, and from the empty one.
        let [one, again, two, beyond] = [1, 1, 2, 70_000].map(|number| numbers.stack(number, &mut read));
        assert_eq!(one, again);
        assert!(
            one != two && two != beyond && [one, two, beyond].iter().all(|id| read.recorded(*id) == StackRecord::Lost)
        );
        assert_eq!((numbers.stack(0, &mut read), numbers.has_lost(0, StackId(0), &read)), (StackId(0), false));
        assert_eq!(numbers.lost(), LostNames { stacks: 3, parts: 1 });
        // A copy keeps what is known of them.
        let copy = encode(&read, &read_tags, &mut SymbolCursor::default()).unwrap();
        let (mut numbers, mut read) = (SymbolMap::default(), Symbols::default());
        numbers.extend(chunk(&copy), &mut read, &mut Tags::default(), &ImportLimits::default()).unwrap();
        let [one, known] = [one, known].map(|id| numbers.stack(id.0, &mut read));
        assert_eq!((read.recorded(one), read.stack(known).len()), (StackRecord::Lost, 1));
        let few = ImportLimits { lost_symbols: 3, ..ImportLimits::default() };
        assert!(SymbolMap::default().extend(chunk(&payload), &mut read, &mut read_tags, &few).is_err());
    }
}
