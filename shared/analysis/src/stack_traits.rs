//! The traits of stacks, by the names of functions and files that programs with PyTorch have in common.
//!
//! The frames of a stack are compared with [`RULES`] once, however many allocations have the stack. The rules use names
//! only, since a snapshot has no source text: `x.to("cuda")` leaves no frame but the line that calls it.

use replay::index::Index;
use trace::frames::{Frame, FrameId, StackId, StackRecord, Symbols};

/// A set of traits of a stack, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(pub u16);

impl Traits {
    /// An optimizer's `step`.
    pub const OPTIMIZER: Self = Self(1);
    /// `zero_grad`.
    pub const ZERO_GRAD: Self = Self(1 << 1);
    /// The call of `backward` in Python, or a backward operator.
    pub const BACKWARD: Self = Self(1 << 2);
    /// The forward pass computed again during the backward one (activation checkpointing).
    pub const RECOMPUTE: Self = Self(1 << 3);
    /// The `forward` of a module.
    pub const FORWARD: Self = Self(1 << 4);
    /// A module's construction, its move to the device, or the loading of its weights.
    pub const SETUP: Self = Self(1 << 5);
    /// A loader of data.
    pub const LOADER: Self = Self(1 << 6);
    /// A cache of keys and values.
    pub const KV_CACHE: Self = Self(1 << 7);
    /// Scratch memory of a library.
    pub const WORKSPACE: Self = Self(1 << 8);
    /// Buckets of gradients that are exchanged between processes.
    pub const BUCKETS: Self = Self(1 << 9);
    /// The stack has a frame of Python.
    pub const PYTHON: Self = Self(1 << 10);
    /// The stack has a frame of C++.
    pub const CPP: Self = Self(1 << 11);
    /// The constructor of an optimizer.
    pub const OPTIMIZER_SETUP: Self = Self(1 << 12);
    /// Names of the stack were lost: it may have any other trait.
    pub const LOST: Self = Self(1 << 13);
    /// A cache of something, by a name outside of PyTorch.
    pub const CACHE: Self = Self(1 << 14);

    /// Returns whether it has any of the traits of `some`.
    pub const fn has(self, some: Self) -> bool {
        self.0 & some.0 != 0
    }

