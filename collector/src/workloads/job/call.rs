//! Where a program is: the chain of functions that called one another, and the stacks that result from it.

use rustc_hash::FxHashMap;
use trace::frames::{Frame, FrameId, StackId, Symbols};

use crate::workloads::call_site::{Call, Site};
use crate::workloads::sites;

/// The number of a chain of calls; 0 is the empty chain.
pub(super) type Chain = u32;

/// A frame as a key, by the addresses of its strings. Different keys of equal frames lead to the same frame.
type Key = (Chain, *const u8, *const u8, u32);

/// The chains of calls so far, and their stacks.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) symbols: Symbols,
    current: Chain,
    /// The last frame of each chain from number 1 on, and the chain before it.
    chains: Vec<(FrameId, Chain)>,
    numbers: FxHashMap<Key, Chain>,
    stacks: FxHashMap<(Chain, *const &'static [Call], usize), StackId>,
    engine: Option<Chain>,
}

impl Calls {
    /// Enters a function; returns the chain to come back to.
    pub(super) fn enter(&mut self, call: Call) -> Chain {
        let next = self.chain(self.current, call);
        std::mem::replace(&mut self.current, next)
    }

    /// Moves to the thread of the backward pass; returns the chain to come back to.
    pub(super) fn enter_engine(&mut self) -> Chain {
        let engine = match self.engine {
            Some(engine) => engine,
            None => {
                let outermost_first = sites::ENGINE.iter().rev();
                let engine = outermost_first.fold(0, |chain, call| self.chain(chain, *call));
                self.engine = Some(engine);
                engine
            }
        };
        std::mem::replace(&mut self.current, engine)
    }

    /// Comes back to a chain.
    pub(super) fn leave(&mut self, before: Chain) {
        self.current = before;
    }

    /// Returns whether the program is on the thread of the backward pass.
    pub(super) fn is_in_engine(&self) -> bool {
        self.engine == Some(self.current)
    }

    /// Returns the stack of an operation at this point.
    pub(super) fn stack(&mut self, site: Site) -> StackId {
        let key = (self.current, site.as_ptr(), site.len());
        if let Some(&stack) = self.stacks.get(&key) {
            return stack;
        }
        let mut frames: Vec<FrameId> = site.iter().copied().flatten().map(|call| self.frame(*call)).collect();
        let mut chain = self.current;
        while let Some(&(frame, before)) = chain.checked_sub(1).and_then(|i| self.chains.get(i as usize)) {
            frames.push(frame);
            chain = before;
        }
        let stack = self.symbols.intern_stack(&frames);
        self.stacks.insert(key, stack);
        stack
    }

    fn chain(&mut self, before: Chain, call: Call) -> Chain {
        let (name, file, line) = call;
        let key = (before, name.as_ptr(), file.as_ptr(), line);
        if let Some(&chain) = self.numbers.get(&key) {
            return chain;
        }
        let frame = self.frame(call);
        self.chains.push((frame, before));
        let chain = self.chains.len() as Chain;
        self.numbers.insert(key, chain);
        chain
    }

    fn frame(&mut self, (name, file, line): Call) -> FrameId {
        let (name, filename) = (self.symbols.intern(name.as_bytes()), self.symbols.intern(file.as_bytes()));
        self.symbols.intern_frame(Frame { name, filename, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::call_site::at;

    const ADD: Site = &[&[("add", "??", 0)], &[("forward", "nn.py", 3)]];

    fn lines(calls: &Calls, stack: StackId) -> Vec<u32> {
        calls.symbols.stack(stack).iter().map(|frame| calls.symbols.frame(*frame).line).collect()
    }

    #[test]
    fn a_stack_is_the_operation_and_the_calls_around_it() {
        let mut calls = Calls::default();
        let outside = calls.stack(ADD);
        assert_eq!(lines(&calls, outside), [0, 3]);
        let top = calls.enter(at("main", "train.py", 9));
        let before = calls.enter(at("step", "train.py", 7));
        let inside = calls.stack(ADD);
        assert_eq!(lines(&calls, inside), [0, 3, 7, 9]);
        assert_eq!(calls.stack(ADD), inside);
        calls.leave(before);
        calls.enter(at("step", "train.py", 7));
        assert_eq!(calls.stack(ADD), inside);
        calls.leave(top);
        assert_eq!(calls.stack(ADD), outside);
        assert!(!calls.is_in_engine());
        calls.enter_engine();
        let backward = calls.stack(ADD);
        assert!(calls.is_in_engine());
        assert_eq!(lines(&calls, backward).len(), 2 + sites::ENGINE.len());
    }
}
