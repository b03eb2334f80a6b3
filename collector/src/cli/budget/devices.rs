//! The options that divide a model among devices.

use budget::Parallel;
use clap::Args;

use super::count;

/// The options that divide a model among devices.
#[derive(Args, Debug)]
#[command(next_help_heading = "Several devices")]
pub(super) struct Devices {
    /// Devices that train on different data, each on --batch sequences
    #[arg(long, value_name = "N", default_value = "1")]
    data: String,
    /// What these divide among themselves: 1 optimizer state, 2 gradients too, 3 weights too (FSDP)
    #[arg(long, value_name = "0..3", default_value = "0")]
    zero: String,
    /// Devices among which matrices are divided
    #[arg(long, value_name = "N", default_value = "1")]
    tensor: String,
    /// Divide the tokens among these too, where matrices are not
    #[arg(long)]
    sequence_parallel: bool,
    /// Stages of layers, each on other devices (1F1B)
    #[arg(long, value_name = "N", default_value = "1")]
    pipeline: String,
    /// Batches before each optimizer step: gradient accumulation [default: the number of --pipeline stages]
    #[arg(long, value_name = "N")]
    micro_batches: Option<String>,
    /// Devices, of those of --data, among which the experts are divided
    #[arg(long, value_name = "N", default_value = "1")]
    expert_parallel: String,
}

impl Devices {
    /// Returns the numbers of devices, which are not checked yet.
    pub(super) fn parallel(&self) -> Result<Parallel, String> {
        let pipeline = count::parse("--pipeline", &self.pipeline, "stages")?;
        let zero = count::parse("--zero", &self.zero, "stages of ZeRO")?;
        Ok(Parallel {
            data: count::parse("--data", &self.data, "devices")?,
            zero: u8::try_from(zero).map_err(|_| "--zero must be 0, 1, 2 or 3.".to_owned())?,
            tensor: count::parse("--tensor", &self.tensor, "devices")?,
            sequence: self.sequence_parallel,
            pipeline,
            micro_batches: match &self.micro_batches {
                Some(text) => count::parse("--micro-batches", text, "batches")?,
                None => pipeline,
            },
            expert: count::parse("--expert-parallel", &self.expert_parallel, "devices")?,
        })
    }
}
