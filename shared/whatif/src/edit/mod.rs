//! Requests of a program that keeps less: some allocations are freed earlier, or freed and asked for again.
//!
//! An edited stream is balanced whatever is asked of it: nothing is freed twice, and what the recording frees is freed in the end,
//! except for what an edit keeps or copies and no edit frees.
//! What an edit asks for that isn't possible at its position changes nothing.

use rustc_hash::FxHashMap;

use super::requests::{Act, RequestStep, Requests};

/// One change of what a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The position at which it happens: after this number of the trace's events, and before the next one.
    pub position: u32,
    /// What happens.
    pub act: EditAct,
}

/// What an edit does with an allocation, which it names by its number in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditAct {
    /// Frees it, if it is live. A free that the recording has later does nothing, unless it was asked for again.
    Free(u32),
    /// Asks for as much again in its place, if it is not live and the recording has yet to free it. Where the recording frees it,
    /// this is freed.
    Again(u32),
    /// Keeps it where the recording frees it, until an edit frees it.
    Keep(u32),
    /// Asks for as much once more, beside it. There is one copy of an allocation at a time.
    Copy(u32),
    /// Frees the copy.
    FreeCopy(u32),
}

impl EditAct {
    /// Returns the number of the allocation.
    pub const fn allocation(self) -> u32 {
        match self {
            Self::Free(number)
            | Self::Again(number)
            | Self::Keep(number)
            | Self::Copy(number)
            | Self::FreeCopy(number) => number,
        }
    }
}

/// What is live of an allocation that edits name.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// The number of the request that it lives by.
    now: Option<u32>,
    copy: Option<u32>,
    /// The number that was freed while streams used it.
    waits: Option<u32>,
    has_begun: bool,
    is_kept: bool,
    /// Whether the recording has freed it.
    is_over: bool,
}

/// A stream of requests while it is edited.
struct Editor {
    edited: Requests,
    lives: FxHashMap<u32, Life>,
}

impl Requests {
    /// Returns the requests of the same program whose cache is empty at the start: what was reserved before the first event and not in use
    /// is released first, as `empty_cache` does, and needs no room. It may have been needed only by what the program did before, or by
    /// what edits leave out.
    #[must_use]
    pub fn without_cache_at_start(&self) -> Self {
        let mut requests = self.edited(&[]);
        requests.steps.insert(0, RequestStep { event: 0, act: Act::Begin });
        requests
    }

    /// Returns the requests with some edits, in order of their positions; those of one position happen in the order given. What the
    /// recording answered is left out, since it answered other requests.
    #[must_use]
    pub fn edited(&self, edits: &[Edit]) -> Self {
        let mut edits: Vec<Edit> = edits.to_vec();
        edits.sort_by_key(|edit| edit.position);
        let is_known = |edit: &&Edit| (edit.act.allocation() as usize) < self.asked.len();
        let mut lives: FxHashMap<u32, Life> =
            edits.iter().filter(is_known).map(|edit| (edit.act.allocation(), Life::default())).collect();
        for live in self.live.iter().filter(|live| !live.is_waiting) {
            if let Some(life) = lives.get_mut(&live.number) {
                (life.now, life.has_begun) = (Some(live.number), true);
            }
        }
        let edited = Self {
            start: self.start.clone(),
            live: self.live.clone(),
            steps: Vec::with_capacity(self.steps.len() + edits.len()),
            asked: self.asked.clone(),
            sources: self.sources.clone(),
            recorded: Default::default(),
            capacity: self.capacity,
            lost: self.lost,
        };
        let mut editor = Editor { edited, lives };
        let mut edits = edits.into_iter().peekable();
        for step in &self.steps {
            while let Some(edit) = edits.next_if(|edit| edit.position <= step.event) {
                editor.edit(edit);
            }
            editor.step(*step);
        }
        edits.for_each(|edit| editor.edit(edit));
        editor.edited
    }
}

impl Editor {
    fn push(&mut self, event: u32, act: Act) {
        self.edited.steps.push(RequestStep { event, act });
    }

    /// Asks for as much as an allocation did; returns the number of the new request.
    fn ask(&mut self, event: u32, like: u32) -> Option<u32> {
        let asked = self.edited.asked.get(like as usize).copied()?;
        let number = u32::try_from(self.edited.asked.len()).ok()?;
        self.edited.asked.push(asked);
        self.push(event, Act::Malloc(number));
        Some(number)
    }

    fn edit(&mut self, Edit { position, act }: Edit) {
        let number = act.allocation();
        let Some(mut life) = self.lives.get(&number).copied() else { return };
        // The event that leads to the position.
        let event = position.saturating_sub(1);
        match act {
            EditAct::Free(_) => {
                if let Some(live) = life.now.take() {
                    self.push(event, Act::Free(live));
                }
            }
            EditAct::Again(_) => {
                if life.now.is_none() && life.has_begun && !life.is_over {
                    life.now = self.ask(event, number);
                }
            }
            EditAct::Keep(_) => life.is_kept = true,
            EditAct::Copy(_) => {
                if life.copy.is_none() {
                    life.copy = self.ask(event, number);
                }
            }
            EditAct::FreeCopy(_) => {
                if let Some(copy) = life.copy.take() {
                    self.push(event, Act::Free(copy));
                }
            }
        }
        self.lives.insert(number, life);
    }

    /// Takes over what the program did, as far as it still does it.
    fn step(&mut self, step: RequestStep) {
        let number = match step.act {
            Act::Malloc(number) | Act::Free(number) | Act::FreeLater(number) | Act::Settled(number) => number,
            Act::Failed(_) | Act::EmptyCache | Act::EndPool(_) | Act::LeavePool(_) | Act::Begin => {
                self.edited.steps.push(step);
                return;
            }
        };
        let Some(life) = self.lives.get_mut(&number) else {
            self.edited.steps.push(step);
            return;
        };
        let act = match step.act {
            Act::Malloc(_) => {
                (life.now, life.has_begun) = (Some(number), true);
                Some(step.act)
            }
            Act::Free(_) | Act::FreeLater(_) => {
                life.is_over = true;
                let freed = if life.is_kept { None } else { life.now.take() };
                match step.act {
                    Act::FreeLater(_) => {
                        life.waits = freed;
                        freed.map(Act::FreeLater)
                    }
                    _ => freed.map(Act::Free),
                }
            }
            // Of what waited for a stream at the start, nothing was changed.
            _ if !life.has_begun => Some(step.act),
            _ => life.waits.take().map(Act::Settled),
        };
        if let Some(act) = act {
            self.push(step.event, act);
        }
    }
}

#[cfg(test)]
mod tests;
