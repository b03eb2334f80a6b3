use query::whatif::{Bounds, SelfCheck};

use super::*;

fn opened(conf: &str) -> WhatIfStep {
    let recorded = RunConditions { conf: conf.to_owned(), torch: "2.11".to_owned(), ..RunConditions::default() };
    let check = SelfCheck { requests: 9, equal: 9, ..SelfCheck::default() };
    let releases = vec!["2.11".to_owned()];
    let opened =
        Opened { check, recorded, capacity: None, releases, events: 20, bounds: Bounds::default(), at_start: 0 };
    heard(FromWhatIf::Opened(Box::new(opened)))
}

fn heard(message: FromWhatIf) -> WhatIfStep {
    WhatIfStep::Heard(Box::new(message))
}

fn after(steps: impl IntoIterator<Item = WhatIfStep>) -> WhatIf {
    let mut whatif = WhatIf::default();
    steps.into_iter().for_each(|step| whatif.apply(step));
    whatif
}

fn outcome(peak_reserved: u64) -> Outcome {
    Outcome { peak_reserved, ..Outcome::default() }
}

#[test]
fn the_recording_is_the_first_run_and_the_first_draft() {
    let whatif = after([WhatIfStep::Opening(1), opened("a:1"), heard(FromWhatIf::Ran(RECORDED, Ok(outcome(7))))]);
    assert_eq!((whatif.device, whatif.draft.conf.as_str(), whatif.recorded()), (1, "a:1", Some(&outcome(7))));
}

#[test]
fn runs_are_known_step_by_step_and_a_refused_one_goes_with_its_reason() {
    let added = || WhatIfStep::Added(Box::default());
    let smallest = heard(FromWhatIf::Smallest(1, Ok(5)));
    let refused = heard(FromWhatIf::Ran(2, Err("No.".to_owned())));
    let whatif = after([opened(""), added(), added(), smallest, refused, heard(FromWhatIf::Ran(1, Ok(outcome(3))))]);
    let ids: Vec<u32> = whatif.runs.iter().map(|run| run.id).collect();
    assert_eq!((ids, whatif.refused.as_deref()), (vec![0, 1], Some("No.")));
    assert_eq!((&whatif.runs[1].outcome, &whatif.runs[1].smallest), (&Some(outcome(3)), &Some(Ok(5))));
    assert_eq!(after([opened(""), added(), WhatIfStep::Removed(1), added()]).runs[1].id, 2);
}

#[test]
fn what_a_person_wrote_outlives_a_device_that_is_read_again() {
    let draft = RunConditions { conf: "b:2".to_owned(), ..RunConditions::default() };
    let draft = || WhatIfStep::Draft(Box::new(draft.clone()));
    let whatif = after([draft(), WhatIfStep::TuneWanted, WhatIfStep::Opening(2), opened("a:1")]);
    assert_eq!((whatif.draft.conf.as_str(), whatif.wants_tune, whatif.device), ("b:2", true, 2));
}

#[test]
fn a_verdict_has_the_remedies_that_were_checked() {
    let remedies = |text: &str| vec![Remedy::advice(text)];
    let verdict = |position| Verdict { position: Some(position), remedies: remedies("Try."), ..Verdict::default() };
    let wanted = WhatIfStep::ProofWanted(0, Box::new(verdict(7)));
    let known = after([wanted, WhatIfStep::Opening(0), opened("")]);
    assert_eq!((known.wants_proof.clone(), known.is_untouched()), (Some((0, Box::new(verdict(7)))), true));
    assert_eq!(known.remedies(&verdict(7)), remedies("Try."));
    let other = [WhatIfStep::ProofWanted(1, Box::new(verdict(7))), WhatIfStep::Opening(0)];
    assert_eq!(after(other).wants_proof, None, "of another device");
    let proven = after([opened(""), heard(FromWhatIf::Proven(7, remedies("Checked.")))]);
    assert_eq!(proven.remedies(&verdict(7)), remedies("Checked."));
    assert_eq!(proven.remedies(&verdict(8)), remedies("Try."), "another failure");
    // Nothing waits for an answer that never comes.
    let failed = after([opened(""), heard(FromWhatIf::Failed("No.".to_owned()))]);
    assert_eq!([known, proven, failed].map(|whatif| whatif.is_checking()), [true, false, false]);
    assert!(!after([opened(""), WhatIfStep::Added(Box::default())]).is_untouched());
}

#[test]
fn a_pasted_line_is_taken_for_its_settings() {
    for (pasted, want) in [
        ("PYTORCH_CUDA_ALLOC_CONF=a:1,b:2", "a:1,b:2"),
        ("export PYTORCH_CUDA_ALLOC_CONF=\"a:1\"", "a:1"),
        ("PYTORCH_ALLOC_CONF='a:1'", "a:1"),
        ("a:1, ", "a:1, "),
        ("\"a:1\"", "a:1"),
    ] {
        assert_eq!(bare(pasted), want);
    }
}
