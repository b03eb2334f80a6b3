//! Tests of leaks, on traces of some steps.

use super::*;
use crate::steps::{StepSource, Steps, TrainingStep};
use replay::index::Index;

/// Steps of `events` events each, the first of which begins at position 1. The last one is not whole.
fn steps_of(count: u64, events: u32, source: StepSource) -> Steps {
    let step = |number: u64| {
        let from = 1 + (number as u32 - 1) * events;
        TrainingStep { number, from, to: from + events, is_whole: number < count }
    };
    Steps { source, steps: (1..=count).map(step).collect() }
}

/// Returns what the largest leak of a trace kept step by step.
fn by_step(lines: &[String], steps: &Steps) -> Option<(String, StepRise)> {
    with_source(lines, |source| {
        let found = LeakCandidate::all(source, source.replay.positions(), 40_000);
        let rise = found.first()?.by_step(source, steps)?;
        Some((rise.to_string(), rise))
    })
}

#[test]
fn the_slope_is_that_of_whole_steps() {
    // Three events for each of four layers' two lines, and one that is kept.
    let even = steps(40, 4, "keep@/m/a.py:2", |_| 1_024);
    let (text, rise) = by_step(&even, &steps_of(40, 25, StepSource::Optimizer)).unwrap();
    assert_eq!(text, "1.00 KiB more in each step, over steps 1 to 39");
    assert_eq!((rise.bytes, rise.steps, rise.per_step()), (39 * 1_024, 39, 1_024));
    // Three of the program's rounds are one step.
    let (text, rise) = by_step(&even, &steps_of(13, 75, StepSource::Pattern)).unwrap();
    assert_eq!((text.as_str(), rise.bytes), ("3.00 KiB more in each step, over steps 1 to 12", 36 * 1_024));
    // A fifth of a round is a step.
    let (text, rise) = by_step(&even, &steps_of(200, 5, StepSource::Annotations)).unwrap();
    assert_eq!(text, "205 B more in each step on average, over steps 5 to 199");
    assert_eq!((rise.bytes, rise.is_even), (39 * 1_024, false));
    assert_eq!(by_step(&even, &steps_of(200, 5, StepSource::Pattern)), None, "layers, not steps");
    assert_eq!(by_step(&even, &steps_of(2, 25, StepSource::Optimizer)), None, "one whole step has no slope");
    let uneven = steps(40, 4, "keep@/m/a.py:2", |step| 1_024 * (1 + step % 2));
    let (text, rise) = by_step(&uneven, &steps_of(41, 25, StepSource::Annotations)).unwrap();
    assert_eq!(text, "1.50 KiB more in each step on average, over steps 1 to 40");
    assert_eq!(rise.bytes, 60 * 1_024);
}

fn all(lines: &[String]) -> Vec<LeakCandidate> {
    with_source(lines, |source| LeakCandidate::all(source, source.replay.positions(), 40_000))
}

