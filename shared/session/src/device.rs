//! One device of a session, from a file or a running job: its replay, its indexes, and what was built for questions.

use super::caches::Caches;
use super::facts::Facts;
use analysis::usage::Usage;
use replay::index::{Index, IndexInput};
use replay::{Replay, Replayed};
use trace::{DeviceTrace, Tags};

/// What is built over one device's trace.
#[derive(Debug, Default)]
pub(super) struct Device {
    pub(super) replay: Replay,
    pub(super) indexes: Indexes,
    pub(super) caches: Caches,
}

/// The indexes that every device has. A new one is a field, and a line in each of two functions.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pub(super) usage: Usage,
    pub(super) facts: Facts,
}

impl Device {
    /// Builds the other indexes of a replay.
    pub(super) fn of_replay(replay: Replay, trace: &DeviceTrace, tags: &Tags) -> Self {
        let indexes = Indexes::build(Replayed { trace, tags, replay: &replay });
        Self { replay, indexes, caches: Caches::default() }
    }
}

impl Index<IndexInput<'_>> for Device {
    fn extend(&mut self, IndexInput { trace, tags, settings, states }: IndexInput<'_>) {
        // Without events, the start may still change.
        if self.replay.positions() == 0 {
            (self.indexes, self.caches) = (Indexes::default(), Caches::default());
        }
        self.replay.extend(IndexInput { trace, tags: &mut *tags, settings, states });
        self.indexes.extend(Replayed { trace, tags, replay: &self.replay });
    }

    fn bytes(&self) -> usize {
        self.replay.bytes() + self.indexes.bytes() + self.caches.bytes()
    }
}

impl Index<Replayed<'_>> for Indexes {
    fn extend(&mut self, input: Replayed<'_>) {
        let Self { usage, facts } = self;
        usage.extend(input);
        facts.extend(input);
    }

    fn bytes(&self) -> usize {
        let Self { usage, facts } = self;
        usage.bytes() + facts.bytes()
    }
}
