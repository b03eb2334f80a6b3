//! Every other block is freed, then one large request.

use trace::units::{Bytes, counted};

use super::MIB;
use crate::workloads::job::{Device, Job, JobError, Tensor, at};
use crate::workloads::params::{Choices, Param, Values};
use crate::workloads::sites;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param { name: "block", default: "4", values: Values::Count(1, 1_024), help: "MiB per block" },
    Param {
        name: "large",
        default: "1024",
        values: Values::Count(1, 65_536),
        help: "size of the large request in MiB",
    },
];

pub(in crate::workloads) fn run<D: Device>(
    job: &mut Job<D>,
    choices: &Choices,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    let (block, large) = (choices.count("block") * MIB, choices.count("large") * MIB);
    job.call(at("main", "shuffle.py", 51), |job| {
        let mut blocks: Vec<Tensor> = Vec::new();
        // As many blocks as fit on the device.
        let made = job.span("fill", |job| {
            loop {
                match job.call(at("fill", "shuffle.py", 18), |job| job.alloc(block, sites::EMPTY_OP)) {
                    Ok(tensor) => blocks.push(tensor),
                    Err(JobError::OutOfMemory(_)) => break Ok(blocks.len()),
                    Err(other) => break Err(other),
                }
            }
        })?;
        let every_other: Vec<Tensor> = blocks.into_iter().step_by(2).collect();
        let freed = every_other.len() as u64 * block;
        job.span("free every other", |job| {
            job.call(at("thin_out", "shuffle.py", 27), |job| job.free_all(every_other));
        });
        notes.push(format!(
            "Allocated {} of {} each, then freed every other one, {} in total.",
            counted(made as u64, "block"),
            Bytes(block),
            Bytes(freed)
        ));
        job.wait(20_000);
        let _large = job.span("large request", |job| {
            job.call(at("gather", "shuffle.py", 39), |job| job.alloc(large, sites::CAT_OP))
        })?;
        Ok(())
    })
}
