//! The programs of the workloads, one in each file, with their parameters.

pub(super) mod alternating;
pub(super) mod checkpoint_save;
pub(super) mod checkpointing;
pub(super) mod empty_cache;
pub(super) mod kv_serving;
pub(super) mod leak;
pub(super) mod model_switch;
pub(super) mod recovery;
pub(super) mod resnet_sweep;
pub(super) mod transformer;
pub(super) mod variable_length;

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;
