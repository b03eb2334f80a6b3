//! Writes a memory snapshot as `torch.cuda.memory._dump_snapshot` does: a protocol 4 pickle of dicts and lists.
//!
//! A stack is written once and referred to after that, and so is a frame within it: what makes real files small, and
//! what a reader has to cope with.

use std::collections::HashMap;

use super::caching_allocator::{BlockState, CachingAllocator, PoolId};

/// CPython hands its unpickler this many items of a list at once.
const BATCH: usize = 1000;

/// Opcodes of the pickle machine, by the names that Python's `pickletools` gives them.
mod op {
    pub(super) const PROTO: u8 = 0x80;
    pub(super) const STOP: u8 = b'.';
    pub(super) const MARK: u8 = b'(';
    pub(super) const MEMOIZE: u8 = 0x94;
    pub(super) const BINGET: u8 = b'h';
    pub(super) const LONG_BINGET: u8 = b'j';
    pub(super) const EMPTY_DICT: u8 = b'}';
    pub(super) const SETITEMS: u8 = b'u';
    pub(super) const EMPTY_LIST: u8 = b']';
    pub(super) const APPENDS: u8 = b'e';
    pub(super) const TUPLE2: u8 = 0x86;
    pub(super) const SHORT_BINUNICODE: u8 = 0x8c;
    pub(super) const BINUNICODE: u8 = b'X';
    pub(super) const BININT: u8 = b'J';
    pub(super) const BININT1: u8 = b'K';
    pub(super) const BININT2: u8 = b'M';
    pub(super) const LONG1: u8 = 0x8a;
    pub(super) const BINFLOAT: u8 = b'G';
    pub(super) const NEWTRUE: u8 = 0x88;
    pub(super) const NEWFALSE: u8 = 0x89;
}

/// A frame: function, file and line.
pub type Frame = (&'static str, &'static str, u32);

/// A named instant: name, `START` or `END`, microseconds since the epoch.
pub type Annotation = (String, &'static str, i64);

/// One device's memory and history as the bytes of a snapshot file. `stacks` are innermost first, and entries name
/// them by their number.
pub fn snapshot(allocator: &CachingAllocator, stacks: &[Vec<Frame>], annotations: &[Annotation]) -> Vec<u8> {
    let mut writer = Writer::new(stacks);
    writer.dict(|w| {
        w.key("segments");
        let segments: Vec<_> = allocator.segments().collect();
        w.list(&segments, |w, (address, segment, blocks)| {
            let sum = |count: fn(BlockState) -> bool| blocks.iter().filter(move |(_, block)| count(block.state));
            let is_active = |state| state != BlockState::Inactive;
            w.dict(|w| {
                w.int_item("device", 0);
                w.int_item("address", i128::from(*address));
                w.int_item("total_size", i128::from(segment.size));
                let allocated: u64 = sum(|state| state == BlockState::Allocated).map(|(_, block)| block.size).sum();
                w.int_item("allocated_size", i128::from(allocated));
                let active: u64 = sum(is_active).map(|(_, block)| block.size).sum();
                w.int_item("active_size", i128::from(active));
                let requested: u64 = sum(is_active).map(|(_, block)| block.requested).sum();
                w.int_item("requested_size", i128::from(requested));
                w.int_item("stream", i128::from(segment.stream));
                w.text_item("segment_type", if segment.is_small { "small" } else { "large" });
                w.key("segment_pool_id");
                w.pool(segment.pool);
                w.bool_item("is_expandable", false);
                w.key("frames");
                w.stack(segment.stack);
                w.key("blocks");
                w.list(blocks, |w, (at, block)| {
                    w.dict(|w| {
                        w.int_item("address", i128::from(*at));
                        w.int_item("size", i128::from(block.size));
                        w.int_item("requested_size", i128::from(block.requested));
                        let state = match block.state {
                            BlockState::Allocated => "active_allocated",
                            BlockState::Pending(_) => "active_pending_free",
                            BlockState::Inactive => "inactive",
                        };
                        w.text_item("state", state);
                        w.key("frames");
                        if block.state == BlockState::Inactive { w.list(&[], |_, ()| {}) } else { w.stack(block.stack) }
                    });
                });
            });
        });

        w.key("device_traces");
        w.list(&[allocator.history()], |w, history| {
            w.list(history, |w, entry| {
                w.dict(|w| {
                    w.text_item("action", entry.action);
                    w.int_item(if entry.action == "oom" { "device_free" } else { "addr" }, i128::from(entry.address));
                    w.int_item("size", i128::from(entry.size));
                    w.int_item("stream", i128::from(entry.stream));
                    w.int_item("time_us", i128::from(entry.time_us));
                    w.text_item("compile_context", "N/A");
                    w.text_item("user_metadata", "");
                    w.key("pool_id");
                    w.pool(entry.pool);
                    w.key("frames");
                    w.stack(entry.stack);
                });
            });
        });

        w.key("allocator_settings");
        w.settings();

        w.key("external_annotations");
        w.list(annotations, |w, (name, stage, time_us)| {
            w.dict(|w| {
                w.text_item("stage", stage);
                w.text_item("name", name);
                w.int_item("device", 0);
                w.int_item("time_us", i128::from(*time_us));
            });
        });
    });
    writer.finish()
}

/// The pickle machine's input as it grows.
struct Writer<'a> {
    out: Vec<u8>,
    /// Memo slots given out.
    slots: u32,
    /// Slot of each string, frame and stack that has been written.
    strings: HashMap<String, u32>,
    frames: HashMap<Frame, u32>,
    stack_slots: HashMap<usize, u32>,
    stacks: &'a [Vec<Frame>],
}

