//! The steps of a job.

use serde::{Deserialize, Serialize};

use super::{Axis, Question, Window};

/// Asks for the steps of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepsQuery {
    /// The x axis.
    pub axis: Axis,
}

impl Question for StepsQuery {
    type Answer = StepList;
}

/// One step of a training job, or one request of a server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSpan {
    /// Its number: the annotation's, or counted from 1.
    pub number: u64,
    /// The position at which it begins.
    pub from: u32,
    /// The position at which it ends.
    pub to: u32,
    /// The coordinates of both.
    pub span: Window,
    /// Whether its beginning and its end lie in the trace.
    pub is_whole: bool,
}

/// How steps were found that nothing but repeated allocations shows: [`StepList::source`].
pub const FROM_PATTERN: &str = "from the allocation pattern";

/// The steps of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepList {
    /// How they were found: "from optimizer.step".
    pub source: String,
    /// Whether they are annotations of the trace.
    pub is_annotated: bool,
    /// The steps in order, up to [`STEPS`](trace::limits::STEPS); none if nothing in the trace repeats.
    pub steps: Vec<StepSpan>,
    /// The number of all steps.
    pub count: u32,
}
