//! Ticks at round numbers along an axis, and their labels: time, event numbers, binary bytes.

use query::Window;
use trace::decimal::Decimal;
use trace::order::Within;
use trace::units::Count;

use super::math::exp2;

/// A tick on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The position, in units of the axis.
    pub at: f64,
    /// The label.
    pub label: String,
}

/// A unit of time or memory: its size in the axis' own unit, and its name.
type Unit = (f64, &'static str);

const TIME: [Unit; 3] = [(1.0, "µs"), (1e3, "ms"), (1e6, "s")];
const BYTES: [Unit; 7] = [
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_125_899_906_842_624.0, "PiB"),
    (1_152_921_504_606_846_976.0, "EiB"),
];
/// Steps of clock time, from a second up.
const CLOCK_STEPS: [f64; 16] =
    [1e6, 2e6, 5e6, 10e6, 15e6, 30e6, 60e6, 120e6, 300e6, 600e6, 900e6, 1800e6, 3600e6, 7200e6, 21_600e6, 43_200e6];
/// Numbers that are less than this many times as large as another stand in its unit.
const LIKE: f64 = 10.0;
/// More ticks never fit on a screen; the bound keeps odd input from costing time.
const MOST: usize = 200;

/// Returns the step and the unit of about `room` ticks at most for a window in microseconds.
fn of_time(window: Window, room: f64) -> (f64, Unit) {
    let least = window.length() / room.max(1.0);
    let step = if least <= 1e6 {
        decimal_step(least)
    } else {
        CLOCK_STEPS.into_iter().find(|step| *step >= least).unwrap_or_else(|| decimal_step(least / 3600e6) * 3600e6)
    };
    (step, unit_for(&TIME, window, step, 3))
}

/// Returns about `room` ticks at most for a window in microseconds.
pub fn time(window: Window, room: f64) -> Vec<Tick> {
    let (step, unit) = of_time(window, room);
    // From a minute on, whole seconds are written as clock time.
    marks(window, step, |at| if at.abs() >= 60e6 && step >= 1e6 { clock(at) } else { in_unit(at, step, unit) })
}

/// Formats a moment in the unit of the ticks beside it, exact to about `least` microseconds.
pub fn moment(window: Window, room: f64, least: f64, at: f64) -> String {
    let (step, unit) = of_time(window, room);
    let is_clock = at >= 60e6 && step >= 1e6;
    if is_clock { clock((at / 1e6).floor() * 1e6) } else { in_unit(at, decimal_step(least).max(1.0).min(step), unit) }
}

/// Returns about `room` ticks at most for a window of event numbers.
pub fn events(window: Window, room: f64) -> Vec<Tick> {
    let step = decimal_step((window.length() / room.max(1.0)).max(1.0));
    marks(window, step, |at| Count(at.max(0.0) as u64).to_string())
}

/// Readable fractions of a binary unit; finer ones are tenths of these.
const PARTS: [f64; 3] = [0.5, 0.25, 0.1];

/// Returns about `room` ticks at most for a window in bytes. The whole axis uses the largest unit that it reaches;
/// steps of whole units are powers of two.
pub fn bytes(window: Window, room: f64) -> Vec<Tick> {
    bytes_of(window, room, window.end)
}

/// Returns ticks as [`bytes`] in the unit of `of` bytes; in the largest unit that the axis reaches if they were long in that.
pub fn bytes_of(window: Window, room: f64, of: f64) -> Vec<Tick> {
    let least = (window.length() / room.max(1.0)).max(1.0);
    let largest = if of < window.end && window.end / of.max(1.0) < LIKE { of.abs() } else { window.end.abs() };
    // With more than five decimals a label is longer than in the next smaller unit.
    let reaches = |unit: &&Unit| unit.0 <= largest && least / unit.0 >= 1e-5;
    let unit = BYTES.iter().rev().find(reaches).copied().unwrap_or(BYTES[0]);
    let least = least / unit.0;
    let step = if least > 0.5 {
        exp2(least.log2().ceil())
    } else {
        let power = power_of_ten(least * 1.000_000_002) * 10.0;
        let parts = PARTS.into_iter().rev().map(|part| part * power);
        parts.into_iter().find(|step| *step >= least * 0.999_999).unwrap_or(power)
    } * unit.0;
    marks(window, step, |at| if at == 0.0 { "0".to_owned() } else { in_unit(at, step, unit) })
}

/// Returns the smallest of 1, 2, 5 × 10^n that is not below `least`.
fn decimal_step(least: f64) -> f64 {
    if !(least > 0.0 && least.is_finite()) {
        return 1.0;
    }
    let power = power_of_ten(least);
    [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|step| *step >= least * 0.999_999).unwrap_or(10.0 * power)
}

/// Returns the largest power of ten that is not above a positive, finite number.
fn power_of_ten(x: f64) -> f64 {
    10_f64.powi(x.log10().floor() as i32)
}

/// Returns the largest unit that the axis reaches and in which its labels need no more than a number of decimals.
fn unit_for(units: &[Unit], window: Window, step: f64, most_decimals: u32) -> Unit {
    let reaches = |unit: &&Unit| unit.0 <= window.end.abs() && decimals(step / unit.0) <= most_decimals;
    units.iter().rev().find(reaches).copied().unwrap_or((1.0, units.first().map_or("", |unit| unit.1)))
}

