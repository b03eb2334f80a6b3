//! Writes a snapshot as `torch.cuda.memory._dump_snapshot` does: a protocol 4 pickle of dicts and lists, with the keys
//! and their order of `torch/csrc/cuda/memory_snapshot.cpp` and `torch/csrc/cuda/Module.cpp`.
//!
//! Each stack, and each frame in it, is written once and referred to after that: PyTorch's tools distinguish stacks by
//! identity, and without references a file would be many times larger.

use super::writer::{Slot, Writer};
use trace::event::Action;
use trace::frames::{FrameId, StackId, StrId};
use trace::units::PoolId;
use trace::{Annotation, Block, BlockState, DeviceTrace, Event, Segment, Settings, Snapshot, Stage};

/// Devices without history get an empty list of entries up to this number: PyTorch's own limit on devices
/// (`C10_COMPILE_TIME_MAX_GPUS`). A segment may name any number.
const MOST_DEVICES: i64 = 120;

/// A slot that is not assigned.
const NONE: Slot = Slot::MAX;

/// Passes the bytes of a snapshot file to `sink`, piece by piece.
///
/// PyTorch's tools read the file (`python -m torch.cuda._memory_viz`, <https://pytorch.org/memory_viz>), and importing
/// it returns the same snapshot. Missing values are left out: times of 0, pools in layouts without them, absent
/// settings. Strings that are not UTF-8 are written with replacement characters, as Python refuses them.
pub fn pickle(snapshot: &Snapshot, sink: &mut dyn FnMut(&[u8])) {
    let mut pickler = Pickler {
        snapshot,
        strings: Vec::new(),
        frames: vec![NONE; snapshot.symbols.frame_count()],
        stacks: vec![NONE; snapshot.symbols.stack_count()],
    };
    let mut writer = Writer::new(sink);
    writer.dict(|w| {
        w.word("segments");
        let segments = snapshot.devices.iter().flat_map(|trace| trace.segments.iter().map(|s| (trace.device, s)));
        w.list(segments, |w, (device, segment)| pickler.segment(w, device, segment));

        w.word("device_traces");
        w.list(0..lists(snapshot), |w, device| {
            let trace = snapshot.devices.iter().find(|trace| trace.device == device);
            let events = trace.into_iter().flat_map(|trace| trace.events.iter());
            w.list(events, |w, event| pickler.entry(w, &event));
        });

        if snapshot.settings != Settings::default() {
            w.word("allocator_settings");
            write_settings(w, &snapshot.settings);
        }

        let annotations = || snapshot.devices.iter().flat_map(|t| t.annotations.iter().map(|a| (t.device, a)));
        if annotations().next().is_some() || snapshot.settings != Settings::default() {
            w.word("external_annotations");
            w.list(annotations(), |w, (device, annotation)| pickler.annotation(w, device, annotation));
        }
    });
    writer.finish();
}

/// Returns the number of lists of entries: a device's list is found by its number.
fn lists(snapshot: &Snapshot) -> i64 {
    let counts = |trace: &&DeviceTrace| !trace.events.is_empty() || trace.device < MOST_DEVICES;
    snapshot.devices.iter().filter(counts).map(|trace| trace.device.saturating_add(1)).max().unwrap_or(0).max(0)
}

/// What has been written so far.
struct Pickler<'a> {
    snapshot: &'a Snapshot,
    /// The slot of each string, by number.
    strings: Vec<Slot>,
    /// The slot of each frame.
    frames: Vec<Slot>,
    /// The slot of each stack's list.
    stacks: Vec<Slot>,
}

