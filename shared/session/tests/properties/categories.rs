//! Categories and steps of real jobs: each tensor's role at the peak was recorded by the job itself.
//!
//! `tests/differential/categories.py --fixtures` makes the fixtures.

use std::fs;
use std::path::Path;

use analysis::category::{Categories, Category};
use analysis::stack_traits::StackTraits;
use analysis::steps::{StepSource, Steps};
use analysis::usage::Usage;
use format::import::Importer;
use query::own_rules::UserRules;
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::limits::ImportLimits;

/// The part of the bytes at the peak that must be right, in percent.
const RIGHT_PERCENT: u64 = 95;

/// Checks a job's steps, and its categories at the peak.
fn check(name: &str, source: StepSource, whole_steps: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/categories");
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(&fs::read(folder.join(format!("{name}.pickle.gz"))).unwrap()).unwrap();
    let mut snapshot = importer.finish().unwrap().snapshot;
    let roles = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let roles: Vec<(u64, String)> = serde_json::from_str(&roles).unwrap();
    let trace = snapshot.devices.remove(0);
    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
    let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
    let traits = StackTraits::build(&snapshot.symbols);
    let steps = Steps::of(input, &snapshot.symbols, &traits);
    let found = steps.as_ref().map(|steps| (steps.source, steps.steps.iter().filter(|step| step.is_whole).count()));
    assert_eq!(found, Some((source, whole_steps)), "{name}");
    let told = Categories::of(input, &snapshot.symbols, &traits, steps.as_ref(), &UserRules::default());
    let live = replay.active_at(Usage::build(input).peak_position);
    assert_eq!(live.len(), roles.len(), "{name}");
    let (mut right, mut all) = (0, 0);
    let mut wrong = Vec::new();
    for (id, (address, role)) in live.into_iter().zip(roles) {
        let allocation = replay.allocations.get(id).unwrap();
        assert_eq!(allocation.address.0, address, "{name}");
        all += allocation.requested;
        if told.get(id) != Category::Unknown && told.get(id).code() == role {
            right += allocation.requested;
        } else {
            wrong.push(format!("{} bytes: {role}, told {:?}", allocation.requested, told.get(id)));
        }
    }
    assert!(right * 100 >= all * RIGHT_PERCENT, "{name}: {right} of {all} bytes\n{}", wrong.join("\n"));
}

#[test]
fn a_perceptron_with_momentum() {
    check("mlp", StepSource::Optimizer, 4);
}

#[test]
fn convolutions_with_autocast_and_a_scaler() {
    check("cnn", StepSource::Optimizer, 4);
}

#[test]
fn two_optimizers() {
    check("gan", StepSource::Optimizer, 4);
}

#[test]
fn a_recording_that_begins_in_the_third_step() {
    check("gpt_late", StepSource::Optimizer, 4);
}
