//! Plans of small jobs, for which the right answer is known to the byte.

use std::convert::Infallible;
use std::fmt::Write as _;

use allocator::{AllocatorConfig, Profile};
use proptest::prelude::*;
use replay::{Replay, Replayed};
use trace::Snapshot;
use whatif::{Edit, EditAct, Requests, Terms};

use super::*;

const MIB: u64 = 1 << 20;
const EMBED: &str = "forward@/m/model.py:10 train@/m/train.py:3";
const BACKWARD: &str = "torch::autograd::Node::operator()@??";
const OPTIMIZER: &str = "step@/x/site-packages/torch/optim/adam.py:9 train@/m/train.py:5";

/// A job, written event by event. Each allocation has memory of its own.
#[derive(Default)]
struct Script {
    lines: String,
    made: u64,
}

impl Script {
    /// Asks for so many MiB, and returns the address.
    fn alloc(&mut self, mib: u64, stack: &str) -> u64 {
        self.made += 1;
        let at = self.made << 32;
        let _ = write!(self.lines, "segment_alloc {at:#x} {0}\nalloc {at:#x} {0} {stack}\n", mib * MIB);
        at
    }

    fn free(&mut self, at: u64) {
        let _ = writeln!(self.lines, "free {at:#x}");
    }

    fn read(&self) -> Job {
        let mut snapshot = trace::testing::snapshot(&self.lines);
        let replay = Replay::build(&snapshot.devices[0], &mut snapshot.tags, &snapshot.settings);
        Job { snapshot, replay }
    }
}

struct Job {
    snapshot: Snapshot,
    replay: Replay,
}

impl Job {
    fn input(&self) -> Replayed<'_> {
        Replayed { trace: &self.snapshot.devices[0], tags: &self.snapshot.tags, replay: &self.replay }
    }

    fn survey(&self) -> Survey<'_> {
        Survey::of(self.input(), &self.snapshot.symbols)
    }

    /// What the allocator answers to the job with some edits.
    fn trial(&self, edits: &[Edit], goal: Goal) -> Trial {
        let Snapshot { symbols, tags, settings, devices, .. } = &self.snapshot;
        let requests = Requests::of(&devices[0], (symbols, tags), &self.replay, settings).edited(edits);
        let terms = Terms::ample(Profile::ALL[11], AllocatorConfig::default());
        let ample = requests.run(&terms).unwrap();
        let fits = match goal {
            Goal::Save(_) => false,
            Goal::Fit(room) => !requests.run(&terms.on(room)).unwrap().fails(),
        };
        Trial {
            reserved: ample.peak_reserved,
            allocated: ample.peak_allocated,
            fits,
            ends_early: ample.stopped_why.is_some(),
        }
    }

    fn plan(&self, goal: Goal) -> Plan {
        let mut try_all =
            |lists: Vec<Vec<Edit>>| Ok::<_, Infallible>(lists.iter().map(|edits| self.trial(edits, goal)).collect());
        plan(&self.survey(), goal, &mut try_all).unwrap()
    }

    /// The MiB in live allocations at the peak with one candidate.
    fn with(&self, kind: Kind, calls: Option<u32>) -> u64 {
        let survey = self.survey();
        let found = survey.candidates().into_iter().find(|candidate| candidate.kind == kind).expect("a candidate");
        let candidate = found.with_calls(calls.unwrap_or(found.calls));
        self.trial(&survey.edits(candidate), Goal::Save(1)).allocated / MIB
    }
}

/// What a layer keeps before its result, what it needs in between, and its result, in MiB.
#[derive(Clone, Copy, Debug)]
struct Layer {
    kept: [u64; 2],
    scratch: u64,
    result: u64,
}

const LAYER: Layer = Layer { kept: [40, 40], scratch: 20, result: 20 };

