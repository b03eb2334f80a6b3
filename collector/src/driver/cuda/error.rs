//! What goes wrong with a device, as one line for a person.

use shared::allocator::DriverError;

/// Why a device could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// No driver library.
    #[error(
        "there is no NVIDIA driver on this machine (no libcuda was found); install it, or use the simulated device"
    )]
    NoLibrary,
    /// The driver library is older than a function that is needed.
    #[error("the NVIDIA driver here ({version}) has no {symbol}; a newer driver is needed")]
    MissingSymbol {
        /// The function.
        symbol: &'static str,
        /// The CUDA version that the driver names, as `CUDA 12.4`.
        version: String,
    },
    /// No such device.
    #[error("there is no CUDA device {ordinal}: {}", devices(*count))]
    NoDevice {
        /// The number that was asked for.
        ordinal: u32,
        /// How many devices there are.
        count: u32,
    },
    /// The device can't be told where unified memory is to be.
    #[error("CUDA device {ordinal} can't prefetch unified memory (no concurrent managed access); use plain memory")]
    NoManagedMemory {
        /// The device.
        ordinal: u32,
    },
    /// A call to the driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// How many devices there are, in words.
fn devices(count: u32) -> String {
    match count {
        0 => "this machine has none that CUDA may use".to_owned(),
        1 => "this machine has one, device 0".to_owned(),
        n => format!("this machine has {n}, numbered from 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_one_line() {
        let cases = [
            (CudaError::NoLibrary, "no NVIDIA driver"),
            (
                CudaError::MissingSymbol { symbol: "cuMemCreate", version: "CUDA 10.1".into() },
                "(CUDA 10.1) has no cuMem",
            ),
            (CudaError::NoDevice { ordinal: 3, count: 0 }, "no CUDA device 3: this machine has none"),
            (CudaError::NoDevice { ordinal: 3, count: 1 }, "one, device 0"),
            (CudaError::NoDevice { ordinal: 3, count: 2 }, "has 2, numbered from 0"),
            (CudaError::NoManagedMemory { ordinal: 1 }, "CUDA device 1 can't prefetch"),
            (CudaError::Driver(DriverError::OutOfMemory), "out of memory"),
        ];
        for (error, part) in cases {
            let line = error.to_string();
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