    /// Returns the traits of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a rule compares a name.
#[derive(Clone, Copy, Debug)]
pub enum Text {
    /// Any text.
    Any,
    /// Equal to this.
    Is(&'static str),
    /// Contains this.
    Has(&'static str),
    /// Ends with this.
    Ends(&'static str),
}

impl Text {
    fn fits(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Is(whole) => text == whole,
            Self::Has(part) => contains(text, part),
            Self::Ends(end) => text.ends_with(end),
        }
    }
}

/// Returns whether a text contains a part, as [`str::contains`] does, which takes longer to begin than names are long.
fn contains(text: &str, part: &str) -> bool {
    let first = part.as_bytes().first();
    text.as_bytes().windows(part.len().max(1)).any(|window| window.first() == first && window == part.as_bytes())
}

/// A rule: a frame whose function and file both fit gives its stack a trait.
#[derive(Clone, Copy, Debug)]
pub struct FrameRule {
    /// The trait.
    pub gives: Traits,
    /// The function.
    pub function: Text,
    /// The file, with `/` between folders.
    pub file: Text,
}

const fn rule(gives: Traits, function: Text, file: Text) -> FrameRule {
    FrameRule { gives, function, file }
}

/// All rules. A frame gets the traits of each rule that it fits.
pub const RULES: [FrameRule; 48] = [
    rule(Traits::OPTIMIZER, Text::Is("step"), Text::Has("optim")),
    rule(Traits::OPTIMIZER, Text::Is("optimizer_step"), Text::Any),
    // Every optimizer is called through this function, wherever it is written.
    rule(Traits::OPTIMIZER, Text::Is("wrapper"), Text::Ends("torch/optim/optimizer.py")),
    rule(Traits::OPTIMIZER, Text::Has("_multi_tensor_"), Text::Has("optim")),
    rule(Traits::OPTIMIZER, Text::Has("_single_tensor_"), Text::Has("optim")),
    rule(Traits::OPTIMIZER, Text::Is("_init_group"), Text::Has("optim")),
    rule(Traits::ZERO_GRAD, Text::Is("zero_grad"), Text::Any),
    // Both the call `loss.backward()` and the `backward` of a user's function.
    rule(Traits::BACKWARD, Text::Is("backward"), Text::Any),
    rule(Traits::BACKWARD, Text::Is("_make_grads"), Text::Any),
    rule(Traits::BACKWARD, Text::Is("_engine_run_backward"), Text::Any),
    rule(Traits::BACKWARD, Text::Has("torch::autograd::Engine::"), Text::Any),
    rule(Traits::BACKWARD, Text::Has("torch::autograd::Node::"), Text::Any),
    rule(Traits::BACKWARD, Text::Has("Backward0::apply"), Text::Any),
    rule(Traits::RECOMPUTE, Text::Is("unpack_hook"), Text::Ends("torch/utils/checkpoint.py")),
    rule(Traits::RECOMPUTE, Text::Is("recompute_fn"), Text::Ends("torch/utils/checkpoint.py")),
    rule(Traits::RECOMPUTE, Text::Is("backward"), Text::Ends("torch/utils/checkpoint.py")),
    rule(Traits::FORWARD, Text::Is("forward"), Text::Any),
    rule(Traits::FORWARD, Text::Is("_call_impl"), Text::Ends("torch/nn/modules/module.py")),
    rule(Traits::SETUP, Text::Is("_apply"), Text::Ends("torch/nn/modules/module.py")),
    rule(Traits::SETUP, Text::Is("convert"), Text::Ends("torch/nn/modules/module.py")),
    rule(Traits::SETUP, Text::Is("to"), Text::Ends("torch/nn/modules/module.py")),
    rule(Traits::SETUP, Text::Is("cuda"), Text::Ends("torch/nn/modules/module.py")),
    rule(Traits::SETUP, Text::Is("to_empty"), Text::Any),
    rule(Traits::SETUP, Text::Is("__init__"), Text::Any),
    // Some optimizers make their state when they are built.
    rule(Traits::OPTIMIZER_SETUP, Text::Is("__init__"), Text::Has("/optim/")),
    rule(Traits::OPTIMIZER_SETUP, Text::Is("__init__"), Text::Has("/optimizers/")),
    rule(Traits::SETUP, Text::Is("reset_parameters"), Text::Any),
    rule(Traits::SETUP, Text::Is("load_state_dict"), Text::Any),
    rule(Traits::SETUP, Text::Is("_load_from_state_dict"), Text::Any),
    rule(Traits::SETUP, Text::Is("from_pretrained"), Text::Any),
    rule(Traits::SETUP, Text::Is("load_model"), Text::Any),
    rule(Traits::SETUP, Text::Has("load_weights"), Text::Any),
    rule(Traits::SETUP, Text::Any, Text::Has("/safetensors/")),
    rule(Traits::LOADER, Text::Has("collate"), Text::Any),
    rule(Traits::LOADER, Text::Any, Text::Has("torch/utils/data/")),
    rule(Traits::LOADER, Text::Is("send_to_device"), Text::Any),
    rule(Traits::LOADER, Text::Is("move_data_to_device"), Text::Any),
    rule(Traits::KV_CACHE, Text::Has("kv_cache"), Text::Any),
    rule(Traits::KV_CACHE, Text::Has("KVCache"), Text::Any),
    rule(Traits::KV_CACHE, Text::Has("past_key"), Text::Any),
    rule(Traits::KV_CACHE, Text::Any, Text::Ends("transformers/cache_utils.py")),
    rule(Traits::KV_CACHE, Text::Any, Text::Has("kv_cache")),
    rule(Traits::WORKSPACE, Text::Has("Workspace"), Text::Any),
    rule(Traits::WORKSPACE, Text::Has("cublasLt"), Text::Any),
    rule(Traits::WORKSPACE, Text::Has("raw_cudnn_"), Text::Any),
    rule(Traits::BUCKETS, Text::Has("c10d::Reducer::"), Text::Any),
    rule(Traits::BUCKETS, Text::Is("_ddp_init_helper"), Text::Any),
    rule(Traits::BUCKETS, Text::Has("_and_grad_buffer"), Text::Any),
];

/// Returns the last part of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a function or file is a cache's, such as `update_cache`, `CacheEngine` or `cache.py`.
fn has_cache(name: &str) -> bool {
    contains(name, "cache") || contains(name, "Cache")
}

/// Returns the traits that a frame gives its stack.
fn of_frame(symbols: &Symbols, frame: Frame) -> Traits {
    let (function, file) = (symbols.text(frame.name), symbols.text(frame.filename));
    let file = if file.contains('\\') { file.replace('\\', "/").into() } else { file };
    let language = if query::folding::is_python(&file) { Traits::PYTHON } else { Traits::CPP };
    // Autocast keeps weights by `cached_cast`, and compiled code is called from a `codecache.py`.
    let is_cache = language == Traits::PYTHON
        && !file.contains("/torch/")
        && [&*function, name_of(&file)].iter().any(|name| has_cache(name));
    let language = if is_cache { language.and(Traits::CACHE) } else { language };
    // A scheduler has a `step` too, which only changes a number.
    let is_scheduler = file.contains("lr_scheduler");
    let fits = |rule: &&FrameRule| rule.function.fits(&function) && rule.file.fits(&file);
    let given = RULES.iter().filter(fits).filter(|rule| !(is_scheduler && rule.gives == Traits::OPTIMIZER));
    given.fold(language, |sum, rule| sum.and(rule.gives))
}

/// The traits of all stacks of a file.
#[derive(Clone, Debug, Default)]
pub struct StackTraits {
    frames: Vec<Traits>,
    stacks: Vec<Traits>,
}

impl Index<&Symbols> for StackTraits {
    fn extend(&mut self, symbols: &Symbols) {
        let Self { frames, stacks } = self;
        let new = frames.len() as u32..symbols.frame_count() as u32;
        frames.extend(new.map(|id| match symbols.is_lost_frame(FrameId(id)) {
            true => Traits::LOST,
            false => of_frame(symbols, symbols.frame(FrameId(id))),
        }));
        let new = stacks.len() as u32..symbols.stack_count() as u32;
        stacks.extend(new.map(|id| {
            let traits = |frame: &FrameId| frames.get(frame.0 as usize).copied().unwrap_or_default();
            let of_stack = symbols.stack(StackId(id)).iter().map(traits).fold(Traits::default(), Traits::and);
            if symbols.recorded(StackId(id)) == StackRecord::Lost { Traits::LOST } else { of_stack }
        }));
    }

    fn bytes(&self) -> usize {
        (self.frames.capacity() + self.stacks.capacity()) * size_of::<Traits>()
    }
}

impl StackTraits {
    /// Returns the traits of a stack: none for the empty stack.
    pub fn of(&self, stack: StackId) -> Traits {
        self.stacks.get(stack.0 as usize).copied().unwrap_or_default()
    }

    /// Returns all traits that some stack has.
    pub fn all(&self) -> Traits {
        self.stacks.iter().copied().fold(Traits::default(), Traits::and)
    }

    /// Returns the traits of a frame alone.
    pub fn of_frame(&self, frame: FrameId) -> Traits {
        self.frames.get(frame.0 as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_where_the_standard_library_finds_it() {
        let texts =
            ["", "c", "cache", "my_cache.py", "cach", "ccache", "cacache", "Ünïcödé/cache", "optim/é", "kv_kv_cache"];
        for text in texts {
            for part in ["c", "cache", "kv_cache", "optim", "é", "/cache"] {
                assert_eq!(contains(text, part), text.contains(part), "{part} in {text}");
            }
        }
    }

    #[test]
    fn of_a_lost_stack_nothing_is_told_but_that() {
        let mut symbols = Symbols::default();
        let known = trace::testing::stack(&mut symbols, &["forward@m.py:1"]);
        let lost = symbols.lose_stack();
        let frames = [symbols.stack(known)[0], symbols.lose_frame()];
        let partly = symbols.intern_stack(&frames);
        let traits = StackTraits::build(&symbols);
        assert_eq!((traits.of(StackId(0)), traits.of(lost)), (Traits::default(), Traits::LOST));
        assert_eq!(traits.of(partly), traits.of(known).and(Traits::LOST));
    }

    #[test]
    fn names_tell_what_a_stack_does() {
        let site = "/venv/lib/python3.11/site-packages/torch";
        let optimizer = format!("step@{site}/optim/adam.py:248");
        let scheduler = format!("step@{site}/optim/lr_scheduler.py:10");
        let module = format!("_call_impl@{site}/nn/modules/module.py:1790");
        let moved = format!("convert@{site}/nn/modules/module.py:1370");
        let again = format!("unpack_hook@{site}/utils/checkpoint.py:1100");
        let cases: [(&[&str], Traits); 13] = [
            (&[&optimizer, "main@t.py:3"], Traits::OPTIMIZER.and(Traits::PYTHON)),
            (&[&scheduler, "main@t.py:3"], Traits::PYTHON),
            (&["forward@m.py:1", &module, "main@t.py:3"], Traits::FORWARD.and(Traits::PYTHON)),
            (&[&moved, "main@t.py:3"], Traits::SETUP.and(Traits::PYTHON)),
            (&["torch::autograd::Engine::thread_main()@??"], Traits::BACKWARD.and(Traits::CPP)),
            (&["forward@m.py:1", &again], Traits::RECOMPUTE.and(Traits::FORWARD).and(Traits::PYTHON)),
            (&["at::cuda::getCUDABlasLtWorkspace()@??"], Traits::WORKSPACE.and(Traits::CPP)),
            (
                &["update@C:\\lib\\transformers\\cache_utils.py:1"],
                Traits::KV_CACHE.and(Traits::CACHE).and(Traits::PYTHON),
            ),
            (&["append@/home/me/.cache/hub/cache.py:1"], Traits::CACHE.and(Traits::PYTHON)),
            (&["load@/home/me/.cache/hub/model.py:1"], Traits::PYTHON),
            (&["at::autocast::cached_cast(at::Tensor const&)@??"], Traits::CPP),
            (&["__call__@/v/torch/_inductor/codecache.py:1"], Traits::PYTHON),
            (&[], Traits::default()),
        ];
        for (frames, want) in cases {
            let mut symbols = Symbols::default();
            let stack = trace::testing::stack(&mut symbols, frames);
            assert_eq!(StackTraits::build(&symbols).of(stack), want, "{frames:?}");
        }
    }
}
