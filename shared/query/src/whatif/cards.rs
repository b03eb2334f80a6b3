//! Devices by name, with the memory that PyTorch finds on them.

/// What a process's CUDA context takes of a device, in bytes: 512 MiB. Out-of-memory messages, which name it with other
/// "non-PyTorch memory", show from 0.3 to 0.6 GiB before libraries add their workspaces.
pub const CONTEXT: u64 = 512 << 20;

/// A device that can be bought or rented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name, with the memory that it is sold with: `H100-80GB`.
    pub name: &'static str,
    /// The bytes that PyTorch's out-of-memory messages call its total capacity: the lowest of the figures that people have
    /// posted, since drivers and error correction take different amounts.
    pub total: u64,
}

/// Returns a size that was given in hundredths of a GiB, as messages print it.
const fn gib(hundredths: u64) -> u64 {
    (hundredths << 30) / 100
}

/// The cards, smallest first. MI250X is one of its two halves, which are devices of their own.
pub const CARDS: [Card; 31] = [
    Card { name: "T4-16GB", total: gib(1456) },
    Card { name: "A4000-16GB", total: gib(1561) },
    Card { name: "V100-16GB", total: gib(1577) },
    Card { name: "P100-16GB", total: gib(1589) },
    Card { name: "A10-24GB", total: gib(2198) },
    Card { name: "A10G-24GB", total: gib(2198) },
    Card { name: "L4-24GB", total: gib(2203) },
    Card { name: "RTX4090-24GB", total: gib(2351) },
    Card { name: "A5000-24GB", total: gib(2354) },
    Card { name: "RTX3090-24GB", total: gib(2356) },
    Card { name: "RTX5090-32GB", total: gib(3136) },
    Card { name: "V100-32GB", total: gib(3173) },
    Card { name: "A100-40GB", total: gib(3938) },
    Card { name: "A40-48GB", total: gib(4434) },
    Card { name: "L40-48GB", total: gib(4439) },
    Card { name: "L40S-48GB", total: gib(4439) },
    Card { name: "RTX6000ADA-48GB", total: gib(4737) },
    Card { name: "A6000-48GB", total: gib(4740) },
    Card { name: "MI250X-64GB", total: gib(6398) },
    Card { name: "H100-80GB", total: gib(7910) },
    Card { name: "A100-80GB", total: gib(7914) },
    Card { name: "H100NVL-94GB", total: gib(9300) },
    Card { name: "GH200-96GB", total: gib(9450) },
    Card { name: "RTX6000-96GB", total: gib(9496) },
    Card { name: "H20-96GB", total: gib(9500) },
    Card { name: "H200-141GB", total: gib(13972) },
    Card { name: "B200-180GB", total: gib(17835) },
    Card { name: "MI300X-192GB", total: gib(19169) },
    Card { name: "MI325X-256GB", total: gib(25598) },
    Card { name: "B300-288GB", total: gib(26769) },
    Card { name: "MI355X-288GB", total: gib(28798) },
];

/// Words of a device's name that say who made it, or how it is mounted, and not which one it is.
const FILLERS: [&str; 16] = [
    "NVIDIA",
    "AMD",
    "TESLA",
    "GEFORCE",
    "INSTINCT",
    "RTX",
    "PRO",
    "GENERATION",
    "BLACKWELL",
    "SERVER",
    "WORKSTATION",
    "EDITION",
    "SXM2",
    "SXM4",
    "PCIE",
    "HBM3",
];

impl Card {
    /// Returns the bytes that a process can have for its tensors when it has the card for itself: all but its context.
    pub fn usable(&self) -> u64 {
        self.total.saturating_sub(CONTEXT)
    }

