//! Steps of traces that are written as text.

use super::*;
use replay::Replay;
use replay::index::Index;
use trace::{Annotation, Snapshot, Stage};

const OPTIMIZER: &str = "step@/v/site-packages/torch/optim/adam.py:9";
const ZERO: &str = "zero_grad@/v/site-packages/torch/optim/optimizer.py:9";

/// Returns the steps of a snapshot: how they were found, and number, start and end of each, with `?` if it is not
/// whole.
fn found(mut snapshot: Snapshot) -> Option<(StepSource, Vec<String>)> {
    let trace = snapshot.devices.remove(0);
    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
    let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
    let steps = Steps::of(input, &snapshot.symbols, &StackTraits::build(&snapshot.symbols))?;
    for pair in steps.steps.windows(2) {
        assert!(pair[0].to <= pair[1].from, "{pair:?} overlap");
    }
    for step in &steps.steps {
        assert_eq!(steps.at(step.from), Some(step));
        assert_eq!(steps.numbered(step.number), Some(step));
    }
    let text = |step: &TrainingStep| {
        format!("{}:{}-{}{}", step.number, step.from, step.to, if step.is_whole { "" } else { "?" })
    };
    Some((steps.source, steps.steps.iter().map(text).collect()))
}

/// A job of `steps` steps. Each has an input, an activation in each of three equal layers, and the lines of `rest` at
/// its end. The set-up has two allocations after the segment.
fn job(steps: u64, size: impl Fn(u64) -> u64, rest: &str) -> Snapshot {
    let mut lines = vec![
        "segment_alloc 0x1000000 209715200".to_owned(),
        "alloc 0x8000000 4096 convert@/v/site-packages/torch/nn/modules/module.py:1 main@t.py:1".to_owned(),
        "alloc 0x8001000 4096 convert@/v/site-packages/torch/nn/modules/module.py:1 main@t.py:1".to_owned(),
    ];
    for step in 0..steps {
        let size = size(step);
        lines.push(format!("alloc 0x1000000 {size} main@t.py:4"));
        for layer in 1..=3 {
            lines.push(format!("alloc {} {size} forward@m.py:7 main@t.py:5", 0x100_0000 + layer * 0x10_0000));
        }
        lines.push("alloc 0x2000000 2048".to_owned());
        for layer in 0..=3 {
            lines.push(format!("free {}", 0x100_0000 + layer * 0x10_0000));
        }
        lines.push("free 0x2000000".to_owned());
        lines.extend(rest.lines().map(str::to_owned));
    }
    trace::testing::snapshot(&lines.join("\n"))
}

#[test]
fn each_call_of_the_optimizer_ends_a_step() {
    let rest = format!("alloc 0x3000000 512 {OPTIMIZER} main@t.py:8\nfree 0x3000000");
    let (source, steps) = found(job(3, |_| 1_000, &rest)).unwrap();
    // The optimizer's allocation is the last event of a step; its two frees belong to the next one. After the last call
    // nothing is allocated, so there is no fourth step.
    assert_eq!((source, steps), (StepSource::Optimizer, ["1:3-19", "2:19-37", "3:37-55"].map(str::to_owned).to_vec()));
}

#[test]
fn the_busier_of_two_optimizers_counts_and_of_equal_ones_the_last() {
    let call = |line: u32| format!("alloc 0x3000000 512 {OPTIMIZER} main@t.py:{line}\nfree 0x3000000");
    let between = "alloc 0x4000000 700 main@t.py:8\nfree 0x4000000";
    let rest = format!("{}\n{between}\n{}", call(8), call(9));
    let (source, steps) = found(job(4, |_| 1_000, &rest)).unwrap();
    assert_eq!(source, StepSource::Optimizer);
    // Four steps of 15 + 9 events, and the first begins after the set-up.
    assert_eq!(steps, ["1:3-25", "2:25-49", "3:49-73", "4:73-97"]);
}

#[test]
fn zero_grad_ends_a_step_where_the_optimizer_allocates_nothing() {
    let rest = format!("alloc 0x3000000 512 {ZERO} main@t.py:8\nfree 0x3000000");
    assert_eq!(found(job(3, |_| 1_000, &rest)).unwrap().0, StepSource::ZeroGrad);
}

#[test]
fn a_pattern_that_repeats_has_steps() {
    // Without an optimizer, equal sizes at equal call sites repeat. A step begins with its input.
    let (source, steps) = found(job(6, |_| 1_000, "")).unwrap();
    assert_eq!(source, StepSource::Pattern);
    assert_eq!(steps, ["1:3-18", "2:18-33", "3:33-48", "4:48-63", "5:63-78", "6:78-93"]);
}

#[test]
fn call_sites_repeat_even_if_sizes_do_not() {
    let (source, steps) = found(job(12, |step| 1_000 + 512 * step, "")).unwrap();
    assert_eq!((source, steps.len()), (StepSource::Pattern, 12));
}

/// A server's requests, each of another length: two tensors for a moment, and one that stays for some requests.
fn served(requests: u64) -> Snapshot {
    let mut lines = "segment_alloc 0x1000000 209715200\nalloc 0x1000000 4096 load@s.py:1\n".to_owned();
    let mut seed = 7_u64;
    for request in 0..requests {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = 1 + (seed >> 33) % 400;
        let kept = |request: u64| 0x300_0000 + (request % 9) * 0x10_0000;
        lines += &format!(
            "alloc 0x1100000 {} prefill@s.py:4\nalloc 0x2000000 {} prefill@s.py:5\n",
            length * 512,
            length * 1_024
        );
        lines += "free 0x1100000\nfree 0x2000000\n";
        if request >= 9 {
            lines += &format!("free {}\n", kept(request));
        }
        lines += &format!("alloc {} {} keep@s.py:7\n", kept(request), length * 512);
    }
    trace::testing::snapshot(&lines)
}

