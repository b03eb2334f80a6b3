//! One CUDA device with its primary context: what allocators, streams and copies share.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cudarc::driver::sys::{
    CUmemAllocationGranularity_flags, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUuuid,
};
use shared::allocator::{DriverError, MemoryInfo};

use super::CudaError;
use super::spans::Spans;
use super::symbols::{self, Api, Failure};

/// What is known of a device without a context on it, which would take hundreds of megabytes of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number, as CUDA counts.
    pub ordinal: u32,
    /// Its model, as `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Its memory in bytes.
    pub total_memory: u64,
}

/// A device that was opened. Usable from any thread; its context is current only while a call runs, so the process's
/// own choice of device stays as it is.
pub struct Device {
    pub(super) api: &'static Api,
    ordinal: u32,
    pub(super) handle: c_int,
    /// The primary context: the one that PyTorch and the CUDA runtime use.
    context: usize,
    total_memory: u64,
    /// What may be read and written.
    spans: RwLock<Spans>,
    /// The streams that may be used, besides the default stream 0, with the numbers that PyTorch would give them.
    streams: RwLock<BTreeMap<i64, u64>>,
    /// How many streams were created here.
    pub(super) created_streams: AtomicU64,
}

impl Device {
    /// Opens the device of that number, as CUDA counts them (after `CUDA_VISIBLE_DEVICES`), and retains its primary
    /// context.
    ///
    /// # Errors
    /// Without a driver, with one that lacks a function, without that device, and where the driver itself refuses.
    pub fn open(ordinal: u32) -> Result<Arc<Self>, CudaError> {
        let (api, count) = start()?;
        let index = c_int::try_from(ordinal).ok().filter(|_| ordinal < count);
        let index = index.ok_or(CudaError::NoDevice { ordinal, count })?;
        let (mut handle, mut bytes, mut context) = (0, 0, 0);
        // SAFETY: the pointers are to variables that outlive the calls; the device is one that the driver counted.
        unsafe {
            api.cuDeviceGet(&mut handle, index)?;
            api.cuDeviceTotalMem(&mut bytes, handle)?;
            api.cuDevicePrimaryCtxRetain(&mut context, handle)?;
        }
        Ok(Arc::new(Self {
            api,
            ordinal,
            handle,
            context,
            total_memory: bytes as u64,
            spans: RwLock::default(),
            streams: RwLock::default(),
            created_streams: AtomicU64::new(0),
        }))
    }

