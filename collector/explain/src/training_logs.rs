//! The lines that DeepSpeed and Megatron print of PyTorch's allocator.

use crate::size::after;
use crate::stats::Sums;

/// Reads the last such line; `None` if the text has none.
pub(super) fn read(text: &str) -> Option<Sums> {
    text.lines().rev().find_map(|line| deepspeed(line).or_else(|| megatron(line)))
}

/// Reads `MA 14.99 GB  Max_MA 15.01 GB  CA 15.16 GB  Max_CA 15 GB`, of `see_memory_usage`: allocated and cached.
fn deepspeed(line: &str) -> Option<Sums> {
    let allocated = after(line, "MA ").filter(|_| line.contains("Max_MA"))?;
    let reserved = after(line, " CA ")?;
    Some(Sums {
        allocated,
        active: allocated,
        reserved,
        peak_allocated: after(line, "Max_MA "),
        // It is rounded to whole GB, unlike the rest, and then may be less than what is reserved now.
        peak_reserved: after(line, "Max_CA ").filter(|peak| *peak >= reserved),
        ..Sums::default()
    })
}

/// Reads `memory (MB) | allocated: 123.4 | max allocated: 456.7 | reserved: 500.0 | max reserved: 512.0`.
fn megatron(line: &str) -> Option<Sums> {
    let (_, rest) = line.split_once("memory (MB) |")?;
    let cell = |name: &str| {
        let cells = rest.split('|').filter_map(|cell| cell.split_once(':'));
        let number = cells.into_iter().find_map(|(cell, number)| (cell.trim() == name).then_some(number))?;
        let number = number.trim().split(' ').next().unwrap_or_default();
        after(&["= ", number, " MB"].concat(), "=")
    };
    let allocated = cell("allocated")?;
    Some(Sums {
        allocated,
        active: allocated,
        reserved: cell("reserved")?,
        peak_allocated: cell("max allocated"),
        peak_reserved: cell("max reserved"),
        ..Sums::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts() {
        let gib = |tenths: u64| tenths * (1 << 30) / 10;
        let deepspeed = "[INFO] [utils.py:1:see] before\n[INFO] MA 10.0 GB         Max_MA 12.0 GB         CA 15.0 GB         Max_CA 16 GB";
        let sums = read(deepspeed).expect("sums");
        assert_eq!((sums.allocated, sums.peak_allocated), (gib(100), Some(gib(120))));
        assert_eq!((sums.reserved, sums.peak_reserved), (gib(150), Some(gib(160))));
        // 0.08 GB in all can't have been 0 at its peak.
        let small = read("MA 0.02 GB         Max_MA 0.02 GB         CA 0.08 GB         Max_CA 0 GB ").expect("sums");
        assert_eq!(small.peak_reserved, None);
        let megatron = "[Rank 0] (after 10 iterations) memory (MB) | allocated: 512.0 | max allocated: 768.0 | reserved: 1024.0 | max \
                        reserved: 2048.0";
        let sums = read(megatron).expect("sums");
        assert_eq!((sums.allocated, sums.reserved, sums.peak_reserved), (512 << 20, 1 << 30, Some(2 << 30)));
        for none in ["", "MA 1 GB", "memory (MB) | allocated: x | reserved: 1", "memory (MB) |"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
