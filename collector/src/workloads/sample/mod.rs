//! The sample trace: a GPT is trained on a 24 GiB device until a request fails, although gigabytes are free in pieces.
//!
//! The run is steady while all sequences have the same length. Then lengths vary, no cached block fits the next batch,
//! and reserved memory climbs. Each evaluation leaves its scores on the device, in the middle of otherwise free
//! segments, and more at every step. That ends the run: what is free lies in pieces too small for the next batch.

mod sites;
mod training;

pub(super) use training::{STEPS, train};

use format::export;
use trace::Snapshot;

use super::job::{ClockedSim, RunControl};
use super::setup::Setup;

/// Bytes of the device that are left for tensors: 24 GiB less what the driver and the kernels use.
pub(super) const CAPACITY: u64 = (24 << 30) - (620 << 20);
/// The random seed of the sample that the server shows.
const SEED: u64 = 7;

/// Returns the bytes of the sample's snapshot file, which are the same each time.
pub fn snapshot() -> Vec<u8> {
    let mut bytes = Vec::new();
    export::pickle(&trace(), &mut |piece| bytes.extend_from_slice(piece));
    bytes
}

fn trace() -> Snapshot {
    let setup = Setup { capacity: CAPACITY, seed: SEED, ..Setup::default() };
    let mut job = setup.job(ClockedSim::new(CAPACITY), RunControl::default());
    // The run is meant to fail; the failure is in the trace.
    let _ = train(&mut job, STEPS);
    job.end().snapshot
}

#[cfg(test)]
mod tests {
    use format::import::{Encoding, Format, Imported};
    use query::diagnosis::Cause;
    use query::diagnosis::DiagnosisQuery;
    use query::{Answer, Query};
    use session::Session;

    use super::*;

    #[test]
    fn its_leak_ends_it_in_pieces_too_small() {
        let format = Format { encoding: Encoding::Pickle, compression: None };
        let imported = Imported { format, protocol: Some(4), snapshot: trace(), findings: Vec::new(), header: None };
        let mut session = Session::build(imported, &mut |_| {});
        let Answer::Diagnosis(found) = session.answer(0, &Query::Diagnosis(DiagnosisQuery)) else {
            panic!("no diagnosis")
        };
        let [failed] = &found.ooms[..] else { panic!("one request fails") };
        assert_eq!(found.verdict.cause, Cause::Leak, "{}", found.verdict.sentence);
        assert!(failed.requested < failed.cached && failed.fits_if_packed(), "{failed:?}");
        assert!(session.summary().findings.iter().all(|finding| finding.position == found.verdict.position));
    }

    #[test]
    fn it_is_the_same_each_time() {
        assert!(snapshot() == snapshot());
    }

    #[test]
    fn it_is_long_enough_to_be_interesting_and_short_enough_to_load_at_once() {
        let entries = trace().devices[0].events.len();
        assert!((60_000..150_000).contains(&entries), "{entries} entries");
        let bytes = snapshot().len();
        assert!((2 << 20..6 << 20).contains(&bytes), "{bytes} bytes");
    }
}
