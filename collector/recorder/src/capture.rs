//! How much is recorded: PyTorch's levels of context.

use trace::event::Action;

/// For which events a stack is gathered and kept: the argument `context` of
/// `torch.cuda.memory._record_memory_history`, as PyTorch's allocator interprets it (`RecordContext`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capture {
    /// `context=None`: no stacks at all.
    None,
    /// `context="state"`: stacks of the existing blocks and segments, none in events.
    State,
    /// `context="alloc"`: also in events; a free has the stack of its allocation.
    Alloc,
    /// `context="all"`: a free has its own stack.
    #[default]
    All,
}

impl Capture {
    /// Every level, in ascending order.
    pub const ALL: [Self; 4] = [Self::None, Self::State, Self::Alloc, Self::All];

    /// Returns the level's name: `none`, `state`, `alloc` or `all`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::State => "state",
            Self::Alloc => "alloc",
            Self::All => "all",
        }
    }

    /// Returns the level with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Returns whether to gather a stack for a call that leads to such an event: for an allocation from `state` on, for
    /// a free or the release of segments at `all` only.
    pub const fn gathers(self, action: Action) -> bool {
        match action {
            Action::FreeRequested | Action::FreeCompleted | Action::SegmentFree | Action::SegmentUnmap => {
                matches!(self, Self::All)
            }
            _ => !matches!(self, Self::None),
        }
    }

    /// Returns whether events keep their stack.
    pub const fn keeps_in_events(self) -> bool {
        matches!(self, Self::Alloc | Self::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_keeps_the_stacks_that_pytorch_keeps() {
        // Level; gathered for an allocation, for a free; kept in events.
        let cases = [
            (Capture::None, [false, false, false]),
            (Capture::State, [true, false, false]),
            (Capture::Alloc, [true, false, true]),
            (Capture::All, [true, true, true]),
        ];
        for (level, want) in cases {
            for (alloc, free) in [
                (Action::Alloc, Action::FreeRequested),
                (Action::SegmentAlloc, Action::FreeCompleted),
                (Action::SegmentMap, Action::SegmentUnmap),
                (Action::Oom, Action::SegmentFree),
            ] {
                let got = [level.gathers(alloc), level.gathers(free), level.keeps_in_events()];
                assert_eq!(got, want, "{level:?} {alloc:?}");
            }
            assert_eq!(Capture::from_name(level.name()), Some(level));
        }
        assert_eq!(Capture::from_name("python"), None);
        assert!(Capture::None < Capture::State && Capture::Alloc < Capture::All);
    }
}
