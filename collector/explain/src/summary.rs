//! The table of `torch.cuda.memory_summary()`.

use crate::size::at_start;
use crate::stats::Sums;

/// Reads a table; `None` if the text has none.
pub(super) fn read(text: &str) -> Option<Sums> {
    let mut sums = Sums::default();
    let mut is_known = false;
    for line in text.lines() {
        if let Some(at) = line.find("CUDA OOMs:") {
            let count = |name: &str| {
                let (_, rest) = line.get(at..)?.split_once(name)?;
                rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            };
            (sums.ooms, sums.retries) = (count("OOMs:").unwrap_or(0), count("retries:").unwrap_or(0));
        }
        let mut cells = line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
        let (Some(name), now, peak) = (cells.next(), cells.next().and_then(at_start), cells.next().and_then(at_start))
        else {
            continue;
        };
        let Some(now) = now else { continue };
        match name {
            "Allocated memory" => (sums.allocated, sums.peak_allocated) = (now, peak),
            "Active memory" => sums.active = now,
            "Requested memory" => sums.requested = Some(now),
            "GPU reserved memory" => {
                (sums.reserved, sums.peak_reserved) = (now, peak);
                is_known = true;
            }
            "Non-releasable memory" => sums.inactive_split = Some(now),
            _ => {}
        }
    }
    is_known.then_some(sums)
}
