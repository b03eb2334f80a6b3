//! What a run is given beside its workload: a watcher, a pacer, a stop signal, a clock and an output.

use super::clock::JobClock;
use super::memory_watch::MemoryWatch;
use super::pacer::Pacer;
use super::recording_output::RecordingOutput;
use super::stop_signal::StopSignal;

/// Called with the name of each span as it begins, and the number of events so far.
pub type Watch = Box<dyn FnMut(&str, usize)>;

/// How a run is controlled and observed from outside. By default it runs to its end as fast as possible, on its own
/// time, and nobody watches.
#[derive(Default)]
pub struct RunControl {
    /// Follows the progress.
    pub watch: Option<Watch>,
    /// Says when much of the cached memory becomes unusable.
    pub memory_watch: Option<MemoryWatch>,
    /// Limits the rate of events.
    pub pacer: Option<Pacer>,
    /// Ends the run early.
    pub stop: StopSignal,
    /// Gives events their times.
    pub clock: JobClock,
    /// Records the run while it happens.
    pub recording: Option<RecordingOutput>,
}
