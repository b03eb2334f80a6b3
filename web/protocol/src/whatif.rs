//! The messages between the page and the worker that answers what-if questions about one device.
//!
//! The first message to the worker are the device's requests, as [`ToWorker::Requests`] returned them; everything else is
//! a [`ToWhatIf`], in an `ArrayBuffer` too. The worker answers one thing at a time, the quickest first.
//!
//! [`ToWorker::Requests`]: crate::message::ToWorker::Requests

use query::diagnosis::Verdict;
use query::finding::Remedy;
use query::whatif::{Bounds, Outcome, SelfCheck};
use query::whatif::{Goal, Tuning};
use query::{Axis, Packed, Window};
use serde::{Deserialize, Serialize};

/// The run under the settings of the recording.
pub const RECORDED: u32 = 0;

/// The conditions of a run, as a person writes them. Empty texts mean those of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunConditions {
    /// The allocator's settings, as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The release of PyTorch.
    pub torch: String,
    /// The memory of the device: the name of a card, or a size such as `80GiB`.
    pub capacity: String,
    /// The share of it that the process may have.
    pub fraction: String,
    /// The memory of it that others hold: a size.
    pub others: String,
}

/// A message from the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWhatIf {
    /// Runs the requests. Answered by [`FromWhatIf::Ran`], and later by [`FromWhatIf::Smallest`].
    Run {
        /// Chosen by the page; not [`RECORDED`].
        id: u32,
        /// Its conditions.
        conditions: RunConditions,
    },
    /// Forgets a run.
    Forget(u32),
    /// Asks for the curves of all runs. Answered by [`FromWhatIf::Curves`].
    Curves(CurvesAsked),
    /// Searches for better settings.
    Tune {
        /// The device that settings are searched for. The settings in it are ignored.
        conditions: RunConditions,
        /// What it searches for.
        goal: Goal,
    },
    /// Ends the search. What it has found so far is answered.
    Cancel,
    /// Checks what a verdict advises. Answered by [`FromWhatIf::Proven`].
    Prove(Box<Verdict>),
    /// Asks for every event of a run. Answered by [`FromWhatIf::Traced`].
    Trace(u32),
}

/// A part of an axis, in columns of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvesAsked {
    /// The axis.
    pub axis: Axis,
    /// Its part.
    pub window: Window,
    /// The number of columns.
    pub columns: u32,
}

/// The reserved memory of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCurve {
    /// The run.
    pub id: u32,
    /// The least bytes of each column, up to where the run stopped.
    pub least: Packed<u64>,
    /// The most bytes of each column.
    pub most: Packed<u64>,
}

/// A message to the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWhatIf {
    /// The requests are read and were run under the settings of the recording.
    Opened(Box<Opened>),
    /// The outcome of a run, or why it can't be run: a sentence.
    Ran(u32, Result<Outcome, String>),
    /// The least memory on which no request fails, in bytes, or why it isn't known.
    Smallest(u32, Result<u64, String>),
    /// The curves of all runs.
    Curves(CurvesAsked, Vec<RunCurve>),
    /// The search goes on.
    Tuning {
        /// The settings that were tried.
        tried: u32,
        /// Those that are known to be tried next.
        left: u32,
    },
    /// The search has ended. The error is a sentence; it is empty if the search was ended before anything was run.
    Tuned(Result<Box<Tuned>, String>),
    /// What is left of a verdict's advice after it was checked: the position of the verdict, and the remedies.
    Proven(u32, Vec<Remedy>),
    /// A run's events. The message comes in an array, whose second element is an `ArrayBuffer` with them, for
    /// [`ToWorker::Record`].
    ///
    /// [`ToWorker::Record`]: crate::message::ToWorker::Record
    Traced(u32),
    /// There is nothing to run, or the worker failed; nothing follows.
    Failed(String),
}

/// The facts about the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// How far they come out as recorded.
    pub check: SelfCheck,
    /// What the recording had, with the release that fits it best. Its capacity is empty.
    pub recorded: RunConditions,
    /// The memory that the process could have, in bytes, if the trace shows it.
    pub capacity: Option<u64>,
    /// The releases that can be followed.
    pub releases: Vec<String>,
    /// The events that the requests were read from.
    pub events: u32,
    /// The least memory that any settings need.
    pub bounds: Bounds,
    /// The bytes that were reserved before the first event.
    pub at_start: u64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The outcomes and the advice.
    pub tuning: Tuning,
    /// Whether nothing was left to try.
    pub is_complete: bool,
}
