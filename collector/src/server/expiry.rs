//! When a certificate expires: the one field of X.509 that the log names.

/// The tag of a sequence, and those of the two forms of a time.
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns when a certificate expires, as RFC 3339 in UTC, or `None` if its bytes are not understood.
pub(super) fn expiry(certificate: &[u8]) -> Option<String> {
    // Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version, serialNumber, signature, issuer, validity, … } … }
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    // A version is optional. The fields up to the issuer are skipped.
    let (first, _, _) = element(fields)?;
    for _ in 0..if first == 0xa0 { 4 } else { 3 } {
        (_, _, fields) = element(fields)?;
    }
    let (tag, validity, _) = element(fields)?;
    let (_, _, rest) = element(validity)?;
    let (form, time, _) = element(rest)?;
    let text = std::str::from_utf8(time).ok().filter(|text| tag == SEQUENCE && text.is_ascii())?;
    let (year, rest) = match form {
        UTC_TIME => {
            let (short, rest) = text.split_at_checked(2)?;
            // RFC 5280, 4.1.2.5.1.
            (format!("{}{short}", if short < "50" { "20" } else { "19" }), rest)
        }
        GENERALIZED_TIME => text.split_at_checked(4).map(|(year, rest)| (year.to_owned(), rest))?,
        _ => return None,
    };
    let digits = rest.strip_suffix('Z').filter(|digits| digits.len() == 10)?;
    if !year.bytes().chain(digits.bytes()).all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).unwrap_or_default();
    Some(format!("{year}-{}-{}T{}:{}:{}Z", part(0), part(2), part(4), part(6), part(8)))
}

/// Splits the first element of DER off: its tag, its content, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, length], mut rest) = bytes.split_first_chunk::<2>()?;
    let mut length = usize::from(length);
    if length >= 0x80 {
        // The length is in so many bytes.
        let (digits, after) = rest.split_at_checked(length & 0x7f).filter(|(digits, _)| digits.len() <= 4)?;
        length = digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_expiry_of_a_certificate_is_found_and_other_bytes_are_not_understood() {
        let key = KeyPair::generate().unwrap();
        // RFC 5280 demands the short form before 2050, and the long one from then on.
        for (year, want) in
            [(2027, "2027-03-09T00:00:00Z"), (2049, "2049-03-09T00:00:00Z"), (2051, "2051-03-09T00:00:00Z")]
        {
            let mut params = CertificateParams::new(["box".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, 3, 9);
            let certificate = params.self_signed(&key).unwrap();
            let bytes = certificate.der().to_vec();
            assert_eq!(expiry(&bytes).as_deref(), Some(want));
            for cut in 0..bytes.len() {
                // Nothing panics; what is cut is not a certificate.
                assert_eq!(expiry(&bytes[..cut]), None, "cut at {cut}");
                let mut other = bytes.clone();
                other[cut] ^= 0xff;
                let _ = expiry(&other);
            }
        }
    }
}
