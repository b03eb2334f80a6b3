//! The texts of failed requests: the same as PyTorch's.

use allocator::{AllocError, OutOfMemory, Profile};

/// Why an allocation failed, as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Raised as `torch.OutOfMemoryError`.
    OutOfMemory(String),
    /// Any other failure: of the driver, or of the allocator itself.
    Failed(String),
}

impl Refusal {
    /// Creates the refusal of a request on a device.
    pub fn new(error: &AllocError, device: i64, is_expandable: bool, profile: &Profile) -> Self {
        match error {
            AllocError::OutOfMemory(oom) => Self::OutOfMemory(out_of_memory(oom, device, None, is_expandable, profile)),
            AllocError::Rejected(_) | AllocError::TooLarge => Self::OutOfMemory(error.to_string()),
            AllocError::Driver(error) => Self::Failed(format!("CUDA error on device {device}: {error}")),
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        match self {
            Self::OutOfMemory(text) | Self::Failed(text) => text,
        }
    }
}

/// Returns the first line of PyTorch's out-of-memory error. `in_use` is the device memory of this process in bytes; like
/// PyTorch without NVML, `None` leaves that sentence out.
pub fn out_of_memory(
    oom: &OutOfMemory,
    device: i64,
    in_use: Option<u64>,
    is_expandable: bool,
    profile: &Profile,
) -> String {
    let text = oom.to_string();
    // The allocator's text lacks the device's number and the parts that depend on the process and the settings.
    let text = text.replacen("GPU has", &format!("GPU {device} has"), 1);
    let (head, tail) = text.split_once(" is free. ").unwrap_or((&text, ""));
    let advice = match oom.short_reserve {
        Some(reserve) => format!(
            "This allocation exceeds the expandable-segment reserve of {} for this stream, and a single allocation \
             cannot span expandable segments. Raise PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve or \
             expandable_segments_reserve_by_class (or unset it) so that a segment is at least {}.",
            OutOfMemory::size(reserve),
            OutOfMemory::size(oom.segment_size)
        ),
        None => profile.oom_advice(is_expandable).to_owned(),
    };
    let process = in_use.map_or_else(String::new, |bytes| {
        format!("Including non-PyTorch memory, this process has {} memory in use. ", OutOfMemory::size(bytes))
    });
    let space = if advice.is_empty() { "" } else { " " };
    format!("{head} is free. {process}{tail}{space}{advice}")
}

#[cfg(test)]
mod tests {
    use allocator::{DriverError, TORCH_2_11};

    use super::*;

    #[test]
    fn refusals_have_the_texts_of_pytorch() {
        let oom = OutOfMemory {
            segment_size: 20 << 20,
            rounded: 20 << 20,
            device_free: 1 << 20,
            device_total: 64 << 20,
            limit: None,
            allocated: 30 << 20,
            reserved: 40 << 20,
            short_reserve: None,
            private_free: 0,
        };
        let cases = [
            (
                AllocError::OutOfMemory(Box::new(oom)),
                true,
                "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 64.00 MiB of which 1024.00 \
                 KiB is free. Of the allocated memory 30.00 MiB is allocated by PyTorch, and 10.00 MiB is reserved by \
                 PyTorch but unallocated. If reserved but unallocated memory is large try setting",
            ),
            (AllocError::TooLarge, true, "CUDA out of memory. Tried to allocate more than 1EB memory."),
            (
                AllocError::Driver(DriverError::Failed { call: "cuMemAlloc", message: "no context".into() }),
                false,
                "CUDA error on device 1: cuMemAlloc failed: no context",
            ),
        ];
        for (error, is_oom, text) in cases {
            let refusal = Refusal::new(&error, 1, false, &TORCH_2_11);
            assert_eq!(matches!(refusal, Refusal::OutOfMemory(_)), is_oom);
            assert!(refusal.text().starts_with(text), "{}", refusal.text());
        }
    }
}
