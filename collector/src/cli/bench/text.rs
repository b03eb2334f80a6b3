//! The comparison as text for people.

use std::fmt::{self, Write};

use trace::units::{Bytes, Count, counted, counted_as};

use super::Benched;
use super::measured::{Allocator, Durations, Measured};
use crate::cli::message::one_line;
use crate::cli::whatif::named;

/// What is known of the driver's own allocators without a GPU. A sentence a line, to be folded where they are read.
const SIMULATED: &str = "\
The device is simulated, so that no call takes time. The caching allocator is simulated exactly.
The stream-ordered pool is the driver's own, and is not simulated. CUDA's documentation (\"Stream Ordered Memory Allocator\") says when \
it may use freed memory again: in the order of its stream, and in another stream after an event, when the work is done, or by making \
that stream wait. It says when the pool gives memory back: what is above the release threshold, when something is synchronized; \
PyTorch's backend sets no limit, so that it keeps everything. It does not say where an allocation is placed.
So only a lower bound is known for what the driver reserves: the most bytes that were requested at once. Measure it on a GPU with --driver cuda
";
/// How the figures of a GPU came about.
const MEASURED: &str = "\
Each call is timed in the calling thread, with the program's own record of addresses, while no kernel runs. Unified memory is moved to the device within the call.
The pool has the settings of PyTorch's backend cudaMallocAsync: no limit on what it keeps, and all three kinds of reuse.
The reserved bytes come from the allocators' own counters. Where each request is a call of its own, they are what the free memory of the device lost, in which \
other programs count too.
";

/// Returns the text.
pub(super) fn of(benched: &Benched) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut out, benched);
    out
}

fn write(out: &mut String, benched: &Benched) -> fmt::Result {
    let Benched { subject, gpu, torch, conf, rounds, requests, peak_requested, allocators, .. } = benched;
    let on = match gpu {
        Some(name) if name.is_empty() => "on a GPU".to_owned(),
        Some(name) => format!("on {}", one_line(name)),
        None => "on a simulated device".to_owned(),
    };
    let rounds = rounds.map_or_else(String::new, |rounds| format!(", {}", counted(rounds.into(), "round")));
    writeln!(out, "{}: {}, {on}{rounds}", one_line(subject), counted(*requests, "request"))?;
    writeln!(out, "The caching allocator is that of torch {torch} with {}.", named(conf))?;
    writeln!(out, "At most {} were requested at once.", Bytes(*peak_requested))?;
    let private = if gpu.is_some() { benched.private } else { 0 };
    for (count, what) in [
        (benched.failed_in_recording, "failed when it was recorded, and is left out"),
        (private, "came from a private pool, and is served as all others"),
    ] {
        if count > 0 {
            let what =
                if count == 1 { what.to_owned() } else { what.replace(" is ", " are ").replace("it was", "they were") };
            writeln!(out, "{} {what}.", counted(count, "request"))?;
        }
    }
    let width = allocators.iter().map(|of| of.allocator.name().len()).max().unwrap_or(0);
    let is_timed = gpu.is_some();
    write!(out, "\n{:width$}  {:>13}  {:>13}  {:>12}", "", "peak reserved", "fragmentation", "driver calls")?;
    if is_timed {
        write!(
            out,
            "  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}",
            "allocate", "99 % below", "free", "99 % below", "all calls"
        )?;
    }
    writeln!(out)?;
    for measured in allocators {
        row(out, measured, width, is_timed)?;
    }
    writeln!(out)?;
    writeln!(out, "Fragmentation: the share of what was reserved that was not requested, both at their peaks.")?;
    out.push_str(if is_timed { MEASURED } else { SIMULATED });
    Ok(())
}

fn row(out: &mut String, measured: &Measured, width: usize, is_timed: bool) -> fmt::Result {
    let name = measured.allocator.name();
    if let Some(why) = &measured.unavailable {
        return writeln!(out, "{name:width$}  not on this device: {}", one_line(why));
    }
    let reserved = match measured.peak_reserved {
        Some(bytes) => Bytes(bytes).to_string(),
        None => format!("≥ {}", Bytes(measured.peak_reserved_at_least)),
    };
    let fragmentation =
        measured.fragmentation.map_or_else(|| "?".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let calls = measured.driver_calls.map_or_else(|| "its own".to_owned(), |calls| Count(calls).to_string());
    write!(out, "{name:width$}  {reserved:>13}  {fragmentation:>13}  {calls:>12}")?;
    if is_timed {
        for durations in [measured.allocate, measured.free] {
            let Durations { median_ns, p99_ns, .. } = durations.unwrap_or_default();
            write!(out, "  {:>10}  {:>10}", time(median_ns), time(p99_ns))?;
        }
        let mut totals = measured.totals_ns.clone();
        totals.sort_unstable();
        write!(out, "  {:>10}", time(totals.get(totals.len() / 2).copied().unwrap_or_default()))?;
    }
    if measured.failed > 0 {
        write!(out, "  {}", counted_as(measured.failed, "request fails", "requests fail"))?;
    }
    if measured.allocator == Allocator::StreamOrdered && !is_timed {
        write!(out, "  not simulated")?;
    }
    writeln!(out)
}

/// Returns a duration with three digits or so.
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{:.2} µs", ns as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_fits() {
        for (ns, want) in
            [(120, "0.12 µs"), (9_990, "9.99 µs"), (56_000, "56 µs"), (2_340_000, "2.3 ms"), (1_500_000_000, "1.50 s")]
        {
            assert_eq!(time(ns), want);
        }
    }
}