/// Trains layers that one line calls, for two steps. The optimizer makes its state in the first.
fn train(layers: &[Layer], state: u64) -> Script {
    let mut script = Script::default();
    let at = |line: u64| format!("forward@/m/model.py:{line} forward@/m/model.py:20 train@/m/train.py:3");
    let mut states = Vec::new();
    for _ in 0..2 {
        let embedding = script.alloc(20, EMBED);
        let mut saved = Vec::new();
        for layer in layers {
            let first = script.alloc(layer.kept[0], &at(7));
            let scratch = script.alloc(layer.scratch, &at(8));
            script.free(scratch);
            let second = script.alloc(layer.kept[1], &at(8));
            saved.push((first, second, script.alloc(layer.result, &at(9))));
        }
        let loss = script.alloc(20, "forward@/m/model.py:30 train@/m/train.py:3");
        let mut flowing = Some(script.alloc(20, BACKWARD));
        script.free(loss);
        for (first, second, result) in saved.into_iter().rev() {
            script.free(result);
            let gradient = script.alloc(20, BACKWARD);
            [second, first].into_iter().chain(flowing.replace(gradient)).for_each(|at| script.free(at));
        }
        flowing.into_iter().chain([embedding]).for_each(|at| script.free(at));
        // In pieces, so that cached memory of the first step serves them.
        while states.len() < state as usize / 20 {
            states.push(script.alloc(20, OPTIMIZER));
        }
        let root = script.alloc(20, OPTIMIZER);
        script.free(root);
    }
    script
}

#[test]
fn what_a_measure_leaves_is_known_to_the_byte() {
    let job = train(&[LAYER; 4], 100).read();
    let before = job.trial(&[], Goal::Save(1));
    // The state of the first step, the embedding, four layers of 100 MiB, the loss and its gradient.
    assert_eq!(before.allocated, 560 * MIB);
    // State, embedding, the results of three layers and a gradient; what the last layer keeps, and its result as it is recomputed.
    assert_eq!(job.with(Kind::Checkpoint, None), 100 + 20 + 60 + 20 + 80 + 20);
    // Of the first two layers, only their results; the others whole, with the loss and its gradient.
    assert_eq!(job.with(Kind::Checkpoint, Some(2)), 100 + 20 + 40 + 200 + 40);
    // Only what the last layer keeps is back, and the result that it was called with; a gradient above, and one below.
    assert_eq!(job.with(Kind::OffloadActivations, None), 100 + 20 + 80 + 20 + 40);
    assert_eq!(job.with(Kind::OffloadOptimizer, None), 560 - 100);
    assert_eq!(job.survey().missing, []);
}

/// The backward pass doesn't need the result of these layers, but recomputing the next one does.
#[test]
fn what_the_next_call_takes_is_kept_for_it() {
    let mut script = Script::default();
    let at = |line: u64| format!("forward@/m/model.py:{line} forward@/m/model.py:20 train@/m/train.py:3");
    for _ in 0..2 {
        let embedding = script.alloc(20, EMBED);
        let (mut saved, mut result) = (Vec::new(), None);
        for _ in 0..4 {
            saved.push([script.alloc(40, &at(7)), script.alloc(40, &at(8))]);
            result.replace(script.alloc(20, &at(9))).into_iter().for_each(|at| script.free(at));
        }
        let loss = script.alloc(20, "forward@/m/model.py:30 train@/m/train.py:3");
        result.into_iter().for_each(|at| script.free(at));
        let mut flowing = script.alloc(20, BACKWARD);
        script.free(loss);
        for [first, second] in saved.into_iter().rev() {
            let gradient = script.alloc(20, BACKWARD);
            [second, first, std::mem::replace(&mut flowing, gradient)].into_iter().for_each(|at| script.free(at));
        }
        [flowing, embedding].into_iter().for_each(|at| script.free(at));
        let root = script.alloc(20, OPTIMIZER);
        script.free(root);
    }
    let job = script.read();
    assert_eq!(job.trial(&[], Goal::Save(1)).allocated, (20 + 4 * 80 + 40) * MIB);
    // The embedding, the results of three layers, two gradients; what the last layer keeps, and its result.
    assert_eq!(job.with(Kind::Checkpoint, None), 20 + 60 + 40 + 80 + 20);
    // Where the next layer is not checkpointed, it keeps what it needs.
    assert_eq!(job.with(Kind::Checkpoint, Some(1)), 20 + 3 * 80 + 40);
}

