//! Strings, frames, stacks and tags as they are met: each chunk holds those that are new since the one before.
//!
//! Numbers count over the whole file and each chunk says with which it begins, so that a chunk that is lost costs its
//! own names only: what it held reads as the empty string or stack.

use super::varint::{Varints, fold, push};
use crate::frames::{Frame, FrameId, StackId, StrId, Symbols};
use crate::import::error::{Checked, damaged, too_much};
use crate::limits::ImportLimits;
use crate::msgpack::{MapReader, MapWriter};
use crate::trace::{Tag, TagId, Tags};
use crate::units::{PoolId, Stream};

/// Bytes of a chunk before another is begun. A string or stack is never torn apart.
const CHUNK_BYTES: usize = 1 << 20;

/// Which symbols were written already: the next number of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    strings: usize,
    frames: usize,
    stacks: usize,
    tags: usize,
}

impl Default for Written {
    /// The empty string and the empty stack are number 0 of every file, and are never written.
    fn default() -> Self {
        Self { strings: 1, frames: 0, stacks: 1, tags: 0 }
    }
}

/// One chunk's columns.
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

/// The payload of the next chunk, with what is new since `written`; `None` when nothing is.
pub(super) fn encode(symbols: &Symbols, tags: &Tags, written: &mut Written) -> Option<Vec<u8>> {
    let from = *written;
    let mut columns = Columns::default();
    let id = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // In this order: each refers to those before it only.
    while written.strings < symbols.string_count() && !columns.is_full() {
        let text = symbols.bytes(StrId(id(written.strings)));
        push(&mut columns.lengths, text.len() as u64);
        columns.texts.extend_from_slice(text);
        written.strings += 1;
    }
    while written.frames < symbols.frame_count() && !columns.is_full() {
        let frame = symbols.frame(FrameId(id(written.frames)));
        for n in [frame.name.0, frame.filename.0, frame.line] {
            push(&mut columns.frames, n.into());
        }
        written.frames += 1;
    }
    while written.stacks < symbols.stack_count() && !columns.is_full() {
        let stack = symbols.stack(StackId(id(written.stacks)));
        push(&mut columns.stacks, stack.len() as u64);
        let mut last = 0;
        for frame in stack {
            push(&mut columns.stacks, fold(i64::from(frame.0) - last));
            last = i64::from(frame.0);
        }
        written.stacks += 1;
    }
    while written.tags < tags.len() && !columns.is_full() {
        encode_tag(&mut columns.tags, &tags.get(TagId(id(written.tags))));
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
    push(column, fold(tag.stream.0));
    push(column, u64::from(tag.pool.is_some()));
    let pool = tag.pool.unwrap_or_default();
    for n in [pool.0, pool.1] {
        push(column, n);
    }
    for text in [tag.compile_context, tag.user_metadata, tag.other_action] {
        push(column, text.0.into());
    }
}

/// From the numbers of a file to those of the tables that it is read into.
#[derive(Debug)]
pub(super) struct Numbers {
    strings: Vec<StrId>,
    frames: Vec<FrameId>,
    stacks: Vec<StackId>,
    tags: Vec<TagId>,
    /// Numbers that no chunk has given a meaning.
    holes: usize,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { strings: vec![StrId(0)], frames: Vec::new(), stacks: vec![StackId(0)], tags: Vec::new(), holes: 0 }
    }
}

impl Numbers {
    /// A string; the empty one where its chunk is lost.
    pub(super) fn string(&self, number: u32) -> StrId {
        self.strings.get(number as usize).copied().unwrap_or_default()
    }

    /// A stack; the empty one where its chunk is lost.
    #[inline]
    pub(super) fn stack(&self, number: u32) -> StackId {
        self.stacks.get(number as usize).copied().unwrap_or_default()
    }

    /// A tag; that of the default stream where its chunk is lost.
    #[inline]
    pub(super) fn tag(&self, number: u32, tags: &mut Tags) -> TagId {
        match self.tags.get(number as usize) {
            Some(&id) => id,
            None => tags.intern(Tag::default()),
        }
    }

