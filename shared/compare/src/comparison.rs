//! Two profiles, line by line.

use query::run_comparison::{ChangedLine, Comparability, ComparedRun, LineMatch, RunComparison};
use query::run_profile::{ProfiledLine, RunProfile};
use query::{Category, FROM_BEFORE, NO_STACK};
use trace::totals::Amount;

use super::conditions::differences;
use super::pairing::{Pair, pairs};
use super::sentence::sentence;

/// How two runs are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Beginnings of paths in the first run, each with what stands for it in the second.
    pub map: Vec<(String, String)>,
}

/// Compares two runs; the first is the base.
pub fn compare(before: &RunProfile, after: &RunProfile, options: &Options) -> RunComparison {
    let differences = differences(before, after);
    let mut lines: Vec<ChangedLine> =
        pairs(&before.lines, &after.lines, &options.map).iter().map(|pair| line(before, after, pair)).collect();
    let unnamed =
        [(NO_STACK, before.without_stack, after.without_stack), (FROM_BEFORE, before.at_start, after.at_start)];
    lines.extend(unnamed.map(|(name, before, after)| ChangedLine {
        found: LineMatch::Exact,
        labels: [name.to_owned(), name.to_owned()],
        places: Default::default(),
        stacks: [None, None],
        held: [before, after],
        category: Category::Unknown,
    }));
    // A line that holds nothing in either run says nothing of its memory.
    lines.retain(|line| line.held.iter().any(|held| held.count > 0));
    let place = |line: &ChangedLine| (line.growth().unsigned_abs(), line.held[0].bytes.max(line.held[1].bytes));
    lines.sort_by(|a, b| place(b).cmp(&place(a)).then_with(|| a.labels.cmp(&b.labels)));
    let amount = |of: &RunProfile, place: usize| of.categories.get(place).copied().unwrap_or_default();
    let mut categories: Vec<(Category, [Amount; 2])> = (0..)
        .zip(Category::ALL)
        .map(|(place, category)| (category, [amount(before, place), amount(after, place)]))
        .filter(|(_, [before, after])| before != after)
        .collect();
    categories.sort_by_key(|(_, [before, after])| std::cmp::Reverse(before.bytes.abs_diff(after.bytes)));
    let run = |of: &RunProfile| ComparedRun {
        name: of.name.clone(),
        device: of.device,
        moment: of.moment.clone(),
        memory: of.memory,
        conditions: of.conditions.clone(),
    };
    let mut compared = RunComparison {
        runs: [run(before), run(after)],
        comparability: differences.iter().map(|found| found.weight).max().unwrap_or(Comparability::Yes),
        differences,
        sentence: String::new(),
        lines,
        categories,
    };
    compared.sentence = sentence(&compared);
    compared
}