#[test]
fn a_plan_takes_no_more_calls_than_it_needs() {
    let job = train(&[LAYER; 4], 0).read();
    let planned = job.plan(Goal::Save(150 * MIB));
    let [measure] = planned.measures.as_slice() else { panic!("{planned:#?}") };
    assert!(planned.is_reached && planned.missing_bytes == 0);
    assert_eq!((measure.kind, measure.calls, measure.of_calls), (Kind::Checkpoint, 2, 4));
    assert_eq!(measure.what, "the first 2 of 4 calls at m/model.py:20");
    assert!(measure.saved_reserved >= 150 * MIB && planned.after.allocated == 300 * MIB, "{planned:#?}");
    // Two layers of four, but the forward pass has an embedding and a loss, too.
    assert!((measure.cost.recomputed_share - 240.0 / 520.0).abs() < 1e-9, "{:?}", measure.cost);
    assert!(
        measure.paste.iter().any(|line| line.contains("use_reentrant=False) if number < 2")),
        "{:?}",
        measure.paste
    );
}

#[test]
fn a_goal_out_of_reach_gets_the_best_plan_and_what_is_missing() {
    let job = train(&[LAYER; 4], 100).read();
    let planned = job.plan(Goal::Save(1 << 40));
    assert!(!planned.is_reached && planned.measures.len() == 2, "{planned:#?}");
    let saved = planned.before.reserved - planned.after.reserved;
    assert_eq!(planned.missing_bytes, (1 << 40) - saved);
    assert_eq!(saved, planned.measures.iter().map(|measure| measure.saved_reserved).sum::<u64>());
    // The plan for less reaches it.
    assert!(job.plan(Goal::Save(saved)).is_reached);
    assert!(job.plan(Goal::Fit(planned.after.reserved)).is_reached);
    // What fits needs no plan.
    let planned = job.plan(Goal::Fit(1 << 40));
    assert!(planned.is_reached && planned.measures.is_empty());
}

#[test]
fn what_lives_on_into_the_next_step_is_freed_with_its_own() {
    let mut script = Script::default();
    let (mut old, mut gradient) = (None, None);
    for _ in 0..3 {
        let input = script.alloc(100, EMBED);
        // The name of the last result is bound to this one.
        let result = script.alloc(60, "forward@/m/model.py:30 train@/m/train.py:3");
        old.replace(result).into_iter().for_each(|at| script.free(at));
        gradient.take().into_iter().for_each(|at| script.free(at));
        gradient = Some(script.alloc(40, BACKWARD));
        script.free(input);
        let root = script.alloc(20, OPTIMIZER);
        script.free(root);
    }
    let job = script.read();
    assert_eq!(job.trial(&[], Goal::Save(1)).allocated, (100 + 60 + 60 + 40) * MIB);
    let survey = job.survey();
    let late: Vec<Candidate> =
        survey.candidates().into_iter().filter(|candidate| candidate.kind == Kind::FreeEarlier).collect();
    let what: Vec<String> = late.iter().map(|candidate| survey.what(*candidate)).collect();
    assert_eq!(
        what,
        ["results of m/model.py:30, at the end of their step", "gradients, right after the optimizer's step"]
    );
    let edits: Vec<Edit> = late.iter().flat_map(|candidate| survey.edits(*candidate)).collect();
    assert_eq!(job.trial(&edits, Goal::Save(1)).allocated, (100 + 60 + 40) * MIB);
    // The gradient's memory would serve neither the input nor the result: only the result's is worth it.
    let planned = job.plan(Goal::Save(1 << 40));
    assert_eq!(planned.measures.iter().map(|measure| measure.saved_reserved / MIB).collect::<Vec<_>>(), [60]);
}