/// Returns the decimals that a step needs to be written exactly; seven stands for more.
fn decimals(step: f64) -> u32 {
    let mut part = step;
    let mut count = 0;
    while count < 7 && (part - part.round()).abs() > 1e-6 * part {
        part *= 10.0;
        count += 1;
    }
    count
}

fn marks(window: Window, step: f64, label: impl Fn(f64) -> String) -> Vec<Tick> {
    let first = (window.start / step).ceil();
    let last = (window.end / step).floor();
    if !(first.is_finite() && last.is_finite()) {
        return Vec::new();
    }
    let count = (last - first + 1.0).within(0.0, MOST as f64) as usize;
    (0..count).map(|i| (first + i as f64) * step).map(|at| Tick { at, label: label(at) }).collect()
}

/// Formats a value in a unit, with enough decimals to distinguish neighbouring ticks.
fn in_unit(at: f64, step: f64, (size, name): Unit) -> String {
    format!("{} {name}", Decimal::of(at / size, decimals(step / size)))
}

/// Formats whole seconds as `m:ss` or `h:mm:ss`.
fn clock(us: f64) -> String {
    let seconds = (us / 1e6).round().max(0.0) as u64;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{rest:02}") } else { format!("{minutes}:{rest:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ticks: &[Tick], want: &[&str]) {
        let got: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(got, want);
    }

    const fn w(start: f64, end: f64) -> Window {
        Window { start, end }
    }

    #[test]
    fn times_from_microseconds_to_hours() {
        check(&time(w(0.0, 10.0), 5.0), &["0 µs", "2 µs", "4 µs", "6 µs", "8 µs", "10 µs"]);
        check(&time(w(1_000.0, 3_000.0), 4.0), &["1.0 ms", "1.5 ms", "2.0 ms", "2.5 ms", "3.0 ms"]);
        check(&time(w(0.0, 12e6), 6.0), &["0 s", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s"]);
        check(&time(w(0.0, 150e6), 5.0), &["0 s", "30 s", "1:00", "1:30", "2:00", "2:30"]);
        check(&time(w(0.0, 9_000e6), 5.0), &["0 s", "30:00", "1:00:00", "1:30:00", "2:00:00", "2:30:00"]);
        // Zoomed in far from the start, the labels still differ.
        check(
            &time(w(3_200_000.0, 3_200_004.0), 4.0),
            &["3200.000 ms", "3200.001 ms", "3200.002 ms", "3200.003 ms", "3200.004 ms"],
        );
    }

    #[test]
    fn a_moment_is_in_the_unit_of_its_ticks_and_no_less_exact() {
        let of = |window: Window, at: f64| moment(window, 10.0, window.length() / 1000.0, at);
        assert_eq!(of(w(1_308_400.0, 1_310_300.0), 1_310_288.0), "1310.288 ms");
        assert_eq!(of(w(0.0, 1_310_288.0), 1_310_288.0), "1.310 s");
        assert_eq!(of(w(0.0, 10.0), 3.0), "3 µs");
        assert_eq!(of(w(0.0, 150e6), 108_900_000.0), "1:48");
        assert_eq!(of(w(108e6, 110e6), 108_912_345.0), "108.912 s");
    }

    #[test]
    fn events_are_grouped_and_whole() {
        check(&events(w(0.0, 1_004_222.0), 5.0), &["0", "500,000", "1,000,000"]);
        check(&events(w(48_110.0, 48_113.5), 10.0), &["48,110", "48,111", "48,112", "48,113"]);
    }

    #[test]
    fn bytes_in_binary_units() {
        let gib = 1_073_741_824.0;
        check(&bytes(w(0.0, 80.0 * gib), 6.0), &["0", "16 GiB", "32 GiB", "48 GiB", "64 GiB", "80 GiB"]);
        check(&bytes(w(0.0, 1.6 * gib), 4.0), &["0", "0.5 GiB", "1.0 GiB", "1.5 GiB"]);
        check(&bytes(w(0.0, 0.6 * gib), 4.0), &["0", "256 MiB", "512 MiB"]);
        let around = w(0.93 * gib, 1.01 * gib);
        check(&bytes_of(around, 4.0, around.start), &["960 MiB", "992 MiB", "1024 MiB"]);
        check(&bytes_of(w(0.0, 80.0 * gib), 3.0, 0.0), &["0", "32 GiB", "64 GiB"]);
        check(&bytes(w(0.0, 3.0), 4.0), &["0", "1 B", "2 B", "3 B"]);
        check(&bytes(w(0.0, 1.2 * gib), 5.0), &["0", "0.25 GiB", "0.50 GiB", "0.75 GiB", "1.00 GiB"]);
        check(&bytes(w(1.0 * gib, 1.21 * gib), 4.5), &["1.00 GiB", "1.05 GiB", "1.10 GiB", "1.15 GiB", "1.20 GiB"]);
        check(&bytes(w(4.0 * gib, 4.0 * gib + 1_048_576.0), 1.0), &["4.000 GiB"]);
        check(&bytes(w(4.0 * gib, 4.0 * gib + 2048.0), 2.0), &["4096.000 MiB", "4096.001 MiB"]);
    }

    #[test]
    fn odd_windows_are_harmless() {
        for window in [w(0.0, 0.0), w(5.0, 1.0), w(0.0, f64::INFINITY), w(f64::NAN, 1.0), w(-1e300, 1e300)] {
            for ticks in [time(window, 8.0), events(window, 8.0), bytes(window, 8.0)] {
                assert!(ticks.len() <= MOST);
            }
        }
    }
}