impl<'a> Writer<'a> {
    fn new(stacks: &'a [Vec<Frame>]) -> Self {
        Self {
            out: vec![op::PROTO, 4],
            slots: 0,
            strings: HashMap::new(),
            frames: HashMap::new(),
            stack_slots: HashMap::new(),
            stacks,
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.push(op::STOP);
        self.out
    }

    /// Puts the value just written into the memo, and gives its slot.
    fn memoize(&mut self) -> u32 {
        self.out.push(op::MEMOIZE);
        self.slots += 1;
        self.slots - 1
    }

    /// The value of a memo slot.
    fn get(&mut self, slot: u32) {
        if let Ok(short) = u8::try_from(slot) {
            self.out.extend([op::BINGET, short]);
        } else {
            self.out.push(op::LONG_BINGET);
            self.out.extend(slot.to_le_bytes());
        }
    }

    /// A dict whose keys and values `fill` writes in turn.
    fn dict(&mut self, fill: impl FnOnce(&mut Self)) {
        self.out.push(op::EMPTY_DICT);
        self.memoize();
        self.out.push(op::MARK);
        fill(self);
        self.out.push(op::SETITEMS);
    }

    /// A list with one value for each item.
    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.out.push(op::EMPTY_LIST);
        self.memoize();
        for batch in items.chunks(BATCH) {
            self.out.push(op::MARK);
            for item in batch {
                write(self, item);
            }
            self.out.push(op::APPENDS);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(&slot) = self.strings.get(text) {
            return self.get(slot);
        }
        match u8::try_from(text.len()) {
            Ok(length) => self.out.extend([op::SHORT_BINUNICODE, length]),
            Err(_) => {
                self.out.push(op::BINUNICODE);
                self.out.extend((text.len() as u32).to_le_bytes());
            }
        }
        self.out.extend(text.as_bytes());
        let slot = self.memoize();
        self.strings.insert(text.to_owned(), slot);
    }

    fn int(&mut self, value: i128) {
        if let Ok(byte) = u8::try_from(value) {
            self.out.extend([op::BININT1, byte]);
        } else if let Ok(short) = u16::try_from(value) {
            self.out.push(op::BININT2);
            self.out.extend(short.to_le_bytes());
        } else if let Ok(int) = i32::try_from(value) {
            self.out.push(op::BININT);
            self.out.extend(int.to_le_bytes());
        } else {
            // Two's complement in as few bytes as still show the sign.
            let bytes = value.to_le_bytes();
            let length = (1..16).find(|&n| value >> (8 * n - 1) == 0 || value >> (8 * n - 1) == -1).unwrap_or(16);
            self.out.extend([op::LONG1, length as u8]);
            self.out.extend(&bytes[..length]);
        }
    }

    fn bool(&mut self, value: bool) {
        self.out.push(if value { op::NEWTRUE } else { op::NEWFALSE });
    }

    fn key(&mut self, name: &str) {
        self.text(name);
    }

    fn int_item(&mut self, name: &str, value: i128) {
        self.key(name);
        self.int(value);
    }

    fn text_item(&mut self, name: &str, value: &str) {
        self.key(name);
        self.text(value);
    }

    fn bool_item(&mut self, name: &str, value: bool) {
        self.key(name);
        self.bool(value);
    }

    fn pool(&mut self, pool: PoolId) {
        self.int(i128::from(pool.0));
        self.int(i128::from(pool.1));
        self.out.push(op::TUPLE2);
        self.memoize();
    }

    fn stack(&mut self, stack: usize) {
        if let Some(&slot) = self.stack_slots.get(&stack) {
            return self.get(slot);
        }
        self.stack_slots.insert(stack, self.slots);
        let stacks = self.stacks;
        self.list(stacks.get(stack).map_or(&[], Vec::as_slice), |w, &frame| {
            if let Some(&slot) = w.frames.get(&frame) {
                return w.get(slot);
            }
            w.frames.insert(frame, w.slots);
            w.dict(|w| {
                w.text_item("name", frame.0);
                w.text_item("filename", frame.1);
                w.int_item("line", i128::from(frame.2));
            });
        });
    }

    /// PyTorch's default settings.
    fn settings(&mut self) {
        self.dict(|w| {
            w.text_item("PYTORCH_CUDA_ALLOC_CONF", "");
            w.int_item("max_split_size", -1);
            w.key("garbage_collection_threshold");
            w.out.push(op::BINFLOAT);
            w.out.extend(0.0_f64.to_be_bytes());
            w.bool_item("expandable_segments", false);
            w.int_item("pinned_num_register_threads", 1);
            w.bool_item("release_lock_on_cudamalloc", false);
            w.bool_item("pinned_use_cuda_host_register", false);
            w.key("roundup_power2_divisions");
            w.dict(|w| {
                for power in 0..16 {
                    w.int_item(&(1_u32 << power).to_string(), 0);
                }
            });
        });
    }
}
