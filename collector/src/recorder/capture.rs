//! How much is recorded: PyTorch's levels of context.

use shared::event::Action;

/// Which events are recorded, and for which a stack is gathered and kept: the arguments `enabled` and `context` of
/// `torch.cuda.memory._record_memory_history`, as its allocator reads them (`RecordContext`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capture {
    /// `context=None`: every event, no stack anywhere.
    None,
    /// `context="state"`: a stack for each block and segment that is there, none in events.
    State,
    /// `context="alloc"`: also in events; a free has that of its allocation.
    Alloc,
    /// `context="all"`: a free has its own.
    #[default]
    All,
}

impl Capture {
    /// Every level, from the least on.
    pub const ALL: [Self; 4] = [Self::None, Self::State, Self::Alloc, Self::All];

    /// The level's name: `none`, `state`, `alloc` or `all`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::State => "state",
            Self::Alloc => "alloc",
            Self::All => "all",
        }
    }

    /// The level of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether a stack is to be gathered for the call that leads to such an event: for an allocation from `state` on,
    /// for a free or the giving back of segments at `all` only.
    pub const fn gathers(self, action: Action) -> bool {
        match action {
            Action::FreeRequested | Action::FreeCompleted | Action::SegmentFree | Action::SegmentUnmap => {
                matches!(self, Self::All)
            }
            _ => !matches!(self, Self::None),
        }
    }

    /// Whether events keep the stack that they come with.
    pub const fn keeps_in_events(self) -> bool {
        matches!(self, Self::Alloc | Self::All)
    }

    /// Whether blocks and segments keep the stack of who asked for them.
    pub const fn keeps_in_state(self) -> bool {
        !matches!(self, Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_keeps_what_pytorch_keeps() {
        // Level; gathered for an allocation, for a free; kept in events, in blocks and segments.
        let cases = [
            (Capture::None, [false, false, false, false]),
            (Capture::State, [true, false, false, true]),
            (Capture::Alloc, [true, false, true, true]),
            (Capture::All, [true, true, true, true]),
        ];
        for (level, want) in cases {
            for (alloc, free) in [
                (Action::Alloc, Action::FreeRequested),
                (Action::SegmentAlloc, Action::FreeCompleted),
                (Action::SegmentMap, Action::SegmentUnmap),
                (Action::Oom, Action::SegmentFree),
            ] {
                let got = [level.gathers(alloc), level.gathers(free), level.keeps_in_events(), level.keeps_in_state()];
                assert_eq!(got, want, "{level:?} {alloc:?}");
            }
            assert_eq!(Capture::from_name(level.name()), Some(level));
        }
        assert_eq!(Capture::from_name("python"), None);
        assert!(Capture::None < Capture::State && Capture::Alloc < Capture::All);
    }
}
