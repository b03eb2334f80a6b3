//! Functions of the standard library in less code: theirs have tables, which don't shrink when they are compressed.

use std::f64::consts::{LN_2, TAU};

/// Returns the sine of an angle in radians.
pub fn sine(angle: f64) -> f64 {
    let turns = angle / TAU;
    let angle = (turns - turns.round()) * TAU;
    // The series, with its terms in each other.
    (1..=10).rev().fold(1.0, |rest, n| 1.0 - rest * angle * angle / f64::from(2 * n * (2 * n + 1))) * angle
}

/// Returns 2^`exponent` for a finite exponent; exactly if that is a whole number.
pub fn exp2(exponent: f64) -> f64 {
    let whole = exponent.round();
    let part = (exponent - whole) * LN_2;
    (1..=14).rev().fold(1.0, |rest, n| 1.0 + rest * part / f64::from(n)) * 2_f64.powi(whole as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sines_are_those_of_the_standard_library() {
        for angle in (-720..720).map(|degrees| f64::from(degrees).to_radians()) {
            assert!((sine(angle) - angle.sin()).abs() < 1e-10, "{angle}");
        }
    }

    #[test]
    fn powers_are_those_of_the_standard_library() {
        for exponent in (-10_000..10_000).map(|n| f64::from(n) / 100.0) {
            let expected = exponent.exp2();
            assert!((exp2(exponent) - expected).abs() <= expected * 1e-15, "{exponent}");
        }
        let whole: Vec<i32> = (-1_020..=1_023).collect();
        assert!(whole.iter().all(|&n| exp2(f64::from(n)) == 2_f64.powi(n)));
    }
}