    /// Reads a chunk into the tables.
    pub(super) fn decode(
        &mut self,
        payload: &[u8],
        symbols: &mut Symbols,
        tags: &mut Tags,
        limits: &ImportLimits,
    ) -> Checked {
        let mut from = [0; 4];
        let [mut lengths, mut texts, mut frames, mut stacks, mut tag_column] = [Varints::new(&[]); 5];
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "strings_from" => from[0] = values.number()?,
                "string_lengths" => lengths = Varints::new(values.column()?),
                "strings" => texts = Varints::new(values.column()?),
                "frames_from" => from[1] = values.number()?,
                "frames" => frames = Varints::new(values.column()?),
                "stacks_from" => from[2] = values.number()?,
                "stacks" => stacks = Varints::new(values.column()?),
                "tags_from" => from[3] = values.number()?,
                "tags" => tag_column = Varints::new(values.column()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let mut holes = self.holes;
        if !lengths.is_empty() {
            begin(&mut self.strings, from[0], StrId::default, &mut holes, limits)?;
        }
        if !frames.is_empty() {
            let nameless = || symbols.intern_frame(Frame { name: StrId(0), filename: StrId(0), line: 0 });
            begin(&mut self.frames, from[1], nameless, &mut holes, limits)?;
        }
        if !stacks.is_empty() {
            begin(&mut self.stacks, from[2], StackId::default, &mut holes, limits)?;
        }
        if !tag_column.is_empty() {
            begin(&mut self.tags, from[3], || tags.intern(Tag::default()), &mut holes, limits)?;
        }
        self.holes = holes;
        while !lengths.is_empty() {
            let length = lengths.small()? as usize;
            if length > limits.string_bytes || symbols.string_bytes() + length > limits.strings_total_bytes {
                return Err(too_much("its strings are too long"));
            }
            self.strings.push(symbols.intern(texts.bytes(length)?));
        }
        while !frames.is_empty() {
            let (name, filename, line) = (frames.small()?, frames.small()?, frames.small()?);
            let frame = Frame { name: self.string(name), filename: self.string(filename), line };
            self.frames.push(symbols.intern_frame(frame));
        }
        let mut list = Vec::new();
        while !stacks.is_empty() {
            let length = stacks.small()? as usize;
            if length > limits.stack_frames || symbols.stack_frames() + length > limits.stacks_total_frames {
                return Err(too_much("its stacks are too deep"));
            }
            list.clear();
            let mut number = 0_i64;
            for _ in 0..length {
                number = number.wrapping_add(stacks.signed()?);
                let frame = usize::try_from(number).ok().and_then(|n| self.frames.get(n));
                list.push(*frame.ok_or_else(|| damaged("a stack has a frame that is not there"))?);
            }
            self.stacks.push(symbols.intern_stack(&list));
        }
        while !tag_column.is_empty() {
            let tag = self.decode_tag(&mut tag_column)?;
            self.tags.push(tags.intern(tag));
        }
        Ok(())
    }

    fn decode_tag(&self, column: &mut Varints<'_>) -> Checked<Tag> {
        let (stream, pool) = stream_and_pool(column)?;
        Ok(Tag {
            stream,
            pool,
            compile_context: self.string(column.small()?),
            user_metadata: self.string(column.small()?),
            other_action: self.string(column.small()?),
        })
    }
}

fn stream_and_pool(column: &mut Varints<'_>) -> Checked<(Stream, Option<PoolId>)> {
    let stream = Stream(column.signed()?);
    let has_pool = column.next()? != 0;
    let pool = PoolId(column.next()?, column.next()?);
    Ok((stream, has_pool.then_some(pool)))
}

/// Streams and pools of tags by their numbers, for who needs nothing else of what is named.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<(Stream, Option<PoolId>)>,
    holes: usize,
}

impl Places {
    /// Those of a tag; the default stream where its chunk is lost.
    #[inline]
    pub(super) fn get(&self, tag: TagId) -> (Stream, Option<PoolId>) {
        self.places.get(tag.0 as usize).copied().unwrap_or_default()
    }

