//! NVML: a device's memory over all processes. The allocator only knows its own.

use nvml_wrapper::Nvml;
use nvml_wrapper::device::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError as Cause;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use serde::Serialize;

/// Why NVML did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NvmlError {
    /// The library is missing.
    #[error("NVML (libnvidia-ml.so.1), a part of the NVIDIA driver, was not found")]
    NoLibrary,
    /// It does not know the device.
    #[error("NVML does not know device {uuid}")]
    NoDevice {
        /// The device's UUID.
        uuid: String,
    },
    /// It failed in another way.
    #[error("NVML failed to report {what}: {message}")]
    Failed {
        /// What was requested.
        what: &'static str,
        /// NVML's error.
        message: String,
    },
}

/// A process that uses the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessMemory {
    /// Its process number in the driver's namespace, which in a container may differ from the process's own.
    pub pid: u32,
    /// The bytes that it uses, including its context; `None` if the driver does not report them.
    #[serde(rename = "used_bytes")]
    pub used: Option<u64>,
}

/// A device's memory over all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// All bytes.
    pub total: u64,
    /// Free bytes.
    pub free: u64,
    /// Bytes that processes use.
    pub used: u64,
    /// Bytes that the driver and its firmware reserve.
    pub reserved: u64,
    /// The processes that use memory, by number.
    pub processes: Vec<ProcessMemory>,
}

/// The library, initialised.
#[derive(Debug)]
pub struct NvmlLibrary(Nvml);

impl NvmlLibrary {
    /// Loads the library.
    ///
    /// # Errors
    /// If there is no driver.
    pub fn load() -> Result<Self, NvmlError> {
        match Nvml::init() {
            Ok(nvml) => Ok(Self(nvml)),
            Err(Cause::LibloadingError(_)) => Err(NvmlError::NoLibrary),
            Err(cause) => Err(failed("its version", &cause)),
        }
    }

    /// Returns the memory of the device with this UUID, from [`recorder::cuda::Device::uuid`]: NVML numbers devices
    /// in another order than CUDA.
    ///
    /// # Errors
    /// For an unknown device, and if the driver does not report it.
    pub fn memory(&self, uuid: &str) -> Result<DeviceMemory, NvmlError> {
        let device = self.device(uuid)?;
        let info = device.memory_info().map_err(|cause| failed("the device's memory", &cause))?;
        let compute = device.running_compute_processes().map_err(|cause| failed("the device's processes", &cause))?;
        // A process that uses graphics and compute is in both lists. Compute-only cards refuse the second list.
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
