//! The sample trace: a GPT trained on a 24 GiB device until a request fails, though gigabytes are free in pieces.
//!
//! The story, for whoever looks: the run is steady while all sequences have one length. Then lengths vary, no cached
//! block fits the next batch, and what is reserved climbs. Each evaluation leaves its scores on the device, in the
//! middle of otherwise free segments. The end is an out-of-memory error by fragmentation.

mod run;
mod sites;
mod training;

use crate::workloads::snapshot_writer;

/// The bytes of the sample's snapshot file: the same ones each time.
pub fn snapshot() -> Vec<u8> {
    let run = training::train();
    snapshot_writer::snapshot(&run.allocator, &run.stacks, &run.annotations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::caching_allocator::BlockState;

    #[test]
    fn it_ends_by_fragmentation() {
        let run = training::train();
        let failed: Vec<_> = run.allocator.history().iter().filter(|entry| entry.action == "oom").collect();
        let [failed] = failed[..] else { panic!("{} requests failed", failed.len()) };
        let gaps: Vec<u64> = run
            .allocator
            .segments()
            .filter(|(_, segment, _)| segment.pool == failed.pool && segment.stream == failed.stream)
            .flat_map(|(_, _, blocks)| blocks)
            .filter(|(_, block)| block.state == BlockState::Inactive)
            .map(|(_, block)| block.size)
            .collect();
        let (largest, total) = (gaps.iter().max().copied().unwrap_or(0), gaps.iter().sum::<u64>());
        assert!(largest < failed.size && failed.size < total, "{} of {total}, in gaps up to {largest}", failed.size);
    }

    #[test]
    fn it_is_the_same_each_time() {
        assert!(snapshot() == snapshot());
    }

    #[test]
    fn it_is_long_enough_to_be_interesting_and_short_enough_to_load_at_once() {
        let entries = training::train().allocator.history().len();
        assert!((60_000..150_000).contains(&entries), "{entries} entries");
        let bytes = snapshot().len();
        assert!((2 << 20..6 << 20).contains(&bytes), "{bytes} bytes");
    }
}
