//! The few functions of numbers that colours and axes need, in a few lines each: the standard library's are exact to the
//! last bit over all numbers, and were a hundredth of the page's WebAssembly.

use std::f32::consts::{FRAC_PI_2, PI, TAU};

/// The sine of an angle in radians, to a millionth. For angles of a few turns at most.
pub fn sin(angle: f32) -> f32 {
    let turned = angle - (angle / TAU).round() * TAU;
    // The outer quarters are those beside them, mirrored.
    let x = match turned {
        x if x > FRAC_PI_2 => PI - x,
        x if x < -FRAC_PI_2 => -PI - x,
        x => x,
    };
    let square = x * x;
    // Taylor's series; the next term is below 6e-8.
    let terms = [1.0 / 362_880.0, -1.0 / 5_040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0];
    x * terms.into_iter().fold(0.0, |sum, term| sum * square + term)
}

/// The cosine of an angle in radians, like [`sin`].
pub fn cos(angle: f32) -> f32 {
    sin(angle + FRAC_PI_2)
}

/// The `n`th root of a number from 0 to 1 that is 0 or no less than 1e-13, by Newton's steps.
pub fn root(x: f64, n: i32) -> f64 {
    let degree = f64::from(n);
    let mut root = 1.0;
    // From above each step comes nearer, at first by a share of 1/n.
    for _ in 0..20 * n {
        let step = (root - x / power(root, n - 1)) / degree;
        root -= step;
        if step <= 1e-12 {
            break;
        }
    }
    root
}

fn power(x: f64, n: i32) -> f64 {
    (0..n).fold(1.0, |product, _| product * x)
}

/// The largest power of two that is not above a positive number.
pub fn power_of_two(x: f64) -> f64 {
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    f64::from_bits(x.to_bits() & EXPONENT)
}

/// The largest power of ten that is not above a positive, finite number.
pub fn power_of_ten(x: f64) -> f64 {
    let mut power = 1.0_f64;
    if x >= 1.0 {
        while power * 10.0 <= x {
            power *= 10.0;
        }
        return power;
    }
    // Powers below one are divided once: a row of divisions would not be exact.
    while 1.0 / power > x && power < 1e300 {
        power *= 10.0;
    }
    1.0 / power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_the_standard_library() {
        for i in -2_000..2_000 {
            let angle = i as f32 / 100.0;
            assert!((sin(angle) - angle.sin()).abs() < 5e-6, "sin {angle}");
            assert!((cos(angle) - angle.cos()).abs() < 5e-6, "cos {angle}");
        }
        for i in 1..=1_000 {
            let x = f64::from(i) / 1_000.0;
            for n in [2, 5, 12] {
                assert!((root(x, n) - x.powf(1.0 / f64::from(n))).abs() < 1e-9, "root {n} of {x}");
            }
        }
        assert!((root(1e-13, 12) - 1e-13_f64.powf(1.0 / 12.0)).abs() < 1e-9);
        for (x, two, ten) in [
            (1.0, 1.0, 1.0),
            (0.999, 0.5, 0.1),
            (0.001, 0.000_976_562_5, 0.001),
            (1e-5, 7.629_394_531_25e-6, 1e-5),
            (7.5, 4.0, 1.0),
            (1_000.0, 512.0, 1_000.0),
            (999_999.0, 524_288.0, 100_000.0),
        ] {
            assert_eq!((power_of_two(x), power_of_ten(x)), (two, ten), "{x}");
        }
    }
}
