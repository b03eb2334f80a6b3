//! Why a job ends early.

use allocator::{AllocError, DriverError, MisuseError, OutOfMemory};
use trace::limits;

/// An error that ends a job, unless the job catches it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JobError {
    /// `torch.cuda.OutOfMemoryError`.
    #[error("{0}")]
    OutOfMemory(Box<OutOfMemory>),
    /// A request was larger than any device, or rejected before the device was asked.
    #[error(transparent)]
    Refused(AllocError),
    /// The device failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The workload called the allocator in a way that makes no sense.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
    /// The trace reached the largest permitted number of events.
    #[error(
        "the run has made {} events, and no trace may be longer. Run it with fewer --steps",
        trace::units::Count(limits::RUN_EVENTS as u64)
    )]
    TooLong,
    /// The stop signal was set.
    #[error("the run was interrupted")]
    Interrupted,
}

impl From<AllocError> for JobError {
    fn from(error: AllocError) -> Self {
        match error {
            AllocError::OutOfMemory(out_of_memory) => Self::OutOfMemory(out_of_memory),
            AllocError::Driver(error) => Self::Driver(error),
            error @ (AllocError::Rejected(_) | AllocError::TooLarge) => Self::Refused(error),
        }
    }
}