fn with_source<T>(lines: &[String], ask: impl FnOnce(LeakSource<'_>) -> T) -> T {
    let mut snapshot = trace::testing::snapshot(&lines.join("\n"));
    let trace = snapshot.devices.remove(0);
    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
    let best_frames = BestFrames::build(&snapshot.symbols);
    ask(LeakSource { trace: &trace, replay: &replay, symbols: &snapshot.symbols, best_frames: &best_frames })
}

const SEGMENT: &str = "segment_alloc 0x1000000 20971520";

/// Forty steps, each of which allocates and frees an activation and keeps `kept(step)` bytes.
fn largest(kept: impl Fn(u64) -> Option<u64>) -> Option<(u64, u64)> {
    let mut lines = vec![SEGMENT.to_owned()];
    for step in 0..40 {
        lines.push("alloc 0x1000000 4000 activation@/m/a.py:1".to_owned());
        if let Some(bytes) = kept(step) {
            lines.push(format!("alloc {} {bytes} kept@/m/a.py:2", 0x110_0000 + 4_096 * step));
        }
        lines.push("free 0x1000000".to_owned());
    }
    all(&lines).first().map(|candidate| (candidate.first_bytes, candidate.last_bytes))
}

#[test]
fn a_site_that_keeps_a_tensor_of_every_step_is_found() {
    assert_eq!(largest(|_| Some(1_024)), Some((10_240, 40_960)));
    // What a loss takes, of which four bytes were requested.
    assert_eq!(largest(|_| Some(4)), Some((5_120, 20_480)));
}

#[test]
fn level_and_slightly_rising_sites_are_no_candidates() {
    assert_eq!(largest(|step| (step < 8).then_some(1_000)), None);
    // A cache that fills up for three quarters of the run, and then is full.
    assert_eq!(largest(|step| (step < 26).then_some(1_000)), None);
    assert_eq!(largest(|_| None), None);
    // Weights of a model look like this while they are converted one by one, since their sizes differ.
    assert_eq!(largest(|step| Some(1_000 + 500 * (step % 4))), None);
}

/// Steps of some layers of two operators each. Each step keeps `kept(step)` bytes at `line`.
fn steps(count: u64, layers: u64, line: &str, kept: impl Fn(u64) -> u64) -> Vec<String> {
    let mut lines = vec![SEGMENT.to_owned()];
    for step in 0..count {
        for _ in 0..layers {
            for line in 1..3 {
                lines.extend([format!("alloc 0x1000000 4000 layer@/m/l.py:{line}"), "free 0x1000000".to_owned()]);
            }
        }
        // Each step has a stack of its own: only the line is the same.
        lines.push(format!("alloc {} {} {line} step{step}@/m/t.py:9", 0x110_0000 + 8_192 * step, kept(step)));
    }
    lines
}

#[test]
fn a_line_leaks_whatever_its_stacks_and_sizes() {
    for (count, rounds) in [(7, 6), (300, 225)] {
        let found = all(&steps(count, 4, "keep@/m/a.py:2", |step| 1_000 + step % 7));
        let [leak] = found.as_slice() else { panic!("{count} steps: {found:?}") };
        assert_eq!((leak.count, leak.rounds), (count as u32, rounds));
        assert_eq!(leak.last_bytes, 1_024 * count);
        // A segment, and the first step's layers.
        assert_eq!(leak.first_seen, 1 + 4 * 2 * 3 + 1);
        assert!(!leak.is_cache);
    }
}

#[test]
fn a_small_rise_is_a_leak_and_no_reason_to_fail() {
    let lines = steps(100, 4, "keep@/m/a.py:2", |_| 1_024);
    let found = |peak_bytes| {
        with_source(&lines, |source| {
            let end = source.replay.positions();
            let of = LeakCandidate::all(source, end, peak_bytes).len();
            (of, LeakCandidate::largest(source, end, peak_bytes).is_some())
        })
    };
    // After a quarter of the run, 75 KiB is kept.
    assert_eq!([3_000_000, 5_000_000, 200_000_000].map(found), [(1, true), (1, false), (0, false)]);
}

/// Steps that each free far more than they keep, in two activations, and keep what `kept` returns for a step at addresses of
/// its own.
fn passing(kept: impl Fn(u64) -> String) -> Vec<LeakCandidate> {
    let mut lines = vec![SEGMENT.to_owned()];
    for step in 0..60 {
        for line in 1..3 {
            lines.extend([format!("alloc 0x1000000 200000 layer@/m/l.py:{line}"), "free 0x1000000".to_owned()]);
        }
        lines.extend(kept(step).lines().map(str::to_owned));
    }
    all(&lines)
}

fn address(number: u64) -> u64 {
    0x110_0000 + 8_192 * number
}

#[test]
fn rounds_that_free_far_more_than_stays_are_steps() {
    let keep = |step: u64, line: &str| format!("alloc {} {} {line}", address(step), 512 * (1 + step % 9));
    let lines = |found: Vec<LeakCandidate>| found.iter().filter(|leak| leak.is_leak()).count();
    assert_eq!(lines(passing(|step| keep(step, "keep@/m/a.py:2"))), 1);
    // Every fifth step, three at a time.
    let evaluated = |step: u64| (0..3).map(|i| keep(step * 3 + i, "keep@/m/a.py:2\n")).collect::<String>();
    assert_eq!(lines(passing(|step| if step % 5 == 4 { evaluated(step) } else { String::new() })), 1);
    // From the middle of the run on.
    let late =
        |from: u64| lines(passing(|step| if step >= from { keep(step, "keep@/m/a.py:2") } else { String::new() }));
    assert_eq!([30, 55].map(late), [1, 0]);
    // A module that is made with each request.
    let module = "empty@/m/a.py:2 __init__@/x/torch/nn/modules/linear.py:9";
    assert_eq!(lines(passing(|step| keep(step, module))), 0);
}

#[test]
fn what_was_freed_at_that_age_before_is_no_leak() {
    // Losses of an epoch of sixteen steps, which go with it. The run ends within the fourth.
    let epoch = |step: u64| {
        let freed: String = match step % 16 {
            0 if step > 0 => (step - 16..step).map(|old| format!("free {}\n", address(old))).collect(),
            _ => String::new(),
        };
        format!("{freed}alloc {} 512 keep@/m/a.py:2", address(step))
    };
    assert_eq!(passing(epoch), []);
}

#[test]
fn what_is_put_together_in_each_round_is_read_unless_the_program_trains() {
    let read = |step: u64| {
        let keep = format!("alloc {} 512 keep@/m/a.py:2", address(step));
        format!("{keep}\nalloc 0x1080000 {} cat@/m/a.py:3\nfree 0x1080000", 512 * (step + 1))
    };
    let found = |more: &str| passing(|step| format!("{}\n{more}", read(step))).first().map(LeakCandidate::is_leak);
    assert_eq!(found(""), Some(false));
    assert_eq!(found("alloc 0x1090000 512 step@/x/torch/optim/sgd.py:1\nfree 0x1090000"), Some(true));
}

#[test]
fn a_tensor_that_is_replaced_by_a_larger_one_in_each_step_is_a_leak() {
    let optimizer = "alloc 0x1090000 512 step@/x/torch/optim/sgd.py:1\nfree 0x1090000\n";
    let queue = |size: fn(u64) -> u64, layers: u64| {
        let mut lines = vec![SEGMENT.to_owned()];
        let address = |step: u64| if step.is_multiple_of(2) { 0x110_0000 } else { 0x120_0000 };
        for step in 0..60_u64 {
            for layer in 0..9 {
                let bytes = if layer < layers { 1_024 * (step + 1) } else { 1_024 };
                lines.push(format!("alloc 0x1000000 {bytes} layer@/m/l.py:{layer}\nfree 0x1000000"));
            }
            lines.push(format!("{optimizer}alloc {} {} queue@/m/a.py:2", address(step), size(step)));
            lines.extend((step > 0).then(|| format!("free {}", address(step - 1))));
        }
        all(&lines).first().map(|leak| (leak.trend, leak.last_bytes, leak.count))
    };
    assert_eq!(queue(|step| 512 * (step + 1), 1), Some((Trend::Replaced, 30_720, 45)));
    // One that is full after half of the run, and one in a program whose sequences grow.
    assert_eq!(queue(|step| 512 * (step.min(30) + 1), 1), None);
    assert_eq!(queue(|step| 512 * (step + 1), 9), None);
}

/// What was freed after the request failed, as by the exception, was taken for workspaces.
#[test]
fn tensors_of_a_workspaces_size_leak_though_they_are_freed_after_the_failure() {
    const MIB: u64 = 1 << 20;
    let mut lines = vec!["segment_alloc 0x1000000 209715200".to_owned()];
    for step in 0..60_u64 {
        for line in 1..3 {
            lines.extend([format!("alloc 0x1000000 20000000 layer@/m/l.py:{line}"), "free 0x1000000".to_owned()]);
            lines.extend([format!("alloc 0x1000000 20000000 layer@/m/l.py:{line}"), "free 0x1000000".to_owned()]);
        }
        lines.push(format!("alloc {} {MIB} keep@/m/a.py:2", 0x300_0000 + MIB * step));
    }
    let end = |lines: &[String]| with_source(lines, |source| source.replay.positions());
    let failed = end(&lines);
    lines.extend((0..60).map(|step| format!("free {}", 0x300_0000 + MIB * step)));
    let found = with_source(&lines, |source| LeakCandidate::all(source, failed, 100 * MIB).len());
    assert_eq!(found, 1);
}

#[test]
fn state_that_an_optimizer_makes_again_is_a_leak() {
    let state = "zeros_like@/m/a.py:2 _init_group@/x/torch/optim/adam.py:9";
    let found = |weights: u64| {
        let weights: String = (0..weights).map(|i| format!("alloc {} 2048 w@/m/a.py:1\n", address(200 + i))).collect();
        let first = |step: u64| if step == 0 { weights.clone() } else { String::new() };
        passing(|step| format!("{}alloc {} 2048 {state}", first(step), address(step))).len()
    };
    assert_eq!([1, 30].map(found), [1, 0]);
}

#[test]
fn one_pass_that_keeps_something_of_each_layer_is_no_leak() {
    // Each layer runs each of its lines once or twice, whatever it keeps.
    assert_eq!(all(&steps(22, 1, "keep@/m/a.py:2", |_| 1_000)), []);
    assert_eq!(all(&steps(60, 2, "keep@/m/a.py:2", |layer| 1_000 + layer % 3)), []);
    // The inputs of checkpointed segments.
    assert_eq!(all(&steps(60, 4, "keep@/m/a.py:2 forward@/x/torch/utils/checkpoint.py:9", |_| 1_000)), []);
    // Gradients, which are kept by functions of C++.
    assert_eq!(all(&steps(60, 4, "MmBackward0::apply@Functions.cpp:2", |_| 1_000)), []);
}

#[test]
fn what_stays_on_purpose_is_no_leak() {
    let found = |line: &str| all(&steps(100, 4, line, |_| 1_000)).first().map(|candidate| candidate.is_cache);
    assert_eq!(found("keep@/m/a.py:2"), Some(false));
    assert_eq!(found("update@/m/kv_cache.py:52"), Some(true));
    assert_eq!(found("zeros_like@/x/torch/_refs/__init__.py:5 step@/x/torch/optim/adam.py:9"), None);
    assert_eq!(
        found("to@/m/a.py:2 convert@/x/torch/nn/modules/module.py:1 _apply@/x/torch/nn/modules/module.py:2"),
        None
    );
}

#[test]
fn what_is_replaced_all_along_is_no_leak() {
    // A buffer of twelve tensors, in which every new one replaces the one of twelve steps before.
    let mut lines = vec![SEGMENT.to_owned()];
    for step in 0..100_u64 {
        lines.extend(["alloc 0x1000000 4000 layer@/m/a.py:1".to_owned(), "free 0x1000000".to_owned()]);
        lines.extend(["alloc 0x1000000 4000 layer@/m/a.py:1".to_owned(), "free 0x1000000".to_owned()]);
        let address = 0x110_0000 + 8_192 * (step % 12);
        if step >= 12 {
            lines.push(format!("free {address}"));
        }
        lines.push(format!("alloc {address} 3000 keep@/m/a.py:2"));
    }
    assert_eq!(all(&lines), []);
}

#[test]
fn setting_up_is_no_leak() {
    // Weights are allocated one after the other; every fourth needs a temporary tensor.
    let mut lines = vec![SEGMENT.to_owned()];
    for weight in 0..100_u64 {
        if weight % 4 == 0 {
            lines.extend(["alloc 0x1000000 2000 cast@/m/a.py:1".to_owned(), "free 0x1000000".to_owned()]);
        }
        lines.push(format!("alloc {} 2000 load@/m/a.py:2", 0x110_0000 + 8_192 * weight));
    }
    assert_eq!(all(&lines), []);
    assert_eq!(all(&[]), []);
}
