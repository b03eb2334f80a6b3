//! Which frame represents each stack, and which of its frames fold.

use rustc_hash::FxHashMap;

use query::folding::{Overrides, Owner, Part, Rank, fold_where, is_python};
use replay::index::Index;
use trace::frames::{FrameId, StrId, Symbols};

/// Finds the frame that describes a stack best, and the runs of library frames around it. Each distinct frame is
/// classified once.
#[derive(Debug)]
pub struct BestFrames {
    overrides: Overrides,
    ranks: Vec<Rank>,
    /// By frame: the number of its library.
    library: Vec<u32>,
    /// The names of libraries. The first is empty: the user's own code.
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// By frame: the first frame of the same function, whatever its line.
    function: Vec<FrameId>,
    functions: FxHashMap<(StrId, StrId), FrameId>,
    /// The rank and the number of the library of files of Python, whose functions all have the same.
    files: FxHashMap<StrId, (Rank, u32)>,
    /// By frame: whether the symbolizer found no function.
    nameless: Vec<bool>,
    has_nameless: bool,
}

impl Default for BestFrames {
    fn default() -> Self {
        Self::with(Overrides::default())
    }
}

impl Index<&Symbols> for BestFrames {
    fn extend(&mut self, symbols: &Symbols) {
        for id in self.ranks.len() as u32..symbols.frame_count() as u32 {
            let frame = symbols.frame(FrameId(id));
            let (name, filename) = (symbols.text(frame.name), symbols.text(frame.filename));
            let (rank, number) = match self.files.get(&frame.filename) {
                Some(known) => *known,
                None => self.owner(frame.filename, &name, &filename),
            };
            // A frame that is known describes a stack better than one whose names were lost.
            let rank = if symbols.is_lost_frame(FrameId(id)) { Rank::Machinery } else { rank };
            self.ranks.push(rank);
            self.library.push(number);
            self.function.push(*self.functions.entry((frame.name, frame.filename)).or_insert(FrameId(id)));
            let is_nameless = matches!(&*name, "" | "??") && !is_python(&filename);
            self.nameless.push(is_nameless);
            self.has_nameless |= is_nameless;
        }
    }

    fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| 2 * name.len()).sum();
        let files = self.files.capacity() * size_of::<(StrId, Rank, u32)>();
        let per_frame = size_of::<Rank>() + 2 * size_of::<u32>() + size_of::<bool>();
        self.ranks.capacity() * per_frame + self.functions.capacity() * 3 * size_of::<u32>() + files + names
    }
}

impl BestFrames {
    /// Creates an index without frames, by the table of rules and the user's overrides.
    pub fn with(overrides: Overrides) -> Self {
        let numbers = FxHashMap::from_iter([(String::new(), 0)]);
        Self {
            overrides,
            ranks: Vec::new(),
            library: Vec::new(),
            names: vec![String::new()],
            numbers,
            function: Vec::new(),
            functions: FxHashMap::default(),
            files: FxHashMap::default(),
            nameless: Vec::new(),
            has_nameless: false,
        }
    }

    /// Returns the rank of a frame and the number of its library.
    fn owner(&mut self, file: StrId, name: &str, filename: &str) -> (Rank, u32) {
        let Owner { rank, library } = Owner::of(name, filename, &self.overrides);
        let number = match self.numbers.get(&*library) {
            Some(&number) => number,
            None => {
                let next = self.names.len() as u32;
                self.names.push(library.clone().into_owned());
                self.numbers.insert(library.into_owned(), next);
                next
            }
        };
        // An override may be of one function.
        if is_python(filename) && self.overrides.is_empty() {
            self.files.insert(file, (rank, number));
        }
        (rank, number)
    }

    /// Returns the user's overrides of the table of rules.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Returns the innermost of the best frames of a stack: a line of the user's own code, if there is one. `None` for
    /// the empty stack.
    pub fn frame(&self, stack: &[FrameId]) -> Option<FrameId> {
        self.index(stack).and_then(|index| stack.get(index).copied())
    }

    /// Returns the index in a stack of [`Self::frame`].
    pub fn index(&self, stack: &[FrameId]) -> Option<usize> {
        stack.iter().enumerate().min_by_key(|(_, id)| self.rank(**id)).map(|(index, _)| index)
    }

    /// Returns the frame that describes best what [`Self::frame`] called: the innermost line of a package, or else of PyTorch. `None` if it
    /// called nothing that has a name.
    pub fn inner_frame(&self, stack: &[FrameId]) -> Option<FrameId> {
        let called = self.index(stack).and_then(|index| stack.get(..index))?;
        called.iter().copied().filter(|id| self.rank(*id) != Rank::Machinery).min_by_key(|id| self.rank(*id))
    }