    /// Reads a chunk of symbols.
    pub(super) fn decode(&mut self, payload: &[u8], limits: &ImportLimits) -> Checked {
        let (mut from, mut tags) = (0, Varints::new(&[]));
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "tags_from" => from = values.number()?,
                "tags" => tags = Varints::new(values.column()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if !tags.is_empty() {
            begin(&mut self.places, from, Default::default, &mut self.holes, limits)?;
        }
        while !tags.is_empty() {
            self.places.push(stream_and_pool(&mut tags)?);
            // The texts.
            for _ in 0..3 {
                tags.next()?;
            }
        }
        Ok(())
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<(Stream, Option<PoolId>)>()
    }
}

/// Makes `from` the next number. What was numbered from there on is numbered anew (a chunk that is there twice);
/// what is missing before it becomes `hole`.
fn begin<T: Clone>(
    list: &mut Vec<T>,
    from: u32,
    hole: impl FnOnce() -> T,
    holes: &mut usize,
    limits: &ImportLimits,
) -> Checked {
    let from = from as usize;
    if from <= list.len() {
        list.truncate(from);
        return Ok(());
    }
    *holes += from - list.len();
    if *holes > limits.lost_symbols {
        return Err(too_much(format!("more than {} names are lost", limits.lost_symbols)));
    }
    list.resize(from, hole());
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

    fn describe(symbols: &Symbols, tags: &Tags) -> String {
        let strings: Vec<_> = (0..symbols.string_count()).map(|n| symbols.bytes(StrId(n as u32))).collect();
        let frames: Vec<_> = (0..symbols.frame_count()).map(|n| symbols.frame(FrameId(n as u32))).collect();
        let stacks: Vec<_> = (0..symbols.stack_count()).map(|n| symbols.stack(StackId(n as u32))).collect();
        format!("{strings:?} {frames:?} {stacks:?} {:?}", tags.iter().collect::<Vec<_>>())
    }

    #[test]
    fn tables_read_as_they_were_written_in_one_go_or_several() {
        let (symbols, tags) = tables();
        let mut written = Written::default();
        let payload = encode(&symbols, &tags, &mut written).unwrap();
        assert_eq!(encode(&symbols, &tags, &mut written), None);
        let limits = ImportLimits::default();
        let (mut numbers, mut read, mut read_tags) = (Numbers::default(), Symbols::default(), Tags::default());
        numbers.decode(&payload, &mut read, &mut read_tags, &limits).unwrap();
        let whole = describe(&read, &read_tags);
        assert_eq!(whole, describe(&symbols, &tags));
        numbers.decode(&payload, &mut read, &mut read_tags, &limits).unwrap();
        assert_eq!(describe(&read, &read_tags), whole, "a chunk that is there twice changes nothing");
    }

    #[test]
    fn a_lost_chunk_costs_its_own_names_only() {
        let (mut symbols, tags) = tables();
        let mut written = Written::default();
        encode(&symbols, &tags, &mut written).unwrap();
        let name = symbols.intern(b"backward");
        let frame = symbols.intern_frame(Frame { name, filename: StrId(1), line: 77 });
        let stack = symbols.intern_stack(&[frame]);
        let payload = encode(&symbols, &tags, &mut written).unwrap();
        let (mut numbers, mut read, mut read_tags) = (Numbers::default(), Symbols::default(), Tags::default());
        numbers.decode(&payload, &mut read, &mut read_tags, &ImportLimits::default()).unwrap();
        let got = read.frame(read.stack(numbers.stack(stack.0))[0]);
        assert_eq!((read.text(got.name).as_ref(), read.text(got.filename).as_ref(), got.line), ("backward", "", 77));
        assert_eq!(numbers.stack(1), StackId(0));
        let few = ImportLimits { lost_symbols: 3, ..ImportLimits::default() };
        assert!(Numbers::default().decode(&payload, &mut read, &mut read_tags, &few).is_err());
    }
}
