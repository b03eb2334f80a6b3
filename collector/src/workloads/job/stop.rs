//! Why a job ends before its end.

use shared::allocator::{AllocError, DriverError, MisuseError, OutOfMemory};
use shared::limits;

/// What a program can't go on after, unless it catches it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Stop {
    /// `torch.cuda.OutOfMemoryError`.
    #[error("{0}")]
    OutOfMemory(Box<OutOfMemory>),
    /// More was asked for than any device has.
    #[error(transparent)]
    Refused(AllocError),
    /// The device failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The workload asked for what can't be meant.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
    /// The trace would be longer than one may be.
    #[error(
        "the run has made {} events, and no trace may be longer. Run it with fewer --steps",
        shared::units::Count(limits::RUN_EVENTS as u64)
    )]
    TooLong,
    /// Whoever runs it has seen enough.
    #[error("the run was interrupted")]
    Interrupted,
}

impl From<AllocError> for Stop {
    fn from(error: AllocError) -> Self {
        match error {
            AllocError::OutOfMemory(out_of_memory) => Self::OutOfMemory(out_of_memory),
            AllocError::Driver(error) => Self::Driver(error),
            error @ (AllocError::Rejected(_) | AllocError::TooLarge) => Self::Refused(error),
        }
    }
}
