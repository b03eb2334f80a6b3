use format::import::Importer;
use protocol::message::{decode, encode};
use query::diagnosis::Cause;
use query::finding::Remedy;
use query::{Axis, Window};
use session::Session;
use trace::limits::ImportLimits;
use whatif::RunTrace;
use whatif::tune::Goal;

use super::*;

/// Opens a file's first device as the worker does: its requests come as bytes.
fn open(name: &str) -> (Desk, Opened) {
    let file = format!("{}/../../tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(&std::fs::read(file).unwrap()).unwrap();
    let session = Session::build(importer.finish().unwrap(), &mut |_| {});
    let bytes = encode(&session.requests(0).unwrap());
    Desk::open(decode(&bytes).unwrap()).unwrap()
}

/// Does all work that is left.
fn work(desk: &mut Desk) -> Vec<FromWhatIf> {
    std::iter::from_fn(|| desk.work()).flatten().collect()
}

fn conditions(conf: &str) -> RunConditions {
    RunConditions { conf: conf.to_owned(), ..RunConditions::default() }
}

#[test]
fn the_recording_runs_first_and_then_what_is_wanted() {
    let (mut desk, opened) = open("torch_2_15.pickle");
    assert!(opened.check.requests > 0 && opened.bounds.requested > 0, "{opened:?}");
    assert!(desk.receive(ToWhatIf::Run { id: 7, conditions: conditions("expandable_segments:True") }).is_empty());
    let said = work(&mut desk);
    let [FromWhatIf::Ran(0, Ok(recorded)), FromWhatIf::Ran(7, Ok(_)), FromWhatIf::Smallest(0, Ok(least)), rest] =
        &said[..]
    else {
        panic!("{said:?}")
    };
    assert!(matches!(rest, FromWhatIf::Smallest(7, Ok(_))));
    assert!(*least >= opened.bounds.exact_fit && recorded.peak_reserved > 0);
    let asked = CurvesAsked { axis: Axis::Event, window: Window { start: 0.0, end: 50.0 }, columns: 10 };
    let answered = desk.receive(ToWhatIf::Curves(asked));
    let [FromWhatIf::Curves(_, curves)] = &answered[..] else { panic!("{answered:?}") };
    assert_eq!(curves.iter().map(|curve| (curve.id, curve.most.len())).collect::<Vec<_>>(), [(0, 10), (7, 10)]);
    assert_eq!(curves[0].most.iter().max(), Some(&recorded.peak_reserved));
    desk.receive(ToWhatIf::Forget(7));
    assert!(work(&mut desk).is_empty() && desk.runs.len() == 1);
}

#[test]
fn advice_is_checked_before_anything_long() {
    let (mut desk, _) = open("torch_2_15.pickle");
    let setting = Remedy::advice("Grow.").with_copy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    let remedies = vec![setting, Remedy::advice("Free more.")];
    let verdict = Verdict { cause: Cause::Full, position: Some(5), remedies: remedies.clone(), ..Verdict::default() };
    assert!(desk.receive(ToWhatIf::Prove(Box::new(verdict))).is_empty());
    let said = work(&mut desk);
    let [FromWhatIf::Ran(0, Ok(_)), FromWhatIf::Proven(5, kept), FromWhatIf::Smallest(0, Ok(_))] = &said[..] else {
        panic!("{said:?}")
    };
    // This trace was made up, and does not come out as recorded: nothing would be proven.
    assert_eq!(kept, &remedies);
}

#[test]
fn a_run_is_handed_out_event_by_event() {
    let (mut desk, _) = open("torch_2_15.pickle");
    desk.receive(ToWhatIf::Run { id: 3, conditions: conditions("expandable_segments:True") });
    work(&mut desk);
    assert_eq!(desk.trace(9), None);
    assert!(RunTrace::from_bytes(&desk.trace(3).unwrap()).is_some());
    assert_ne!(desk.trace(0), desk.trace(3));
}

#[test]
fn a_search_is_of_the_device_that_is_named() {
    let (mut desk, _) = open("torch_2_15.pickle");
    for (capacity, fraction, others, fits) in [
        ("1GiB", "", "", true),
        ("T4-16GB", "", "", true),
        ("T4-16GB", "0.005", "", false),
        ("T4-16GB", "", "14.9GiB", false),
    ] {
        let [capacity, fraction, others] = [capacity, fraction, others].map(str::to_owned);
        desk.receive(ToWhatIf::Tune {
            conditions: RunConditions { capacity, fraction, others, ..RunConditions::default() },
            goal: Goal::Fit,
        });
        let said = work(&mut desk);
        let found =
            said.iter().find_map(|said| if let FromWhatIf::Tuned(Ok(found)) = said { Some(found) } else { None });
        let found = found.unwrap();
        assert_eq!(found.tuning.groups.iter().any(|group| !group.outcome.fails()), fits, "{said:?}");
    }
}

#[test]
fn settings_that_are_refused_leave_everything_as_it_was() {
    let (mut desk, _) = open("torch_2_15.pickle");
    let said = desk.receive(ToWhatIf::Run { id: 1, conditions: conditions("nonsense") });
    assert!(matches!(&said[..], [FromWhatIf::Ran(1, Err(sentence))] if sentence.contains("nonsense")), "{said:?}");
    assert_eq!(work(&mut desk).len(), 2);
}

#[test]
fn a_search_ends_by_itself_or_when_it_is_cancelled() {
    let (mut desk, _) = open("torch_2_15.pickle");
    work(&mut desk);
    let tune = || ToWhatIf::Tune { conditions: conditions("is not looked at"), goal: Goal::Reserved };
    assert!(desk.receive(tune()).is_empty());
    let said = work(&mut desk);
    let Some(FromWhatIf::Tuned(Ok(whole))) = said.last() else { panic!("{said:?}") };
    assert!(whole.is_complete && whole.tuning.tried > 20 && !whole.tuning.groups.is_empty());

    desk.receive(tune());
    assert!(matches!(desk.work().as_deref(), Some([FromWhatIf::Tuning { .. }])));
    desk.work();
    let ended = desk.receive(ToWhatIf::Cancel);
    assert!(
        matches!(&ended[..], [FromWhatIf::Tuned(Ok(part))] if !part.is_complete && part.tuning.tried == 1),
        "{ended:?}"
    );
    assert!(work(&mut desk).is_empty() && desk.receive(ToWhatIf::Cancel).is_empty());
}
