//! What a recording lacks for a plan.

use serde::Serialize;

/// What a recording lacks for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// No allocation has a call stack.
    Stacks,
    /// No call stack has a line of Python.
    PythonLines,
    /// There is no backward pass.
    Backward,
    /// The trace ends before the first backward pass.
    FirstBackward,
    /// The trace ends before the last backward pass.
    LastBackward,
    /// Nothing repeats, so it is not known what belongs to the next step.
    Steps,
}

impl Missing {
    /// Returns what follows from it and what to do, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Stacks => {
                "The recording has no call stacks, so memory can't be assigned to lines. Record them: \
                 torch.cuda.memory._record_memory_history(stacks=\"python\"), or `vramscope watch`."
            }
            Self::PythonLines => {
                "The call stacks of the recording have no line of Python, so memory can't be assigned to modules. Record them: \
                 torch.cuda.memory._record_memory_history(stacks=\"all\")."
            }
            Self::Backward => {
                "The recording has no backward pass. Checkpointing and offloading are for what the backward pass needs: record a training step, \
                 with call stacks."
            }
            Self::FirstBackward => {
                "The recording ends before the first backward pass. What recomputing takes is not counted: run it again as planned. If \
                 the program doesn't train, torch.inference_mode() saves as much without a cost."
            }
            Self::LastBackward => {
                "The recording ends before the last backward pass. What recomputing takes there is not counted: run it again as planned."
            }
            Self::Steps => {
                "The recording has no two steps, so what lives on into the next step is not known. Record two steps or more."
            }
        }
    }
}
