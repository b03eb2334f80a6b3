//! Content codings of responses, and the choice among them by `Accept-Encoding` (RFC 9110, section 12.5.3).

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Brotli.
    Brotli,
    /// gzip.
    Gzip,
    /// None.
    Identity,
}

impl Coding {
    /// Returns the value of `Content-Encoding`; `None` for the plain form, which has no such header.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }
}

/// Returns the coding that the client prefers among those that `forms` marks as available. Of codings with the same
/// weight, the first of `forms` wins. The plain form serves clients that name no coding, and those that refuse all.
pub(super) fn accepted(header: &str, forms: &[(Coding, bool)]) -> Coding {
    let weighted = forms.iter().filter(|(_, is_there)| *is_there).map(|(coding, _)| (*coding, weight(header, *coding)));
    weighted
        .filter(|(_, weight)| *weight > 0)
        // The last of equal ones is the maximum.
        .rev()
        .max_by_key(|(_, weight)| *weight)
        .map_or(Coding::Identity, |(coding, _)| coding)
}

/// Returns the weight of a coding in thousandths; 0 if the client refuses it.
fn weight(header: &str, coding: Coding) -> u16 {
    let name = coding.name().unwrap_or("identity");
    let mut any = None;
    for item in header.split(',') {
        let mut parameters = item.split(';');
        let listed = parameters.next().unwrap_or_default().trim();
        let weight = parameters.find_map(quality).unwrap_or(1000);
        // gzip has an old name that must mean the same.
        if listed.eq_ignore_ascii_case(name) || (coding == Coding::Gzip && listed.eq_ignore_ascii_case("x-gzip")) {
            return weight;
        }
        if listed == "*" {
            any = Some(weight);
        }
    }
    // A plain form that isn't listed is acceptable, and liked least.
    any.unwrap_or(u16::from(coding == Coding::Identity))
}

/// Returns the value of a parameter `q=0.5`, in thousandths; `None` for any other parameter. A value that is not between 0
/// and 1 counts as 0.
fn quality(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value = value.trim().parse::<f32>().ok().filter(|value| (0.0..=1.0).contains(value));
    Some(value.map_or(0, |value| (value * 1000.0).round() as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_chooses() {
        use Coding::{Brotli, Gzip, Identity};
        for (header, want) in [
            ("gzip, deflate, br, zstd", Brotli),
            ("gzip, deflate", Gzip),
            ("deflate, GZIP", Gzip),
            ("x-gzip", Gzip),
            ("br;q=0.5, gzip;q=0.8", Gzip),
            ("br; q=1.0, gzip", Brotli),
            ("br;q=0", Identity),
            ("br;q=0, gzip", Gzip),
            ("br;q=0.000, *", Gzip),
            ("*", Brotli),
            ("*;q=0", Identity),
            ("*;q=0, gzip;q=0.1", Gzip),
            ("gzip;q=0.001", Gzip),
            ("br;q=0.5, identity;q=0.9", Identity),
            ("br;q=2", Identity),
            ("br;q=x", Identity),
            ("br;level=4", Brotli),
            ("BR;Q=0.2", Brotli),
            ("identity", Identity),
            ("", Identity),
            (",;,", Identity),
        ] {
            let all = [(Brotli, true), (Gzip, true), (Identity, true)];
            assert_eq!(accepted(header, &all), want, "{header:?}");
        }
    }

    #[test]
    fn only_what_is_available_is_chosen() {
        use Coding::{Brotli, Gzip, Identity};
        let chosen = |header, has_brotli, has_gzip| {
            accepted(header, &[(Brotli, has_brotli), (Gzip, has_gzip), (Identity, true)])
        };
        assert_eq!(chosen("br, gzip", false, true), Gzip);
        assert_eq!(chosen("br, gzip", false, false), Identity);
        assert_eq!(chosen("br", false, true), Identity);
        assert_eq!(chosen("*;q=0", false, true), Identity);
    }
}
