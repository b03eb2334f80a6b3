//! Figures that can't be true together. What follows from one of them would be wrong, so the contradiction is the answer.

use query::finding::Remedy;
use trace::units::Bytes;

use crate::message::Message;

/// Figures of an error that can't be true together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// More is free than the device has.
    FreeAboveTotal,
    /// Tensors and cache take more than the device has, and this process holds less: memory that is not on the device.
    AwayFromDevice,
    /// Tensors and cache take more than the device has, and nothing says what the process holds.
    AboveDevice,
}

impl Contradiction {
    /// Returns the contradiction among the figures of an error, if there is one.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let total = message.total?;
        let slack = message.rounding();
        let is_above = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > total.saturating_add(slack));
        if is_above(message.free) {
            return Some(Self::FreeAboveTotal);
        }
        let counted = message.reserved.max(message.allocated);
        match message.this_process {
            // What PyTorch took from the driver can't be more than what the process holds.
            Some(own) => (counted? > own.saturating_add(slack)).then_some(Self::AwayFromDevice),
            None => is_above(counted).then_some(Self::AboveDevice),
        }
    }

    /// Returns what it means, in one or two sentences.
    pub(super) fn sentence(self, message: &Message) -> String {
        let bytes = |figure: Option<u64>| Bytes(figure.unwrap_or(0));
        let (total, counted) = (bytes(message.total), bytes(message.reserved.max(message.allocated)));
        match self {
            Self::FreeAboveTotal => format!(
                "These figures contradict each other: {} was free on a device of {total}. They are of two memories, as on an \
                 APU, whose driver counts the memory that it shares with the host as free; {total} is not the limit.",
                bytes(message.free)
            ),
            Self::AwayFromDevice => {
                let own = message.this_process.unwrap_or(0);
                let away = message.reserved.max(message.allocated).unwrap_or(0).saturating_sub(own);
                format!(
                    "PyTorch counts {counted}, and this process holds {} of {total}: {} of it is not on the device, as in a \
                     pool that sleeps or was offloaded (vLLM's sleep mode, torch_memory_saver). What is cached can't be \
                     taken for usable; {} was free for the request of {}.",
                    Bytes(own),
                    Bytes(away),
                    bytes(message.free),
                    Bytes(message.tried)
                )
            }
            Self::AboveDevice => format!(
                "PyTorch counts {counted} on a device of {total}: on Windows and WSL the driver moves memory to the host \
                 when the device is full. {} was in live tensors, and {} was free for the request of {}.",
                bytes(message.allocated),
                bytes(message.free),
                Bytes(message.tried)
            ),
        }
    }

    /// Returns what to try.
    pub(super) fn remedies(self) -> Vec<Remedy> {
        match self {
            Self::FreeAboveTotal => vec![
                Remedy::advice("Compare with what the system's own monitor says is used of either memory."),
                Remedy::advice(
                    "Give the GPU a larger part of the shared memory in the firmware, or ask for less at once.",
                ),
            ],
            Self::AwayFromDevice => vec![
                Remedy::advice(
                    "Let the part that is awake need less, such as a lower gpu_memory_utilization, or put the other part to \
                     sleep before it allocates.",
                ),
                Remedy::advice("Leave expandable_segments out: pools that sleep refuse it."),
            ],
            Self::AboveDevice => vec![
                Remedy::advice(
                    "Use a smaller batch, shorter sequences or fewer bytes for weights: the device is full.",
                ),
                Remedy::advice("Leave room for the display and other programs, which share the device's memory."),
            ],
        }
    }
}
