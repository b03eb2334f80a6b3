//! Copies a trace into tables of its own.

use std::ops::Range;

use super::rewriter::Rewriter;
use super::{Part, Redaction};
use replay::Replay;
use trace::event::Action;
use trace::frames::{Frame, FrameId, StackId, StackRecord, StrId, Symbols};
use trace::narrow::number32;
use trace::{
    Annotation, Block, DeviceTrace, Event, Events, HostMemory, Loss, Marks, Segment, Snapshot, Tag, TagId, Tags,
};

/// A device's events between two positions, and its segments at the end.
#[derive(Debug)]
pub(super) struct Slice {
    index: usize,
    positions: Range<u32>,
    /// `None` if they are those of the trace.
    segments: Option<Vec<Segment>>,
}

/// Returns what is to be copied.
pub(super) fn parts(snapshot: &mut Snapshot, part: &Part) -> Vec<Slice> {
    let all = |trace: &DeviceTrace| 0..number32(trace.events.len());
    let mut slices = Vec::new();
    for (index, trace) in snapshot.devices.iter().enumerate() {
        let is_kept = match part {
            Part::Everything => true,
            Part::Devices(numbers) => numbers.contains(&trace.device),
            Part::Window { device, .. } => *device == trace.device,
        };
        if !is_kept {
            continue;
        }
        let mut slice = Slice { index, positions: all(trace), segments: None };
        if let Part::Window { positions, .. } = part {
            let end = positions.end.min(slice.positions.end);
            slice.positions = positions.start.min(end)..end;
            if (end as usize) < trace.events.len() {
                let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
                slice.segments = Some(replay.segments_at(end));
            }
        }
        slices.push(slice);
    }
    slices
}

/// A copy that is being made.
#[derive(Debug)]
pub(super) struct Copy<'a> {
    from: &'a Snapshot,
    redaction: &'a Redaction,
    rewriter: &'a Rewriter<'a>,
    to: Snapshot,
    /// For each number in the original tables, the number in the copy. Strings: as texts, then as paths. Tags: of other events,
    /// then of annotations.
    strings: [Vec<Option<StrId>>; 2],
    frames: Vec<Option<FrameId>>,
    stacks: Vec<Option<StackId>>,
    tags: [Vec<Option<TagId>>; 2],
}

impl<'a> Copy<'a> {
    pub(super) fn new(from: &'a Snapshot, redaction: &'a Redaction, rewriter: &'a Rewriter<'a>) -> Self {
        let Snapshot { symbols, tags, settings, .. } = from;
        Self {
            from,
            redaction,
            rewriter,
            to: Snapshot {
                devices: Vec::new(),
                symbols: Symbols::default(),
                tags: Tags::default(),
                settings: rewriter.settings(settings),
                // Recordings don't hold pinned host memory.
                host: HostMemory::default(),
                marks: Marks::default(),
            },
            strings: [vec![None; symbols.string_count()], vec![None; symbols.string_count()]],
            frames: vec![None; symbols.frame_count()],
            stacks: vec![None; symbols.stack_count()],
            tags: [vec![None; tags.len()], vec![None; tags.len()]],
        }
    }

    /// Adds a device.
    pub(super) fn add(&mut self, slice: Slice) {
        let Slice { index, positions, segments } = slice;
        let Some(trace) = self.from.devices.get(index) else { return };
        let range = positions.start as usize..positions.end as usize;
        let mut events = Events::default();
        for event in trace.events.iter_from(range.start).take(range.len()) {
            events.push(self.event(event));
        }
        let segments = segments.as_deref().unwrap_or(&trace.segments);
        let segments = segments.iter().map(|segment| self.segment(segment)).collect();
        // Annotations and samples are kept if their time lies between those of the events, which may fall.
        let is_whole = range == (0..trace.events.len());
        let times = || trace.events.time_us.iter().skip(range.start).take(range.len());
        let (first, last) = (times().min().unwrap_or(i64::MAX), times().max().unwrap_or(i64::MIN));
        let is_within = |time_us: i64| is_whole || (first..=last).contains(&time_us);
        let annotations = trace.annotations.iter().filter(|mark| is_within(mark.time_us));
        let annotations: Vec<_> = annotations.filter(|_| !self.redaction.is_without_annotations).copied().collect();
        let annotations =
            annotations.into_iter().map(|mark| Annotation { name: self.text(mark.name), ..mark }).collect();
        let is_inside = |loss: &&Loss| is_whole || (loss.position > positions.start && loss.position < positions.end);
        let losses = trace.losses.iter().filter(is_inside);
        self.to.devices.push(DeviceTrace {
            device: trace.device,
            events,
            segments,
            annotations,
            losses: losses.map(|loss| Loss { position: loss.position - positions.start, ..*loss }).collect(),
            samples: trace.samples.iter().filter(|sample| is_within(sample.time_us)).copied().collect(),
            outside: trace.outside.iter().filter(|sample| is_within(sample.time_us)).copied().collect(),
        });
    }

