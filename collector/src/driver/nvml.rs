//! NVML: what a device holds in all, and who holds it. The allocator knows its own memory; this is the rest.

use nvml_wrapper::Nvml;
use nvml_wrapper::device::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError as Cause;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use serde::Serialize;

/// Why NVML did not tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NvmlError {
    /// No library.
    #[error("there is no NVML on this machine (libnvidia-ml.so.1 was not found); it comes with the NVIDIA driver")]
    NoLibrary,
    /// It does not know the device.
    #[error("NVML knows no device {uuid}")]
    NoDevice {
        /// The device's UUID.
        uuid: String,
    },
    /// It failed otherwise.
    #[error("NVML failed to tell {what}: {message}")]
    Failed {
        /// What was asked.
        what: &'static str,
        /// What it said.
        message: String,
    },
}

/// A process that uses the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessMemory {
    /// Its number, in the namespace of the driver: inside a container it may be another than the process's own.
    pub pid: u32,
    /// Bytes that it holds, its context included; `None` where the driver may not tell.
    #[serde(rename = "used_bytes")]
    pub used: Option<u64>,
}

/// What a device holds, over all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes in all.
    pub total: u64,
    /// Bytes that nobody holds.
    pub free: u64,
    /// Bytes that processes hold.
    pub used: u64,
    /// Bytes that the driver and its firmware keep.
    pub reserved: u64,
    /// Who holds memory, by number.
    pub processes: Vec<ProcessMemory>,
}

/// The library, initialised.
#[derive(Debug)]
pub struct NvmlLibrary(Nvml);

impl NvmlLibrary {
    /// Loads it.
    ///
    /// # Errors
    /// Without a driver.
    pub fn load() -> Result<Self, NvmlError> {
        match Nvml::init() {
            Ok(nvml) => Ok(Self(nvml)),
            Err(Cause::LibloadingError(_)) => Err(NvmlError::NoLibrary),
            Err(cause) => Err(failed("its version", &cause)),
        }
    }

    /// What the device with that UUID holds; as [`crate::driver::cuda::Device::uuid`] gives it, since NVML counts
    /// devices in another order than CUDA.
    ///
    /// # Errors
    /// For an unknown device, and where the driver does not tell.
    pub fn memory(&self, uuid: &str) -> Result<DeviceMemory, NvmlError> {
        let device = self.device(uuid)?;
        let info = device.memory_info().map_err(|cause| failed("the device's memory", &cause))?;
        let compute = device.running_compute_processes().map_err(|cause| failed("the device's processes", &cause))?;
        // A process that draws and computes is in both lists. Cards for computing alone refuse the second.
        let graphics = device.running_graphics_processes().unwrap_or_default();
        let mut processes: Vec<_> = compute.iter().chain(&graphics).map(process).collect();
        processes.sort_by_key(|process| (process.pid, std::cmp::Reverse(process.used)));
        processes.dedup_by_key(|process| process.pid);
        Ok(DeviceMemory { total: info.total, free: info.free, used: info.used, reserved: info.reserved, processes })
    }

    fn device(&self, uuid: &str) -> Result<Device<'_>, NvmlError> {
        // A slice of a device (MIG) has another prefix.
        for kind in ["GPU", "MIG"] {
            match self.0.device_by_uuid(format!("{kind}-{uuid}")) {
                Err(Cause::NotFound | Cause::InvalidArg) => {}
                outcome => return outcome.map_err(|cause| failed("a device by its UUID", &cause)),
            }
        }
        Err(NvmlError::NoDevice { uuid: uuid.to_owned() })
    }
}

fn process(info: &ProcessInfo) -> ProcessMemory {
    let used = match info.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    };
    ProcessMemory { pid: info.pid, used }
}

fn failed(what: &'static str, cause: &Cause) -> NvmlError {
    NvmlError::Failed { what, message: cause.to_string() }
}