fn line(before: &RunProfile, after: &RunProfile, pair: &Pair) -> ChangedLine {
    let one = pair.before.and_then(|at| before.lines.get(at));
    let other = pair.after.and_then(|at| after.lines.get(at));
    let label = |line: Option<&ProfiledLine>| line.map_or_else(String::new, |line| line.label.clone());
    let place = |line: Option<&ProfiledLine>| match line {
        Some(line) if !line.file.is_empty() => format!("{}:{}", line.file, line.number),
        _ => String::new(),
    };
    let held = |line: Option<&ProfiledLine>| line.map_or_else(Amount::default, |line| line.held);
    let held = [held(one), held(other)];
    ChangedLine {
        found: pair.found,
        labels: [label(one), label(other)],
        places: [place(one), place(other)],
        stacks: [one, other].map(|line| line.map(|line| line.stack)),
        held,
        category: if held[1].bytes >= held[0].bytes { other.or(one) } else { one.or(other) }
            .map(|line| line.category)
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use analysis::best_frames::BestFrames;
    use analysis::roles::Roles;
    use proptest::prelude::*;
    use query::run_profile::{Conditions, MomentChoice};
    use replay::index::Index;
    use replay::{Replay, Replayed};

    use super::*;
    use crate::{Run, profile};

    const MIB: u64 = 1 << 20;

    fn profiled(text: &str, choice: &MomentChoice) -> RunProfile {
        let mut snapshot = trace::testing::snapshot(text);
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
        let (best_frames, roles) = (BestFrames::build(&snapshot.symbols), Roles::default());
        let (symbols, known) = (&snapshot.symbols, &Conditions::default());
        let run = Run { name: "run", input, symbols, best_frames: &best_frames, roles: &roles, known };
        profile(&run, choice).unwrap()
    }

    fn sum(compared: &RunComparison) -> i64 {
        compared.lines.iter().map(ChangedLine::growth).sum()
    }

    fn compared(before: &str, after: &str) -> RunComparison {
        let of = |text: &str| profiled(text, &MomentChoice::Peak);
        compare(&of(before), &of(after), &Options::default())
    }

    /// A segment, and tensors of so many MiB at lines.
    fn trace(tensors: &[(u64, &str)]) -> String {
        let mut text = "segment_alloc 0x40000000 4294967296".to_owned();
        let mut address = 0x4000_0000_u64;
        for (mib, line) in tensors {
            text += &format!("\nalloc {address} {} {line}", mib * MIB);
            address += mib * MIB;
        }
        text
    }

    #[test]
    fn the_sentence_names_the_line_and_how_it_changed() {
        let base: &[(u64, &str)] =
            &[(100, "forward@/m/gpt.py:7"), (60, "forward@/m/gpt.py:9"), (40, "loss@/m/loss.py:3")];
        let with = |more: &[(u64, &'static str)]| [base, more].concat();
        for (after, want) in [
            (base.to_vec(), "No difference: both peak at 200 MiB."),
            (
                with(&[(40, "loss@/m/loss.py:3")]),
                "B's peak is 40.0 MiB higher (200 MiB → 240 MiB); nearly all of it is m/loss.py:3 (loss), which holds twice as many \
                 (2 tensors instead of 1).",
            ),
            (
                with(&[(10, "log@/m/train.py:50")]),
                "B's peak is 10.0 MiB higher (200 MiB → 210 MiB); nearly all of it is m/train.py:50 (log), which allocates \
                 nothing in A.",
            ),
            (
                vec![(150, "forward@/m/gpt.py:7"), (60, "forward@/m/gpt.py:9"), (40, "loss@/m/loss.py:3")],
                "B's peak is 50.0 MiB higher (200 MiB → 250 MiB); nearly all of it is m/gpt.py:7 (forward), whose tensors are 1.5 times \
                 as large.",
            ),
            (
                vec![(100, "forward@/m/gpt.py:7"), (40, "loss@/m/loss.py:3")],
                "B's peak is 60.0 MiB lower (200 MiB → 140 MiB); nearly all of it is m/gpt.py:9 (forward), which \
                 allocates nothing in B.",
            ),
            (
                vec![(100, "forward@/m/gpt.py:7"), (10, "forward@/m/gpt.py:9"), (100, "loss@/m/loss.py:3")],
                "B's peak is 10.0 MiB higher (200 MiB → 210 MiB); 60.0 MiB more is m/loss.py:3 (loss), whose tensors are 2.5 times as \
                 large, and 50.0 MiB less elsewhere.",
            ),
        ] {
            assert_eq!(compared(&trace(base), &trace(&after)).sentence, want);
        }
    }

    /// Memory without a stack was "nearly all" of less than itself.
    #[test]
    fn a_part_that_is_more_than_all_is_told_with_what_is_less() {
        let run = |without_stack: u64, mib: u64| {
            format!("{}\nalloc 0x60000000 {}", trace(&[(mib, "loss@/m/loss.py:3")]), without_stack * MIB)
        };
        assert_eq!(
            compared(&run(10, 100), &run(70, 50)).sentence,
            "B's peak is 10.0 MiB higher (110 MiB → 120 MiB); 60.0 MiB more is memory without a stack, and 50.0 MiB less elsewhere."
        );
    }

    #[test]
    fn gaps_are_named_if_they_explain_more_than_tensors() {
        let before = trace(&[(100, "forward@/m/gpt.py:7")]);
        let after = format!("segment_alloc 0x200000000 1073741824\n{before}");
        assert_eq!(
            compared(&before, &after).sentence,
            "B reserves 1.00 GiB more (4.00 GiB → 5.00 GiB): it has 1.00 GiB more in free gaps (3.90 GiB → 4.90 GiB), while live \
             tensors hold the same."
        );
    }

    #[test]
    fn what_a_run_cannot_tell_is_said_first() {
        let before = profiled(&trace(&[(1, "f@/m/a.py:1")]), &MomentChoice::End);
        let mut after = before.clone();
        after.conditions.torch = "2.11".to_owned();
        after.conditions.conf = "expandable_segments:True".to_owned();
        after.conditions.lost = 3;
        let found = compare(&before, &after, &Options::default());
        let what: Vec<&str> = found.differences.iter().map(|found| found.what.as_str()).collect();
        // A release that is not known differs from none.
        assert_eq!((found.comparability, what), (Comparability::WithCare, vec!["settings", "events lost"]));
        after.conditions.has_history = false;
        assert_eq!(compare(&before, &after, &Options::default()).comparability, Comparability::No);
    }

    fn tensors() -> impl Strategy<Value = Vec<(u64, usize)>> {
        prop::collection::vec((1_u64..9, 0_usize..12), 1..40)
    }

    /// The text of a run whose lines have been moved down by `shift`, in files below `root`.
    fn run(tensors: &[(u64, usize)], root: &str, shift: usize) -> String {
        let lines: Vec<(u64, String)> = tensors
            .iter()
            .map(|(mib, line)| (*mib, format!("f{}@{root}/m{}.py:{}", line % 3, line % 2, line + shift)))
            .collect();
        trace(&lines.iter().map(|(mib, line)| (*mib, line.as_str())).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn parts_add_up_and_the_other_way_round_is_the_opposite(a in tensors(), b in tensors()) {
            let (a, b) = (run(&a, "/x", 1), run(&b, "/x", 1));
            let (there, back) = (compared(&a, &b), compared(&b, &a));
            prop_assert_eq!(sum(&there), there.growth(|memory| memory.allocated));
            prop_assert_eq!(sum(&back), -sum(&there));
            let parts = [
                there.growth(|memory| memory.allocated),
                there.signed_growth(query::run_profile::ProfiledMemory::rounding),
                there.signed_growth(query::run_profile::ProfiledMemory::waiting),
                there.signed_growth(query::run_profile::ProfiledMemory::gaps),
            ];
            prop_assert_eq!(parts.iter().sum::<i64>(), there.growth(|memory| memory.reserved));
        }

        #[test]
        fn nothing_differs_from_itself(a in tensors()) {
            let a = run(&a, "/x", 1);
            let same = compared(&a, &a);
            prop_assert!(same.lines.iter().all(|line| line.growth() == 0 && line.found == LineMatch::Exact));
            prop_assert!(same.sentence.starts_with("No difference"));
            prop_assert_eq!((same.differences.len(), same.categories.len()), (0, 0));
        }

        #[test]
        fn another_root_and_inserted_lines_only_move(a in tensors(), shift in 0_usize..30, other in any::<bool>()) {
            let root = if other { "/y/z" } else { "/x" };
            let moved = compared(&run(&a, "/x", 1), &run(&a, root, 1 + shift));
            let is_same = |line: &ChangedLine| {
                line.growth() == 0 && matches!(line.found, LineMatch::Exact | LineMatch::Moved)
            };
            prop_assert!(moved.lines.iter().all(is_same), "{:?}", moved.lines);
        }
    }
}
