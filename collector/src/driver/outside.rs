//! Device memory outside the allocator, which `torch.cuda.OutOfMemoryError` mentions and `memory_stats()` does not show.

use std::fmt;
use std::sync::OnceLock;

use allocator::{Driver, DriverError};
use serde::Serialize;
use trace::units::Bytes;

use super::nvml::{DeviceMemory, NvmlError, NvmlLibrary, ProcessMemory};
use recorder::cuda::CudaDriver;

/// Device memory that an allocator did not allocate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outside {
    /// Bytes that are neither free nor the allocator's: contexts, libraries, other processes.
    pub bytes: u64,
    /// The users of the device's memory.
    pub holders: Holders,
}

/// The users of a device's memory, according to NVML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Holders {
    /// NVML reports them.
    Known {
        /// Bytes that the driver and its firmware reserve.
        driver_bytes: u64,
        /// All processes, including this one with its allocator's memory.
        processes: Vec<ProcessMemory>,
        /// This process's own number; in a container, NVML may use another one.
        this_pid: u32,
    },
    /// NVML does not report them.
    Unknown {
        /// The reason.
        reason: String,
    },
}

impl Outside {
    /// Queries the device, of which the allocator has `reserved` bytes.
    ///
    /// # Errors
    /// If the driver does not report free memory. An error of NVML is part of the result.
    pub fn query(driver: &mut CudaDriver, reserved: u64) -> Result<Self, DriverError> {
        let info = driver.memory_info()?;
        let bytes = info.total.saturating_sub(info.free).saturating_sub(reserved);
        let uuid = driver.device().uuid()?;
        let memory = nvml().as_ref().map_err(NvmlError::clone).and_then(|library| library.memory(&uuid));
        let holders = match memory {
            Ok(DeviceMemory { reserved: driver_bytes, processes, .. }) => {
                Holders::Known { driver_bytes, processes, this_pid: std::process::id() }
            }
            Err(error) => Holders::Unknown { reason: error.to_string() },
        };
        Ok(Self { bytes, holders })
    }
}

/// Returns NVML, which is loaded once: that takes some milliseconds.
fn nvml() -> &'static Result<NvmlLibrary, NvmlError> {
    static NVML: OnceLock<Result<NvmlLibrary, NvmlError>> = OnceLock::new();
    NVML.get_or_init(NvmlLibrary::load)
}

impl Outside {
    /// Returns the bytes that other processes use; `None` if NVML does not tell them all apart from this one.
    pub fn others(&self) -> Option<u64> {
        let Holders::Known { processes, this_pid, .. } = &self.holders else { return None };
        // In a container the numbers may be those of the host.
        if !processes.iter().any(|process| process.pid == *this_pid) {
            return None;
        }
        let others = processes.iter().filter(|process| process.pid != *this_pid);
        others.map(|process| process.used).try_fold(0_u64, |sum, used| Some(sum.saturating_add(used?)))
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the device's memory is outside the allocator: ", Bytes(self.bytes))?;
        let (driver_bytes, processes, this_pid) = match &self.holders {
            Holders::Known { driver_bytes, processes, this_pid } => (driver_bytes, processes, this_pid),
            Holders::Unknown { reason } => return write!(f, "its users are unknown ({reason})"),
        };
        write!(f, "the driver reserves {}", Bytes(*driver_bytes))?;
        for ProcessMemory { pid, used } in processes {
            let this = if pid == this_pid { " (this one, with its allocator)" } else { "" };
            match used {
                Some(used) => write!(f, ", process {pid}{this} uses {}", Bytes(*used))?,
                None => write!(f, ", process {pid}{this} uses an unknown amount")?,
            }
        }
        Ok(())
    }
}