    /// Returns the card of a name, in capitals or not, as it is sold or as PyTorch has it, with or without the memory where that
    /// is not ambiguous: `h100-80gb`, `RTX 3090`, `NVIDIA A100-SXM4-80GB`.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = plain(name);
        if let Some(card) = CARDS.iter().find(|card| plain(card.name) == name) {
            return Some(card);
        }
        let mut cards = CARDS.iter().filter(|card| plain(card.model()) == name);
        cards.next().filter(|_| cards.next().is_none())
    }

    /// Returns the names of the cards of a model: `a100` is two cards.
    pub fn of_model(name: &str) -> Vec<&'static str> {
        let name = plain(name);
        CARDS.iter().filter(|card| plain(card.model()) == name).map(|card| card.name).collect()
    }

    /// Returns the name without the memory.
    fn model(&self) -> &'static str {
        self.name.split_once('-').map_or(self.name, |(model, _)| model)
    }

    /// Returns the smallest card that a process fits on that needs `bytes`; `None` if none is large enough.
    pub fn smallest_for(bytes: u64) -> Option<&'static Self> {
        CARDS.iter().find(|card| card.usable() >= bytes)
    }
}

/// Returns what tells a name from others: its words in capitals, without spaces and fillers.
fn plain(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !FILLERS.contains(word));
    words.map(|word| word.strip_prefix("RTX").unwrap_or(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_sorted_and_usable_is_less_than_sold() {
        assert!(CARDS.is_sorted_by_key(|card| card.total));
        for (i, card) in CARDS.iter().enumerate() {
            assert!(CARDS[..i].iter().all(|other| plain(other.name) != plain(card.name)), "{}", card.name);
        }
        for Card { name, total } in CARDS {
            let sold: u64 = name.split_once('-').unwrap().1.trim_end_matches("GB").parse().unwrap();
            assert!(total < sold << 30 && total > (sold << 30) / 10 * 9, "{name}");
        }
    }

    #[test]
    fn names() {
        let cases = [
            ("H100-80GB", Some("H100-80GB")),
            ("h100", Some("H100-80GB")),
            (" A100 40GB", Some("A100-40GB")),
            ("rtx_3090", Some("RTX3090-24GB")),
            ("A10", Some("A10-24GB")),
            ("a10g", Some("A10G-24GB")),
            ("RTX A6000", Some("A6000-48GB")),
            ("RTX 6000 Ada", Some("RTX6000ADA-48GB")),
            ("V100 16GB", Some("V100-16GB")),
            // As `torch.cuda.get_device_name()` has them.
            ("NVIDIA GeForce RTX 3090", Some("RTX3090-24GB")),
            ("NVIDIA A100-SXM4-80GB", Some("A100-80GB")),
            ("NVIDIA H100 80GB HBM3", Some("H100-80GB")),
            ("Tesla V100-SXM2-32GB", Some("V100-32GB")),
            ("NVIDIA RTX 6000 Ada Generation", Some("RTX6000ADA-48GB")),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", Some("RTX6000-96GB")),
            ("AMD Instinct MI300X", Some("MI300X-192GB")),
            ("A100", None),
            ("V100", None),
            ("", None),
            ("RTX", None),
            ("80GB", None),
            ("Z9000", None),
        ];
        for (name, want) in cases {
            assert_eq!(Card::named(name).map(|card| card.name), want, "{name}");
        }
    }

    #[test]
    fn a_model_of_several_cards_means_all_of_them() {
        assert_eq!(Card::of_model("a100"), ["A100-40GB", "A100-80GB"]);
        assert_eq!((Card::of_model("h100"), Card::of_model("Z9000")), (vec!["H100-80GB"], vec![]));
    }

    #[test]
    fn the_smallest_card_that_fits() {
        let cases = [
            (0, Some("T4-16GB")),
            (40 << 30, Some("A40-48GB")),
            (gib(7910) - CONTEXT, Some("H100-80GB")),
            (1 << 40, None),
        ];
        for (bytes, want) in cases {
            assert_eq!(Card::smallest_for(bytes).map(|card| card.name), want, "{bytes}");
        }
    }
}