    /// Returns whether a frame is the user's own code.
    pub fn is_own(&self, frame: FrameId) -> bool {
        self.rank(frame) == Rank::Own
    }

    /// Returns the number of a frame's library, which [`Self::library_name`] names; 0 for the user's own code.
    pub fn library(&self, frame: FrameId) -> u32 {
        self.library.get(frame.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the first frame of the same function and file, whatever its line. It identifies the function.
    pub fn function(&self, frame: FrameId) -> FrameId {
        self.function.get(frame.0 as usize).copied().unwrap_or(frame)
    }

    /// Returns whether the symbolizer found no function for a frame of native code.
    pub fn is_nameless(&self, frame: FrameId) -> bool {
        self.nameless.get(frame.0 as usize).copied().unwrap_or(false)
    }

    /// Returns whether any frame is [nameless](Self::is_nameless).
    pub const fn has_nameless(&self) -> bool {
        self.has_nameless
    }

    /// Returns the name of a library: `torch`, `einops`, `Python`. Empty for the user's own code.
    pub fn library_name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// Folds the runs of library frames of a stack. The frame that represents it is never folded.
    pub fn fold(&self, stack: &[FrameId]) -> Vec<Part> {
        let best = self.index(stack);
        fold_where(stack.len(), |i| Some(i) != best && stack.get(i).is_some_and(|id| !self.is_own(*id)))
    }

    fn rank(&self, frame: FrameId) -> Rank {
        self.ranks.get(frame.0 as usize).copied().unwrap_or(Rank::Machinery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the function that represents a stack, which is written as `function@file`, innermost first.
    fn represented(stack: &[&str], overrides: &Overrides) -> String {
        let mut symbols = Symbols::default();
        let stack = trace::testing::stack(&mut symbols, stack);
        let mut best = BestFrames::with(overrides.clone());
        best.extend(&symbols);
        let frame = best.frame(symbols.stack(stack)).map(|id| symbols.frame(id).name);
        frame.map_or_else(String::new, |name| symbols.text(name).into_owned())
    }

    #[test]
    fn the_innermost_line_of_the_users_own_code_represents_a_stack() {
        let whole = [
            "torch::unwind::unwind()@??",
            "at::_ops::mm::call(at::Tensor const&)@??",
            "linear@/x/site-packages/torch/nn/functional.py:1",
            "attend@/x/site-packages/einops/einops.py:1",
            "forward@/home/me/model.py:1",
            "main@/home/me/train.py:1",
            "run@/usr/lib/python3.12/threading.py:1",
        ];
        let none = Overrides::default();
        let cases: [(&[&str], &str); 8] = [
            (&whole, "forward"),
            // Without own code: a package, then a line of PyTorch, then the operator.
            (&whole[..4], "attend"),
            (&whole[..3], "linear"),
            (&whole[..2], "at::_ops::mm::call(at::Tensor const&)"),
            (&[whole[0], whole[1], whole[6]], "at::_ops::mm::call(at::Tensor const&)"),
            (&[whole[0], whole[6]], "run"),
            (&whole[..1], "torch::unwind::unwind()"),
            (&[], ""),
        ];
        for (stack, want) in cases {
            assert_eq!(represented(stack, &none), want, "{stack:?}");
        }
        let mut overrides = Overrides::default();
        overrides.add_mine("site-packages/einops").expect("a good part");
        assert_eq!(represented(&whole, &overrides), "attend");
        overrides.add_library("einops").expect("a good part");
        overrides.add_library("model.py").expect("a good part");
        overrides.remove("site-packages/einops");
        assert_eq!(represented(&whole, &overrides), "main");
    }

    #[test]
    fn runs_of_library_frames_fold() {
        use Part::{Folded, Frame};
        let check = |stack: &[&str], want: &[Part]| {
            let mut symbols = Symbols::default();
            let stack = trace::testing::stack(&mut symbols, stack);
            assert_eq!(BestFrames::build(&symbols).fold(symbols.stack(stack)), want);
        };
        let (own, torch, numpy) = ("f@/m/a.py:1", "g@/x/site-packages/torch/a.py:1", "h@/x/site-packages/numpy/a.py:1");
        check(&[torch, numpy, own, own, torch], &[Folded(0..2), Frame(2), Frame(3), Folded(4..5)]);
        // The frame that represents a stack is shown, even if it is a library's.
        check(&[torch, numpy, torch], &[Folded(0..1), Frame(1), Folded(2..3)]);
        check(&[], &[]);
    }
}
