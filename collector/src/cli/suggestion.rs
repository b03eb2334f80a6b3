//! "Did you mean …?", for names that the command line itself does not know: workloads, their parameters, settings, cards.

/// Returns the known name that is most similar to one that is unknown. At most one letter of three differs: else it is another
/// word, and no slip.
pub(super) fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let most = name.chars().count().max(3) / 3;
    let distance = |other: &str| strsim::osa_distance(&name, &other.to_lowercase());
    let all = known.into_iter().map(|other| (distance(other), other)).filter(|(distance, _)| *distance <= most);
    all.min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

/// Returns the question as a sentence with a space before it, or nothing.
pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    closest(name, known).map_or_else(String::new, |other| format!(" Did you mean {other}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognized_and_another_word_is_not() {
        let known = ["transformer", "leak", "kv-serving"];
        for (name, want) in [
            ("transfomer", Some("transformer")),
            ("Transformer", Some("transformer")),
            ("lek", Some("leak")),
            ("kvserving", Some("kv-serving")),
            ("resnet", None),
            ("break", None),
            ("", None),
        ] {
            assert_eq!(closest(name, known), want, "{name}");
        }
        assert_eq!(did_you_mean("lek", known), " Did you mean leak?");
        assert_eq!(did_you_mean("x", known), "");
    }
}
