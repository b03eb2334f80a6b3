//! Parses the conditions of a run, as a person writes them. Errors are sentences.

use allocator::{AllocatorConfig, Profile};
use protocol::whatif::RunConditions;
use query::parse_bytes;
use trace::units::Bytes;
use whatif::{AMPLE, CONTEXT, Card, Terms};

/// Returns the terms of a run under these conditions. What it leaves open is as in the recording.
pub fn terms(
    conditions: &RunConditions,
    profile: &'static Profile,
    recorded_capacity: Option<u64>,
) -> Result<Terms, String> {
    let profile = match conditions.torch.trim() {
        "" => profile,
        torch => Profile::of(torch).ok_or_else(|| format!("PyTorch “{torch}” is not a release that is known here."))?,
    };
    let config =
        AllocatorConfig::from_conf(conditions.conf.trim(), profile).map_err(|error| refusal(&error.to_string()))?;
    let (capacity, context) = match conditions.capacity.trim() {
        "" => (recorded_capacity.unwrap_or(AMPLE), 0),
        text => match Card::named(text) {
            Some(card) => (card.total, CONTEXT),
            None => (size(text)?, 0),
        },
    };
    let others = match conditions.others.trim() {
        "" => 0,
        text => parse_bytes(text)?,
    };
    let fraction = match conditions.fraction.trim() {
        "" => None,
        text => Some(share(text)?),
    };
    Ok(Terms { profile, config, capacity, held_by_others: others.saturating_add(context), fraction })
}

/// Letters of an error that are shown. PyTorch repeats the settings in some.
const LONGEST: usize = 240;

/// Returns PyTorch's own error on one line.
fn refusal(error: &str) -> String {
    let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    let more = if cut.len() < line.len() { "…" } else { "" };
    format!("PyTorch refuses these settings: {cut}{more}")
}

fn size(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 1..=AMPLE => Ok(bytes),
        _ => Err(format!("A device has between 1 byte and {} of memory.", Bytes(AMPLE))),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("“{text}” is not a fraction: write a number above 0, at most 1, such as 0.9."))
}

#[cfg(test)]
mod tests {
    use allocator::TORCH_2_11;

    use super::*;

    fn conditions(conf: &str, capacity: &str, fraction: &str, others: &str) -> RunConditions {
        let [conf, capacity, fraction, others] = [conf, capacity, fraction, others].map(str::to_owned);
        RunConditions { conf, torch: String::new(), capacity, fraction, others }
    }

    #[test]
    fn what_is_left_open_is_as_recorded() {
        let terms = terms(&RunConditions::default(), &TORCH_2_11, Some(5)).unwrap();
        assert_eq!((terms.profile.torch, terms.capacity, terms.held_by_others, terms.fraction), ("2.11", 5, 0, None));
        assert_eq!(super::terms(&RunConditions::default(), &TORCH_2_11, None).unwrap().capacity, AMPLE);
    }

    #[test]
    fn a_card_has_its_memory_and_a_context() {
        let terms = terms(&conditions("", " h100 ", "0.5", "1GiB"), &TORCH_2_11, None).unwrap();
        let card = Card::named("H100").unwrap();
        assert_eq!((terms.capacity, terms.held_by_others), (card.total, CONTEXT + (1 << 30)));
        assert_eq!(terms.fraction, Some(0.5));
        assert_eq!(super::terms(&conditions("", "80GiB", "", ""), &TORCH_2_11, None).unwrap().capacity, 80 << 30);
    }

    #[test]
    fn what_makes_no_sense_is_refused_on_one_line() {
        let old = RunConditions { torch: "1.2".to_owned(), ..RunConditions::default() };
        for (conditions, want) in [
            (conditions("max_split_size_mb:1", "", "", ""), "PyTorch refuses these settings"),
            (conditions("nonsense", "", "", ""), "PyTorch refuses these settings"),
            (conditions(&"[,:".repeat(9_999), "", "", ""), "PyTorch refuses these settings"),
            (conditions("", "much", "", ""), "is not a size"),
            (conditions("", "0", "", ""), "between 1 byte and 1.00 TiB"),
            (conditions("", "99TiB", "", ""), "between 1 byte and 1.00 TiB"),
            (conditions("", "", "1.5", ""), "above 0, at most 1"),
            (conditions("", "", "NaN", ""), "above 0, at most 1"),
            (conditions("", "", "", "-1"), "is not a size"),
            (old, "is not a release"),
        ] {
            let error = terms(&conditions, &TORCH_2_11, None).unwrap_err();
            assert!(error.contains(want) && !error.contains('\n') && error.len() < 400, "{conditions:?}: {error}");
        }
    }
}
