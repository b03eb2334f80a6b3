//! Where a program is: functions that have called one another, and the stacks that they make.

use rustc_hash::FxHashMap;
use shared::frames::{Frame, FrameId, StackId, Symbols};

/// A frame: function, file and line.
pub(in crate::workloads) type Call = (&'static str, &'static str, u32);

/// An operation as pieces of a stack that follow one another, innermost first.
pub(in crate::workloads) type Site = &'static [&'static [Call]];

/// A frame, to be called.
pub(in crate::workloads) const fn at(name: &'static str, file: &'static str, line: u32) -> Call {
    (name, file, line)
}

/// A chain of calls, by number; 0 is none.
pub(super) type Chain = u32;

/// A frame as a key. Equal frames at other addresses are other keys, and the same frame in the end.
type Key = (Chain, *const u8, *const u8, u32);

/// All chains of calls so far, and their stacks.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) symbols: Symbols,
    current: Chain,
    /// The frame that each chain ends in, and the chain before it; the first is no chain.
    chains: Vec<(FrameId, Chain)>,
    numbers: FxHashMap<Key, Chain>,
    stacks: FxHashMap<(Chain, *const &'static [Call], usize), StackId>,
    engine: Option<Chain>,
}

impl Calls {
    /// Goes into a function; gives where to go back to.
    pub(super) fn enter(&mut self, call: Call) -> Chain {
        let next = self.chain(self.current, call);
        std::mem::replace(&mut self.current, next)
    }

    /// Goes to the thread of the backward pass; gives where to go back to.
    pub(super) fn enter_engine(&mut self) -> Chain {
        let engine = match self.engine {
            Some(engine) => engine,
            None => {
                let outermost_first = crate::workloads::sites::ENGINE.iter().rev();
                let engine = outermost_first.fold(0, |chain, call| self.chain(chain, *call));
                self.engine = Some(engine);
                engine
            }
        };
        std::mem::replace(&mut self.current, engine)
    }

    /// Goes back.
    pub(super) fn leave(&mut self, before: Chain) {
        self.current = before;
    }

    /// Whether this is the thread of the backward pass.
    pub(super) fn is_in_engine(&self) -> bool {
        self.engine == Some(self.current)
    }

    /// The stack of an operation here.
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
        assert_eq!(lines(&calls, backward).len(), 2 + crate::workloads::sites::ENGINE.len());
    }
}
