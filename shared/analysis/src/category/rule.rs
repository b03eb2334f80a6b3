//! The table of rules.

use super::Category;

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident, $category:ident, $name:literal, $reason:literal;)*) => {
        /// A rule that decides a category. The order is that of the documentation; `rule_of` decides which one fits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Rule { $($(#[$doc])* #[doc = $reason] $rule,)* }

        impl Rule {
            /// All rules, by number.
            pub const ALL: [Self; [$(Self::$rule),*].len()] = [$(Self::$rule),*];

            /// Returns the category that it decides on.
            pub const fn category(self) -> Category {
                match self { $(Self::$rule => Category::$category,)* }
            }

            /// Returns its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$rule => $name,)* }
            }

            /// Returns why the category follows: a sentence for the user.
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$rule => $reason,)* }
            }
        }
    };
}

rules! {
    CacheByName, KvCache, "cache by name",
        "The stack has a function or file of a cache of keys and values.";
    WorkspaceByName, Workspace, "workspace by name",
        "The stack has a function that makes a library's workspace.";
    WorkspaceBySize, Workspace, "workspace by size",
        "It has the size of cuBLAS's workspace, was made in a pass of the model, and is never freed.";
    GradientBuckets, Gradients, "gradient buckets",
        "The stack makes the buckets in which gradients are exchanged between processes.";
    OptimizerKept, OptimizerState, "optimizer, kept",
        "It was made in optimizer.step and outlives the call.";
    OptimizerReplaced, Parameters, "optimizer, in place of a parameter",
        "It was made in optimizer.step, and a parameter of its size was freed right after it.";
    OptimizerScratch, Temporary, "optimizer, freed",
        "It was made in optimizer.step and freed before the call ended.";
    OptimizerBuilt, OptimizerState, "optimizer, built",
        "It was made when an optimizer was built, and the first pass finds it.";
    Recomputed, Activations, "recomputed",
        "It was computed again during the backward pass (activation checkpointing).";
    BackwardKept, Gradients, "backward, kept",
        "It was made in the backward pass and outlives it.";
    BackwardScratch, Temporary, "backward, freed",
        "It was made in the backward pass and freed before its end.";
    BackwardOpen, Temporary, "backward, still live",
        "It was made in the backward pass in which the trace ends, and no gradient has its size.";
    ModuleKept, Parameters, "module, kept",
        "It was made when a module was built, loaded or moved to the device, and the first pass finds it.";
    SetupScratch, Temporary, "module, freed",
        "It was made when a module was built, loaded or moved to the device, and freed before the first pass.";
    Loaded, Inputs, "loader",
        "The stack has a function that loads or moves a batch.";
    Saved, Activations, "forward, kept",
        "It was made in the forward pass or from its result, and the backward pass finds it.";
    Interrupted, Activations, "forward, until a failure",
        "It was made in the forward pass or from its result, and was live when a request failed.";
    ForwardScratch, Temporary, "forward, freed",
        "It was made in the forward pass or from its result, and freed before the backward pass.";
    Inferred, Activations, "inference",
        "It was made in the forward pass or from its result; the trace has no backward pass.";
    ForwardKept, KvCache, "inference, kept",
        "It was made in the forward pass and outlives its step or the start of the next pass, as little else does, in a trace without a backward pass.";
    ServedCache, KvCache, "inference, cache by name",
        "The stack has a function or file of a cache, which keeps it, in a trace without a backward pass.";
    OwnParameter, Parameters, "own code, kept, size of a gradient",
        "The program made it before the first step, it outlives that step, and a gradient has its size.";
    OwnModel, Parameters, "own code, never freed",
        "The program made it before the first step and never frees it, in a trace without a backward pass and without modules.";
    OwnInput, Inputs, "own code, kept",
        "The program made it before the first step, it outlives that step, and no gradient has its size.";
    Input, Inputs, "before forward, kept",
        "The program made it in the step before the forward pass, which finds it.";
    InputScratch, Temporary, "before forward, freed",
        "The program made it in the step before the forward pass, and freed it before.";
    EarlyParameter, Parameters, "older, size of a gradient",
        "It is older than the recording, outlives its first step, and a gradient has its size.";
    EarlyState, OptimizerState, "older, size of a gradient, again",
        "It is older than the recording and outlives its first step, and more of this size do than there are gradients of it.";
    Unknown, Unknown, "no rule",
        "No stack was recorded, its names were lost, or no rule applies to it.";
}
