//! The devices that the program finds: how many, of what model, with how much memory.

use std::process::Command;

use whatif::{CONTEXT, Card};

use super::model::{Model, USUAL};

/// The memory of a device that nothing should fill.
pub(super) const AMPLE: u64 = 640 << 30;

/// The devices of the machine on which the program is to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// The card; `None` for a device of some capacity.
    pub(super) card: Option<&'static Card>,
    /// The bytes that the process can have of each device; `None` if nothing limits it.
    pub(super) room: Option<u64>,
    /// The bytes that others hold.
    pub(super) held_by_others: u64,
    /// The number of devices.
    pub(super) devices: u64,
}

impl Target {
    /// Returns the same without a limit.
    pub(super) fn ample(self) -> Self {
        Self { room: None, ..self }
    }

    /// Returns the card that it is for a program.
    fn model(self) -> Model {
        self.card.and_then(Model::of).unwrap_or(USUAL)
    }

    /// Sets the variables that the simulated driver reads.
    pub(super) fn set(self, command: &mut Command) {
        let model = self.model();
        // The context is not the process's to use, also on a device of some capacity.
        let capacity = self.room.unwrap_or(AMPLE).saturating_add(CONTEXT).saturating_add(self.held_by_others);
        for (name, value) in [
            ("FAKECUDA_DEVICES", self.devices.to_string()),
            ("FAKECUDA_CAPACITY", capacity.to_string()),
            ("FAKECUDA_CONTEXT_BYTES", CONTEXT.to_string()),
            ("FAKECUDA_OTHER_BYTES", self.held_by_others.to_string()),
            ("FAKECUDA_NAME", model.name.to_owned()),
            ("FAKECUDA_COMPUTE", model.compute.to_owned()),
            ("FAKECUDA_PROCESSORS", model.processors.to_string()),
        ] {
            command.env(name, value);
        }
    }
}
