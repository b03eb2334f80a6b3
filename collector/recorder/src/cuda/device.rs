//! One CUDA device with its primary context, which allocators, streams and copies share.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use allocator::{DriverError, MemoryInfo};
use cudarc::driver::sys::{
    CUmemAllocationGranularity_flags, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUuuid,
};

use super::CudaError;
use super::spans::Spans;
use super::symbols::{self, Api, Failure};

/// A device's properties, read without creating a context, which would use hundreds of megabytes of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its CUDA number.
    pub ordinal: u32,
    /// Its model: `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Its memory in bytes.
    pub total_memory: u64,
}

/// An open device, usable from any thread. Its context is current only during a call, so the process's own choice of
/// device does not change.
pub struct Device {
    pub(super) api: &'static Api,
    ordinal: u32,
    pub(super) handle: c_int,
    /// The primary context, which PyTorch and the CUDA runtime use.
    context: usize,
    total_memory: u64,
    /// The memory that may be read and written.
    spans: RwLock<Spans>,
    /// The streams that may be used besides the default stream 0, with PyTorch's numbers for them.
    streams: RwLock<BTreeMap<i64, u64>>,
    /// The number of streams created here.
    pub(super) created_streams: AtomicU64,
}

impl Device {
    /// Opens the device with this CUDA number (after `CUDA_VISIBLE_DEVICES`) and retains its primary context.
    ///
    /// # Errors
    /// If there is no driver or no such device, if the driver lacks a function, and if it refuses.
    pub fn open(ordinal: u32) -> Result<Arc<Self>, CudaError> {
        let (api, count) = start()?;
        let index = c_int::try_from(ordinal).ok().filter(|_| ordinal < count);
        let index = index.ok_or(CudaError::NoDevice { ordinal, count })?;
        let (mut handle, mut bytes, mut context) = (0, 0, 0);
        // SAFETY: the variables outlive the calls, and the driver counted the device.
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

    /// Returns all devices that CUDA may use, without opening them.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn list() -> Result<Vec<DeviceInfo>, CudaError> {
        let (api, count) = start()?;
        let mut devices = Vec::new();
        for (ordinal, index) in (0..count).zip(0..) {
            let (mut handle, mut bytes) = (0, 0);
            // SAFETY: the variables outlive the calls, and the driver counted the device.
            unsafe {
                api.cuDeviceGet(&mut handle, index)?;
                api.cuDeviceTotalMem(&mut bytes, handle)?;
            }
            devices.push(DeviceInfo { ordinal, name: name_of(api, handle)?, total_memory: bytes as u64 });
        }
        Ok(devices)
    }

    /// Returns its CUDA number.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Returns its memory in bytes (`totalGlobalMem`), including the driver's share.
    pub fn total_memory(&self) -> u64 {
        self.total_memory
    }

    /// Returns its model: `NVIDIA H100 80GB HBM3`.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn name(&self) -> Result<String, DriverError> {
        Ok(name_of(self.api, self.handle)?)
    }

    /// Returns its UUID without a prefix (`3d2f5a10-...`), the only identity that the driver and NVML share.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn uuid(&self) -> Result<String, DriverError> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: the variable outlives the call.
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

    /// Returns the newest CUDA version that the driver supports: `CUDA 12.4`.
    pub fn driver_version(&self) -> String {
        symbols::version_text(symbols::driver_version())
    }

    /// Returns the smallest page of virtual memory in bytes: 2 MiB on every device so far.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn granularity(&self) -> Result<u64, DriverError> {
        let mut bytes = 0;
        let minimum = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the variables outlive the call.
        unsafe { self.api.cuMemGetAllocationGranularity(&mut bytes, &self.properties(), minimum) }?;
        Ok(bytes as u64)
    }

    /// Returns the free and the total memory, over all processes.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn memory_info(&self) -> Result<MemoryInfo, DriverError> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the variables outlive the call.
        unsafe { self.api.cuMemGetInfo(&mut free, &mut total) }?;
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    /// Waits for all work of the device's context.
    ///
    /// # Errors
    /// If work on the device failed.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let _current = self.enter()?;
        // SAFETY: the context is current.
        Ok(unsafe { self.api.cuCtxSynchronize() }?)
    }

    /// Returns a property of the device, by its number in `CUdevice_attribute`.
    pub(super) fn attribute(&self, attribute: u32) -> Result<c_int, Failure> {
        let mut value = 0;
        // SAFETY: the variable outlives the call; the driver refuses unknown numbers.
        unsafe { self.api.cuDeviceGetAttribute(&mut value, attribute, self.handle) }?;
        Ok(value)
    }

    /// Returns the location of the device's memory.
    pub(super) fn location(&self) -> CUmemLocation {
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: self.handle }
    }

    /// Returns the properties of pages: memory of this device, not shared with other processes.
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
        // SAFETY: the variable outlives the call.
        unsafe { self.api.cuCtxGetCurrent(&mut current) }?;
        let is_pushed = current != self.context;
        if is_pushed {
            // SAFETY: the context is retained while this value lives.
            unsafe { self.api.cuCtxPushCurrent(self.context) }?;
        }
        Ok(Current { api: self.api, is_pushed, thread: PhantomData })
    }

    // After a panic under one of these locks the sets are usable: every change is a single insertion or removal.

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

/// Initialises the driver. Returns its functions and the number of devices.
fn start() -> Result<(&'static Api, u32), CudaError> {
    let api = Api::get()?;
    let mut count = 0;
    // SAFETY: the function accepts no flags but 0.
    unsafe { api.cuInit(0) }?;
    // SAFETY: the variable outlives the call.
    unsafe { api.cuDeviceGetCount(&mut count) }?;
    Ok((api, u32::try_from(count).unwrap_or(0)))
}

fn name_of(api: &Api, handle: c_int) -> Result<String, Failure> {
    let mut name = [0_u8; 256];
    // SAFETY: the function writes at most 256 bytes, the last of them 0.
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
        // SAFETY: it was retained once when opened. A driver that is shutting down refuses, and has released it already.
        let _ = unsafe { self.api.cuDevicePrimaryCtxRelease(self.handle) };
    }
}

/// Keeps the device's context current on this thread.
pub(super) struct Current {
    api: &'static Api,
    is_pushed: bool,
    /// Makes it stay on its thread, because the driver's stack of contexts belongs to the thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Current {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut context = 0;
            // SAFETY: it pops what `enter` pushed. It only fails if the driver has been shut down.
            let _ = unsafe { self.api.cuCtxPopCurrent(&mut context) };
        }
    }
}