    /// Returns the copy.
    pub(super) fn finish(self) -> Snapshot {
        self.to
    }

    fn event(&mut self, event: Event) -> Event {
        let is_annotation = matches!(event.action, Action::UserDefined | Action::Annotate);
        let (tag, stack) = (self.tag(event.tag, is_annotation), self.stack(event.stack));
        Event { tag, stack, ..event }
    }

    fn segment(&mut self, segment: &Segment) -> Segment {
        let blocks = segment.blocks.iter().map(|block| Block { stack: self.stack(block.stack), ..*block }).collect();
        Segment { stack: self.stack(segment.stack), blocks, ..*segment }
    }

    fn tag(&mut self, id: TagId, is_annotation: bool) -> TagId {
        if let Some(Some(copied)) = one(&mut self.tags, is_annotation).get(id.0 as usize) {
            return *copied;
        }
        let tag = self.from.tags.get(id);
        let has_text = if is_annotation { !self.redaction.is_without_annotations } else { self.redaction.has_metadata };
        let user_metadata = if has_text { self.text(tag.user_metadata) } else { StrId::default() };
        let copied = Tag {
            compile_context: self.text(tag.compile_context),
            user_metadata,
            other_action: self.text(tag.other_action),
            ..tag
        };
        let copied = self.to.tags.intern(copied);
        remember(one(&mut self.tags, is_annotation), id.0, copied);
        copied
    }

    fn stack(&mut self, id: StackId) -> StackId {
        if let Some(Some(copied)) = self.stacks.get(id.0 as usize) {
            return *copied;
        }
        let from = self.from;
        let frames: Vec<_> = from.symbols.stack(id).iter().map(|frame| self.frame(*frame)).collect();
        // One without frames that was recorded stays apart from what was not.
        let is_lost = frames.is_empty() && from.symbols.recorded(id) == StackRecord::Lost;
        let copied = if is_lost { self.to.symbols.lose_stack() } else { self.to.symbols.intern_stack(&frames) };
        remember(&mut self.stacks, id.0, copied);
        copied
    }

    fn frame(&mut self, id: FrameId) -> FrameId {
        if let Some(Some(copied)) = self.frames.get(id.0 as usize) {
            return *copied;
        }
        let Frame { name, filename, line } = self.from.symbols.frame(id);
        let frame = Frame { name: self.text(name), filename: self.path(filename), line };
        let copied = self.to.symbols.intern_frame(frame);
        remember(&mut self.frames, id.0, copied);
        copied
    }

    fn text(&mut self, id: StrId) -> StrId {
        self.string(id, false)
    }

    fn path(&mut self, id: StrId) -> StrId {
        self.string(id, true)
    }

    fn string(&mut self, id: StrId, is_path: bool) -> StrId {
        if let Some(Some(copied)) = one(&mut self.strings, is_path).get(id.0 as usize) {
            return *copied;
        }
        let bytes = self.from.symbols.bytes(id);
        let bytes = if is_path { self.rewriter.path(bytes) } else { self.rewriter.bytes(bytes) };
        let is_lost = self.from.symbols.is_lost_string(id);
        let copied = if is_lost { self.to.symbols.lose_string() } else { self.to.symbols.intern(&bytes) };
        remember(one(&mut self.strings, is_path), id.0, copied);
        copied
    }
}

/// Returns one of two lists.
fn one<T>([first, second]: &mut [Vec<T>; 2], is_second: bool) -> &mut Vec<T> {
    if is_second { second } else { first }
}

fn remember<T>(copies: &mut [Option<T>], number: u32, copied: T) {
    if let Some(place) = copies.get_mut(number as usize) {
        *place = Some(copied);
    }
}
