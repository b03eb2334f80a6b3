//! Device memory outside the allocator, which `torch.cuda.OutOfMemoryError` mentions and `memory_stats()` does not show.

use std::fmt;

use serde::Serialize;
use shared::allocator::{Driver, DriverError};
use shared::units::Bytes;

use super::cuda::CudaDriver;
use super::nvml::{DeviceMemory, NvmlLibrary, ProcessMemory};

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
        let holders = match NvmlLibrary::load().and_then(|library| library.memory(&uuid)) {
            Ok(DeviceMemory { reserved: driver_bytes, processes, .. }) => {
                Holders::Known { driver_bytes, processes, this_pid: std::process::id() }
            }
            Err(error) => Holders::Unknown { reason: error.to_string() },
        };
        Ok(Self { bytes, holders })
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