/// The variable that names the logits is bound to others in the next forward pass, so recomputing frees only what the head normed.
#[test]
fn what_the_program_still_names_is_not_kept_for_the_backward_pass() {
    let mut script = Script::default();
    // The recording begins within the backward pass of a step.
    for stack in [BACKWARD, OPTIMIZER] {
        let root = script.alloc(20, stack);
        script.free(root);
    }
    let mut old = None;
    for pass in 0..4 {
        let input = script.alloc(200, EMBED);
        let normed = script.alloc(40, "norm@/m/norm.py:1 forward@/m/model.py:30 train@/m/train.py:3");
        let logits = script.alloc(100, "head@/m/head.py:1 forward@/m/model.py:30 train@/m/train.py:3");
        old.replace(logits).into_iter().for_each(|at| script.free(at));
        let loss = script.alloc(160, "loss@/m/model.py:40 train@/m/train.py:3");
        let gradient = script.alloc(20, BACKWARD);
        [loss, normed, input, gradient].into_iter().for_each(|at| script.free(at));
        // Gradients of two passes are accumulated.
        if pass % 2 == 1 {
            let root = script.alloc(20, OPTIMIZER);
            script.free(root);
        }
    }
    let job = script.read();
    assert_eq!(job.trial(&[], Goal::Save(1)).allocated, (200 + 40 + 100 + 160 + 20) * MIB);
    let survey = job.survey();
    let is_head = |candidate: &Candidate| survey.what(*candidate) == "the call at m/model.py:30";
    let head: Vec<Candidate> = survey.candidates().into_iter().filter(is_head).collect();
    assert_eq!(
        head.iter().map(|candidate| candidate.kind).collect::<Vec<_>>(),
        [Kind::Checkpoint, Kind::OffloadActivations]
    );
    for candidate in head {
        assert_eq!(job.trial(&survey.edits(candidate), Goal::Save(1)).allocated, (200 + 100 + 160 + 20) * MIB);
    }
}

/// The backward pass finds nothing of the third layer but its result.
#[test]
fn a_call_that_keeps_only_its_result_has_a_backward_pass() {
    let mut script = Script::default();
    let at = |line: u64| format!("forward@/m/model.py:{line} forward@/m/model.py:20 train@/m/train.py:3");
    for _ in 0..2 {
        let mut saved = Vec::new();
        for layer in 0..4 {
            let first = script.alloc(40, &at(7));
            let scratch = script.alloc(20, &at(8));
            script.free(scratch);
            let kept = if layer == 2 { [].as_slice() } else { &[first] };
            if kept.is_empty() {
                script.free(first);
            }
            saved.push([kept, &[script.alloc(20, &at(9))]].concat());
        }
        let gradient = script.alloc(20, BACKWARD);
        saved.into_iter().flatten().rev().chain([gradient]).for_each(|at| script.free(at));
        let root = script.alloc(20, OPTIMIZER);
        script.free(root);
    }
    let job = script.read();
    let survey = job.survey();
    assert_eq!(survey.missing, []);
    // What is offloaded is back in the end.
    for candidate in survey.candidates() {
        let edits = survey.edits(candidate);
        let count = |is: fn(&EditAct) -> bool| edits.iter().filter(|edit| is(&edit.act)).count();
        assert_eq!(
            count(|act| matches!(act, EditAct::Free(_))),
            count(|act| matches!(act, EditAct::Again(_))),
            "{}",
            survey.what(candidate)
        );
    }
}

#[test]
fn a_goal_that_is_a_small_part_of_the_memory_is_reached() {
    let mut script = Script::default();
    (0..30).for_each(|_| _ = script.alloc(2048, "build@/m/train.py:1"));
    let mut job = train(&[LAYER; 4], 0);
    job.lines.insert_str(0, &script.lines.replace("0x", "0xff"));
    let planned = job.read().plan(Goal::Save(20 * MIB));
    assert!(planned.is_reached && planned.measures.len() == 1, "{planned:#?}");
}

#[test]
fn results_that_are_offloaded_are_moved() {
    let job = train(&[LAYER; 4], 0).read();
    let survey = job.survey();
    let is_offload = |candidate: &Candidate| candidate.kind == Kind::OffloadActivations;
    let offload = survey.candidates().into_iter().find(is_offload).unwrap();
    let moved = |calls: u32| survey.cost(offload.with_calls(calls)).moved_bytes / MIB;
    // That of the last call is used outside of it.
    assert_eq!([1, 2, 4].map(moved), [80, 180, 380]);
}

