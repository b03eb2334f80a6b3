//! What a device holds beside the allocator's memory: the rest that `torch.cuda.OutOfMemoryError` names and
//! `memory_stats()` can't show.

use std::fmt;

use serde::Serialize;
use shared::allocator::{Driver, DriverError};
use shared::units::Bytes;

use super::cuda::CudaDriver;
use super::nvml::{DeviceMemory, NvmlLibrary, ProcessMemory};

/// Memory of a device that an allocator did not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outside {
    /// Bytes that are neither free nor the allocator's: contexts, libraries, other processes.
    pub bytes: u64,
    /// Who holds memory of the device.
    pub holders: Holders,
}

/// Who holds a device's memory, as NVML has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Holders {
    /// NVML told.
    Known {
        /// Bytes that the driver and its firmware keep.
        driver_bytes: u64,
        /// All processes, this one and what its allocator took included.
        processes: Vec<ProcessMemory>,
        /// This process, as it numbers itself: in a container NVML may have another number for it.
        this_pid: u32,
    },
    /// It didn't.
    Unknown {
        /// Why.
        reason: String,
    },
}

impl Outside {
    /// Asks the device, of which the allocator has `reserved` bytes.
    ///
    /// # Errors
    /// Where the driver doesn't tell what is free. NVML's errors are part of the answer.
    pub fn ask(driver: &mut CudaDriver, reserved: u64) -> Result<Self, DriverError> {
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
        write!(f, "{} of the device outside of the allocator: ", Bytes(self.bytes))?;
        let (driver_bytes, processes, this_pid) = match &self.holders {
            Holders::Known { driver_bytes, processes, this_pid } => (driver_bytes, processes, this_pid),
            Holders::Unknown { reason } => return write!(f, "who holds it is not known, as {reason}"),
        };
        write!(f, "the driver keeps {}", Bytes(*driver_bytes))?;
        for ProcessMemory { pid, used } in processes {
            let this = if pid == this_pid { " (this one, allocator included)" } else { "" };
            match used {
                Some(used) => write!(f, ", process {pid}{this} has {}", Bytes(*used))?,
                None => write!(f, ", process {pid}{this} has what the driver doesn't tell")?,
            }
        }
        Ok(())
    }
}
