//! Errors of a device, each as one line.

use allocator::DriverError;

/// Why a device could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// The driver library is missing.
    #[error("no NVIDIA driver on this machine (libcuda was not found); install one, or use the simulated device")]
    NoLibrary,
    /// The driver library is too old for a required function.
    #[error("the NVIDIA driver ({version}) has no {symbol}; install a newer driver")]
    MissingSymbol {
        /// The function.
        symbol: &'static str,
        /// The CUDA version that the driver supports: `CUDA 12.4`.
        version: String,
    },
    /// No such device.
    #[error("no CUDA device {ordinal}: {}", devices(*count))]
    NoDevice {
        /// The requested number.
        ordinal: u32,
        /// The number of devices.
        count: u32,
    },
    /// The device cannot prefetch unified memory.
    #[error("CUDA device {ordinal} cannot prefetch unified memory (no concurrent managed access); use plain memory")]
    NoManagedMemory {
        /// The device.
        ordinal: u32,
    },
    /// A call to the driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Returns the number of devices in words.
fn devices(count: u32) -> String {
    match count {
        0 => "this machine has no device that CUDA may use".to_owned(),
        1 => "this machine has only device 0".to_owned(),
        n => format!("this machine has {n} devices, numbered from 0"),
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
            (CudaError::NoDevice { ordinal: 3, count: 0 }, "no CUDA device 3: this machine has no device"),
            (CudaError::NoDevice { ordinal: 3, count: 1 }, "only device 0"),
            (CudaError::NoDevice { ordinal: 3, count: 2 }, "has 2 devices, numbered from 0"),
            (CudaError::NoManagedMemory { ordinal: 1 }, "CUDA device 1 cannot prefetch"),
            (CudaError::Driver(DriverError::OutOfMemory), "out of memory"),
        ];
        for (error, part) in cases {
            let line = error.to_string();
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