impl Pickler<'_> {
    fn segment(&mut self, w: &mut Writer<'_>, device: i64, segment: &Segment) {
        let sum = |counts: fn(&&Block) -> bool, bytes: fn(&Block) -> u64| {
            segment.blocks.iter().filter(counts).fold(0, |sum: u64, block| sum.saturating_add(bytes(block)))
        };
        let is_active: fn(&&Block) -> bool = |block| block.state != BlockState::Inactive;
        w.dict(|w| {
            w.int_item("device", device);
            w.int_item("address", segment.address.0);
            w.int_item("total_size", segment.size);
            w.int_item("allocated_size", sum(|block| block.state == BlockState::Allocated, |block| block.size));
            w.int_item("active_size", sum(is_active, |block| block.size));
            w.int_item("requested_size", sum(is_active, |block| block.requested));
            w.int_item("stream", segment.stream.0);
            w.word_item("segment_type", if segment.is_small { "small" } else { "large" });
            w.word("segment_pool_id");
            pool(w, segment.pool);
            w.bool_item("is_expandable", segment.is_expandable);
            w.word("frames");
            self.stack(w, segment.stack);
            w.word("blocks");
            w.list(segment.blocks.iter(), |w, block| self.block(w, block));
        });
    }

    fn block(&mut self, w: &mut Writer<'_>, block: &Block) {
        w.dict(|w| {
            w.int_item("address", block.address.0);
            w.int_item("size", block.size);
            w.int_item("requested_size", block.requested);
            let state = match block.state {
                BlockState::Allocated => "active_allocated",
                BlockState::Pending => "active_pending_free",
                BlockState::Inactive => "inactive",
            };
            w.word_item("state", state);
            w.word("frames");
            self.stack(w, block.stack);
        });
    }

    fn entry(&mut self, w: &mut Writer<'_>, event: &Event) {
        let tag = self.snapshot.tags.get(event.tag);
        w.dict(|w| {
            w.word("action");
            match event.action {
                Action::Other => self.string(w, tag.other_action),
                action => w.word(action.name()),
            }
            w.int_item(if event.action == Action::Oom { "device_free" } else { "addr" }, event.address.0);
            w.int_item("size", event.size);
            w.int_item("stream", tag.stream.0);
            if event.time_us != 0 {
                w.int_item("time_us", event.time_us);
            }
            w.word("compile_context");
            self.string(w, tag.compile_context);
            w.word("user_metadata");
            self.string(w, tag.user_metadata);
            if let Some(id) = tag.pool {
                w.word("pool_id");
                pool(w, id);
            }
            if event.stack != StackId(0) {
                w.word("frames");
                self.stack(w, event.stack);
            }
        });
    }

    fn annotation(&mut self, w: &mut Writer<'_>, device: i64, annotation: &Annotation) {
        w.dict(|w| {
            w.word("name");
            self.string(w, annotation.name);
            match annotation.stage {
                Stage::Start => w.word_item("stage", "START"),
                Stage::End => w.word_item("stage", "END"),
                Stage::Instant => {}
            }
            w.int_item("device", device);
            w.int_item("time_us", annotation.time_us);
        });
    }

    fn stack(&mut self, w: &mut Writer<'_>, stack: StackId) {
        let number = stack.0 as usize;
        if let Some(&slot) = self.stacks.get(number).filter(|slot| **slot != NONE) {
            return w.get(slot);
        }
        let snapshot = self.snapshot;
        let mut own = NONE;
        let frames = snapshot.symbols.stack(stack).iter();
        w.shared_list(|_, slot| own = slot, frames, |w, &frame| self.frame(w, frame));
        if let Some(slot) = self.stacks.get_mut(number) {
            *slot = own;
        }
    }

    fn frame(&mut self, w: &mut Writer<'_>, id: FrameId) {
        let number = id.0 as usize;
        if let Some(&slot) = self.frames.get(number).filter(|slot| **slot != NONE) {
            return w.get(slot);
        }
        let frame = self.snapshot.symbols.frame(id);
        w.dict(|w| {
            w.word("name");
            self.string(w, frame.name);
            w.word("filename");
            self.string(w, frame.filename);
            w.int_item("line", frame.line);
        });
        // Stored after its items, as no item refers back to it.
        let own = w.memoize();
        if let Some(slot) = self.frames.get_mut(number) {
            *slot = own;
        }
    }

    fn string(&mut self, w: &mut Writer<'_>, id: StrId) {
        let number = id.0 as usize;
        if let Some(&slot) = self.strings.get(number).filter(|slot| **slot != NONE) {
            return w.get(slot);
        }
        w.text(&self.snapshot.symbols.text(id));
        let slot = w.memoize();
        if self.strings.len() <= number {
            self.strings.resize(number + 1, NONE);
        }
        if let Some(place) = self.strings.get_mut(number) {
            *place = slot;
        }
    }
}

fn pool(w: &mut Writer<'_>, id: PoolId) {
    w.int(id.0);
    w.int(id.1);
    w.pair();
}

/// Writes the settings with the names and values that were read.
fn write_settings(w: &mut Writer<'_>, settings: &Settings) {
    w.dict(|w| {
        for (name, written) in &settings.as_written {
            w.text(name);
            match name.as_str() {
                // It may look like a number, but is text.
                "PYTORCH_CUDA_ALLOC_CONF" => w.text(&settings.conf),
                "roundup_power2_divisions" => w.dict(|w| {
                    for (class, divisions) in written.split(", ").filter_map(|entry| entry.split_once(':')) {
                        w.text(class);
                        value(w, divisions);
                    }
                }),
                _ => value(w, written),
            }
        }
    });
}

/// Parses a value that Python printed; returns text if the value would not print the same way.
fn value(w: &mut Writer<'_>, written: &str) {
    match written {
        "None" => return w.none(),
        "True" | "False" => return w.bool(written == "True"),
        _ => {}
    }
    match (written.parse::<i128>(), written.parse::<f64>()) {
        (Ok(int), _) if int.to_string() == written => w.int(int),
        (_, Ok(float)) if format!("{float:?}") == written => w.float(float),
        _ => w.text(written),
    }
}