    /// All devices that CUDA may use, none of which is opened.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn list() -> Result<Vec<DeviceInfo>, CudaError> {
        let (api, count) = start()?;
        let mut devices = Vec::new();
        for (ordinal, index) in (0..count).zip(0..) {
            let (mut handle, mut bytes) = (0, 0);
            // SAFETY: the pointers are to variables that outlive the calls; the device is one that the driver counted.
            unsafe {
                api.cuDeviceGet(&mut handle, index)?;
                api.cuDeviceTotalMem(&mut bytes, handle)?;
            }
            devices.push(DeviceInfo { ordinal, name: name_of(api, handle)?, total_memory: bytes as u64 });
        }
        Ok(devices)
    }

    /// Its number, as CUDA counts.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Its memory in bytes (`totalGlobalMem`), the driver's own share included.
    pub fn total_memory(&self) -> u64 {
        self.total_memory
    }

    /// Its model, as `NVIDIA H100 80GB HBM3`.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn name(&self) -> Result<String, DriverError> {
        Ok(name_of(self.api, self.handle)?)
    }

    /// Its UUID without a prefix: `3d2f5a10-....`. The one identity that the driver and NVML share.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn uuid(&self) -> Result<String, DriverError> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: the pointer is to a variable that outlives the call.
        unsafe { self.api.cuDeviceGetUuid(&mut uuid, self.handle) }?;
        let mut text = String::with_capacity(36);
        for (i, byte) in uuid.bytes.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        Ok(text)
    }

    /// The newest CUDA version that the driver serves, as `CUDA 12.4`.
    pub fn driver_version(&self) -> String {
        symbols::version_text(symbols::driver_version())
    }

    /// The smallest page of virtual memory in bytes: 2 MiB on every device so far.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn granularity(&self) -> Result<u64, DriverError> {
        let mut bytes = 0;
        let minimum = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the pointers are to variables that outlive the call.
        unsafe { self.api.cuMemGetAllocationGranularity(&mut bytes, &self.properties(), minimum) }?;
        Ok(bytes as u64)
    }

    /// Free and whole memory now, over all processes.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn memory_info(&self) -> Result<MemoryInfo, DriverError> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to variables that outlive the call.
        unsafe { self.api.cuMemGetInfo(&mut free, &mut total) }?;
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    /// Waits for all work of the device's context.
    ///
    /// # Errors
    /// Where work failed.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let _current = self.enter()?;
        // SAFETY: the context is current.
        Ok(unsafe { self.api.cuCtxSynchronize() }?)
    }

    /// A property of the device, by its number in `CUdevice_attribute`.
    pub(super) fn attribute(&self, attribute: u32) -> Result<c_int, Failure> {
        let mut value = 0;
        // SAFETY: the pointer is to a variable that outlives the call; unknown numbers are refused.
        unsafe { self.api.cuDeviceGetAttribute(&mut value, attribute, self.handle) }?;
        Ok(value)
    }

    /// Where the device's memory is, in the driver's words.
    pub(super) fn location(&self) -> CUmemLocation {
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: self.handle }
    }

    /// What pages of virtual memory are: memory of this device, not shared with other processes.
    pub(super) fn properties(&self) -> CUmemAllocationProp {
        CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: self.location(),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    /// Makes the context current on this thread until the value is dropped.
    pub(super) fn enter(&self) -> Result<Current, Failure> {
        let mut current = 0;
        // SAFETY: the pointer is to a variable that outlives the call.
        unsafe { self.api.cuCtxGetCurrent(&mut current) }?;
        let is_pushed = current != self.context;
        if is_pushed {
            // SAFETY: the context is retained as long as this value lives.
            unsafe { self.api.cuCtxPushCurrent(self.context) }?;
        }
        Ok(Current { api: self.api, is_pushed, thread: PhantomData })
    }

    // A thread that panicked with one of these locks left the sets whole: every change is a single insertion or
    // removal.

    pub(super) fn spans(&self) -> RwLockReadGuard<'_, Spans> {
        self.spans.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spans_mut(&self) -> RwLockWriteGuard<'_, Spans> {
        self.spans.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn streams(&self) -> RwLockReadGuard<'_, BTreeMap<i64, u64>> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn streams_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<i64, u64>> {
        self.streams.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The driver's functions after its start, and the number of devices.
fn start() -> Result<(&'static Api, u32), CudaError> {
    let api = Api::get()?;
    let mut count = 0;
    // SAFETY: the only flags that the function knows are 0.
    unsafe { api.cuInit(0) }?;
    // SAFETY: the pointer is to a variable that outlives the call.
    unsafe { api.cuDeviceGetCount(&mut count) }?;
    Ok((api, u32::try_from(count).unwrap_or(0)))
}

fn name_of(api: &Api, handle: c_int) -> Result<String, Failure> {
    let mut name = [0_u8; 256];
    // SAFETY: the function writes at most as many bytes as it is told, the last of them 0.
    unsafe { api.cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), 256, handle) }?;
    Ok(CStr::from_bytes_until_nul(&name).map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned()))
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("ordinal", &self.ordinal).field("total_memory", &self.total_memory).finish()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained once when opened. A driver that is shutting down refuses, and has released it already.
        let _ = unsafe { self.api.cuDevicePrimaryCtxRelease(self.handle) };
    }
}

/// The device's context is current on this thread.
pub(super) struct Current {
    api: &'static Api,
    is_pushed: bool,
    /// Stays on its thread, as the driver's stack of contexts does.
    thread: PhantomData<*const ()>,
}

impl Drop for Current {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut context = 0;
            // SAFETY: takes off what `enter` put on. It can only fail where the driver is gone.
            let _ = unsafe { self.api.cuCtxPopCurrent(&mut context) };
        }
    }
}