/// `checkpoint_sequential` leaves its last segment as it is, and knows no first calls.
#[test]
fn modules_of_a_sequence_are_called_one_by_one() {
    let mut script = train(&[LAYER; 4], 0);
    let line = "forward@/m/model.py:20";
    script.lines = script.lines.replace(line, &format!("forward@/x/torch/nn/modules/container.py:9 {line}"));
    let job = script.read();
    let survey = job.survey();
    let pasted = |kind: Kind, calls: u32| {
        let of_kind = |candidate: &Candidate| candidate.kind == kind;
        survey.paste(survey.candidates().into_iter().find(of_kind).unwrap().with_calls(calls))
    };
    let replaced = "# m/model.py:20: in place of x = layers(x), which is an nn.Sequential";
    assert_eq!(
        pasted(Kind::Checkpoint, 4)[1..],
        [replaced, "for number, layer in enumerate(layers):", "    x = checkpoint(layer, x, use_reentrant=False)",]
    );
    assert_eq!(
        pasted(Kind::OffloadActivations, 1)[1..],
        [
            replaced,
            "for number, layer in enumerate(layers):",
            "    with torch.autograd.graph.save_on_cpu(pin_memory=True) if number < 1 else nullcontext():  # number: of the layer, from 0",
            "        x = layer(x)",
        ]
    );
}

#[test]
fn what_a_recording_lacks_is_said() {
    let missing = |script: &Script| script.read().survey().missing.clone();
    let mut inference = Script::default();
    for _ in 0..3 {
        let at = inference.alloc(20, EMBED);
        inference.free(at);
    }
    assert_eq!(missing(&inference)[0], Missing::Backward);
    let mut bare = Script::default();
    let at = bare.alloc(20, "");
    bare.free(at);
    assert_eq!(missing(&bare), [Missing::Stacks, Missing::Backward, Missing::Steps]);
    let planned = bare.read().plan(Goal::Save(MIB));
    assert!(!planned.is_reached && planned.measures.is_empty() && planned.candidates.is_empty(), "{planned:#?}");
    assert_eq!(Script::default().alloc(1, ""), 1 << 32);
}

/// The bytes in live allocations after some edits, at a position.
fn live(job: &Job, edits: &[Edit], position: u32) -> u64 {
    let allocations = &job.replay.allocations;
    let size = |id: u32| allocations.requested.get(id as usize).unwrap();
    let done = || edits.iter().filter(|edit| edit.position <= position).map(|edit| edit.act);
    let is_gone = |id: u32| {
        let last = done().rfind(|act| matches!(act, EditAct::Free(of) | EditAct::Again(of) if *of == id));
        matches!(last, Some(EditAct::Free(_)))
    };
    let copies = done().fold(0, |sum, act| match act {
        EditAct::Copy(id) => sum + size(id),
        EditAct::FreeCopy(id) => sum - size(id),
        _ => sum,
    });
    job.replay.active_at(position).into_iter().filter(|id| !is_gone(*id)).map(size).sum::<u64>() + copies
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_old_peak_never_gets_higher(
        sizes in proptest::collection::vec((1_u64..60, 1_u64..60, 1_u64..30, 1_u64..30), 2..6),
        state in 0_u64..80,
        same in any::<bool>(),
    ) {
        let layer = |(a, b, scratch, result): (u64, u64, u64, u64)| Layer { kept: [a, b], scratch, result };
        let mut layers: Vec<Layer> = sizes.into_iter().map(layer).collect();
        if same {
            let first = layers[0];
            layers.fill(first);
        }
        let job = train(&layers, state).read();
        let survey = job.survey();
        let before = job.trial(&[], Goal::Save(1));
        let peak = (0..=job.replay.positions()).max_by_key(|position| live(&job, &[], *position)).unwrap();
        for candidate in survey.candidates() {
            for calls in 1..=candidate.calls {
                let mut edits = survey.edits(candidate.with_calls(calls));
                edits.sort_by_key(|edit| edit.position);
                prop_assert!(live(&job, &edits, peak) <= live(&job, &[], peak), "{candidate:?}");
                // All is freed in the end that was freed before.
                let end = job.replay.positions() + 1;
                prop_assert!(live(&job, &edits, end) <= live(&job, &[], end), "{candidate:?}");
                let after = job.trial(&edits, Goal::Save(1));
                // Recomputing needs the result of a call once more.
                prop_assert!(after.allocated <= before.allocated + 60 * MIB, "{candidate:?}");
            }
        }
    }
}