#[test]
fn sizes_that_repeat_by_chance_are_no_steps() {
    // Among so many sizes, some come at about even distances. The call sites identify each request.
    let (source, steps) = found(served(600)).expect("requests");
    assert_eq!((source, steps.len()), (StepSource::Pattern, 600));
}

#[test]
fn a_loop_that_fills_memory_has_no_steps() {
    let fill: String = (0..60_u64)
        .map(|i| {
            let at = |part: u64| 0x1000_0000 + (2 * i + part) * 0x10_0000;
            format!("alloc {} 900000 scratch@f.py:6\nalloc {} 500000 keep@f.py:5\n", at(0), at(1))
        })
        .collect();
    let freed: String = (0..60_u64).map(|i| format!("free {}\n", 0x1000_0000 + 2 * i * 0x10_0000)).collect();
    assert_eq!(found(trace::testing::snapshot(&format!("segment_alloc 0x10000000 209715200\n{fill}{freed}"))), None);
}

#[test]
fn what_does_not_repeat_has_no_steps() {
    let cases = [
        String::new(),
        "segment_alloc 0x1000000 20971520\nalloc 0x1000000 1000 f@m.py:1\nfree 0x1000000".to_owned(),
        // A model that is loaded: one call site, one size, and nothing between.
        (0..100).map(|i| format!("alloc {} 4096 convert@m.py:1\n", 0x100_0000 + i * 4_096)).collect(),
        // Call sites that come once.
        (0..100).map(|i| format!("alloc {} {} f@m.py:{i}\n", 0x100_0000 + i * 4_096, 100 + i)).collect(),
        // One kind, further apart each time.
        (0..60)
            .map(|i| {
                let line = if [0, 1, 3, 7, 15, 31].contains(&i) { 1_000 } else { i };
                format!("alloc {} 512 f@m.py:{line}\n", 0x100_0000 + i * 4_096)
            })
            .collect(),
    ];
    for lines in cases {
        let lines = format!("segment_alloc 0x9000000 2097152\n{lines}");
        assert_eq!(found(trace::testing::snapshot(&lines)), None, "{lines}");
    }
}

/// The job with spans from event to event, in the order given.
fn annotated(names: &[(&str, u32, u32)]) -> Snapshot {
    let mut snapshot = job(6, |_| 1_000, "");
    let mut annotations = Vec::new();
    for &(name, from, to) in names {
        let name = snapshot.symbols.intern(name.as_bytes());
        for (stage, at) in [(Stage::Start, from), (Stage::End, to)] {
            // An event comes 10 µs after the one before.
            let time_us = trace::testing::START_US + 10 * i64::from(at) - 5;
            annotations.push(Annotation { name, stage, time_us });
        }
    }
    snapshot.devices[0].annotations = annotations;
    snapshot
}

#[test]
fn numbered_annotations_are_steps() {
    let of = |names: &[(&str, u32, u32)]| found(annotated(names)).unwrap();
    let (source, steps) = of(&[
        ("step 7", 3, 18),
        ("forward", 4, 10),
        ("step 8", 20, 30),
        ("forward", 21, 25),
        ("step 9", 33, 48),
        // Nothing was recorded in this one.
        ("step 10", 900, 910),
    ]);
    assert_eq!(source, StepSource::Annotations);
    assert_eq!(steps, ["7:3-18", "8:20-30", "9:33-48"]);
    // The profiler's own come first.
    let profiler = [("step 1", 3, 18), ("step 2", 18, 33), ("ProfilerStep#1", 3, 33), ("ProfilerStep#2", 33, 63)];
    assert_eq!(of(&profiler).1, ["1:3-33", "2:33-63"]);
    // The optimizer's spans end the steps.
    let (source, steps) = of(&[("Optimizer.step#SGD.step", 16, 18), ("Optimizer.step#SGD.step", 31, 33)]);
    assert_eq!((source, steps), (StepSource::Optimizer, ["1:3-18", "2:18-33", "3:33-93?"].map(str::to_owned).to_vec()));
}

#[test]
fn the_numbers_of_layers_are_no_steps() {
    let layers = [("layer 0", 3, 5), ("layer 1", 5, 8), ("layer 0", 18, 20), ("layer 1", 20, 24)];
    assert_eq!(found(annotated(&layers)).unwrap().0, StepSource::Pattern);
}

#[test]
fn a_step_in_which_the_last_request_failed_is_not_whole() {
    let is_whole = |end: &str| {
        let rest = format!("alloc 0x3000000 512 {OPTIMIZER} main@t.py:8\nfree 0x3000000");
        let mut snapshot = job(2, |_| 1_000, &rest);
        let last = trace::testing::snapshot(end).devices.remove(0);
        for event in (0..last.events.len()).filter_map(|i| last.events.get(i)) {
            snapshot.devices[0].events.push(trace::Event { stack: Default::default(), ..event });
        }
        let names: Vec<String> = (1..=2).map(|step| format!("step {step}")).collect();
        for (name, (from, to)) in names.iter().zip([(3, 20), (20, 90)]) {
            let name = snapshot.symbols.intern(name.as_bytes());
            for (stage, at) in [(Stage::Start, from), (Stage::End, to)] {
                let time_us = trace::testing::START_US + 10 * at - 5;
                snapshot.devices[0].annotations.push(Annotation { name, stage, time_us });
            }
        }
        let (_, steps) = found(snapshot).expect("steps");
        !steps[1].ends_with('?')
    };
    assert!(is_whole(""));
    assert!(!is_whole("oom 0x0 5000"));
    // The program went on.
    assert!(is_whole("oom 0x0 5000\nalloc 0x5000000 512"));
}
