//! What a card is to a program: its name, its compute capability, and its multiprocessors. PyTorch sizes workspaces and chooses
//! kernels by them.

use whatif::Card;

/// A card as its driver describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// The name in the list of cards.
    card: &'static str,
    /// The name as `torch.cuda.get_device_name()` has it.
    pub(super) name: &'static str,
    /// The compute capability, as in NVIDIA's list of GPUs (<https://developer.nvidia.com/cuda-gpus>).
    pub(super) compute: &'static str,
    /// The multiprocessors, as in the data sheets.
    pub(super) processors: u32,
}

/// What is not in the list, such as a device of some capacity, is taken for this one.
pub(super) const USUAL: Model =
    Model { card: "H100-80GB", name: "NVIDIA H100 80GB HBM3", compute: "9.0", processors: 132 };

const MODELS: [Model; 27] = [
    Model { card: "T4-16GB", name: "Tesla T4", compute: "7.5", processors: 40 },
    Model { card: "A4000-16GB", name: "NVIDIA RTX A4000", compute: "8.6", processors: 48 },
    Model { card: "V100-16GB", name: "Tesla V100-SXM2-16GB", compute: "7.0", processors: 80 },
    Model { card: "P100-16GB", name: "Tesla P100-PCIE-16GB", compute: "6.0", processors: 56 },
    Model { card: "A10-24GB", name: "NVIDIA A10", compute: "8.6", processors: 72 },
    Model { card: "A10G-24GB", name: "NVIDIA A10G", compute: "8.6", processors: 80 },
    Model { card: "L4-24GB", name: "NVIDIA L4", compute: "8.9", processors: 58 },
    Model { card: "RTX4090-24GB", name: "NVIDIA GeForce RTX 4090", compute: "8.9", processors: 128 },
    Model { card: "A5000-24GB", name: "NVIDIA RTX A5000", compute: "8.6", processors: 64 },
    Model { card: "RTX3090-24GB", name: "NVIDIA GeForce RTX 3090", compute: "8.6", processors: 82 },
    Model { card: "RTX5090-32GB", name: "NVIDIA GeForce RTX 5090", compute: "12.0", processors: 170 },
    Model { card: "V100-32GB", name: "Tesla V100-SXM2-32GB", compute: "7.0", processors: 80 },
    Model { card: "A100-40GB", name: "NVIDIA A100-SXM4-40GB", compute: "8.0", processors: 108 },
    Model { card: "A40-48GB", name: "NVIDIA A40", compute: "8.6", processors: 84 },
    Model { card: "L40-48GB", name: "NVIDIA L40", compute: "8.9", processors: 142 },
    Model { card: "L40S-48GB", name: "NVIDIA L40S", compute: "8.9", processors: 142 },
    Model { card: "RTX6000ADA-48GB", name: "NVIDIA RTX 6000 Ada Generation", compute: "8.9", processors: 142 },
    Model { card: "A6000-48GB", name: "NVIDIA RTX A6000", compute: "8.6", processors: 84 },
    USUAL,
    Model { card: "A100-80GB", name: "NVIDIA A100-SXM4-80GB", compute: "8.0", processors: 108 },
    Model { card: "H100NVL-94GB", name: "NVIDIA H100 NVL", compute: "9.0", processors: 132 },
    Model { card: "GH200-96GB", name: "NVIDIA GH200 480GB", compute: "9.0", processors: 132 },
    Model {
        card: "RTX6000-96GB",
        name: "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        compute: "12.0",
        processors: 188,
    },
    Model { card: "H20-96GB", name: "NVIDIA H20", compute: "9.0", processors: 78 },
    Model { card: "H200-141GB", name: "NVIDIA H200", compute: "9.0", processors: 132 },
    Model { card: "B200-180GB", name: "NVIDIA B200", compute: "10.0", processors: 148 },
    Model { card: "B300-288GB", name: "NVIDIA B300", compute: "10.3", processors: 148 },
];

impl Model {
    /// Returns the model of a card; `None` for one that CUDA does not run on.
    pub(super) fn of(card: &Card) -> Option<Self> {
        MODELS.into_iter().find(|model| model.card == card.name)
    }
}

#[cfg(test)]
mod tests {
    use whatif::CARDS;

    use super::*;

    #[test]
    fn every_card_of_nvidia_has_a_model() {
        for card in &CARDS {
            assert_eq!(Model::of(card).is_some(), !card.name.starts_with("MI"), "{}", card.name);
        }
    }

    #[test]
    fn a_driver_name_is_that_of_its_card() {
        for model in MODELS {
            let found = Card::named(model.name).map(|card| card.name);
            assert!(
                found == Some(model.card) || ["GH200-96GB", "H100NVL-94GB"].contains(&model.card),
                "{model:?}: {found:?}"
            );
        }
    }
}
