//! A snapshot that is cut off has the state that its events lead to, not that of a moment that it does not reach.

mod common;

use common::{fixtures, import};
use shared::finding::FindingCode;
use shared::query::{Answer, Query};
use shared::session::Session;

#[test]
fn the_sums_of_a_cut_file_are_those_of_the_whole_one() {
    let mut compared = 0;
    for fixture in fixtures().iter().filter(|fixture| fixture.name.ends_with(".pickle")) {
        let bytes = &fixture.bytes;
        let Ok(imported) = import(bytes) else { continue };
        let mut whole = Session::build(imported, &mut |_| {});
        for share in 1..40 {
            let Ok(imported) = import(&bytes[..bytes.len() * share / 40]) else { continue };
            let mut cut = Session::build(imported, &mut |_| {});
            assert!(cut.summary().findings.iter().any(|finding| finding.code == FindingCode::Truncated));
            let devices = cut.summary().devices.clone();
            for (device, of_cut) in devices.iter().enumerate() {
                let starts_empty =
                    whole.summary().devices.get(device).is_some_and(|of_whole| of_whole.start.reserved == 0);
                if !starts_empty {
                    continue;
                }
                for position in 0..=of_cut.events {
                    let mut totals = |session: &mut Session| match session.answer(device, &Query::State { position }) {
                        Answer::State(state) => state.totals,
                        other => panic!("{other:?}"),
                    };
                    let (found, want) = (totals(&mut cut), totals(&mut whole));
                    let case = format!("{} at {share}/40, event {position} of {}", fixture.name, of_cut.events);
                    assert_eq!((found.requested, found.reserved), (want.requested, want.reserved), "{case}");
                    assert!(found.active + found.cached <= found.reserved, "{case}: {found:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}
