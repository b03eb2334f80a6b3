//! Two profiles, line by line.

use query::run_comparison::{Band, ChangedLine, ChangedPart, Comparability, ComparedRun, LineMatch, RunComparison};
use query::run_profile::{ProfiledLine, ProfiledPart, RunProfile};
use query::{Category, FROM_BEFORE, NO_STACK, pool_name, stream_name};
use rustc_hash::FxHashMap;
use trace::order::SortFew;
use trace::totals::Amount;
use trace::units::{PoolId, Stream};

use super::conditions::differences;
use super::pairing::{Pair, pairs};
use super::sentence::sentence;

/// How two runs are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Beginnings of paths in the first run, each with what stands for it in the second.
    pub map: Vec<(String, String)>,
    /// Other runs like the first one, at the same moment: how much they differ from it is noise.
    pub peers: Vec<RunProfile>,
}

/// Compares two runs; the first is the base.
pub fn compare(before: &RunProfile, after: &RunProfile, options: &Options) -> RunComparison {
    let differences = differences(before, after);
    let found = pairs(&before.lines, &after.lines, &options.map);
    let mut lines: Vec<ChangedLine> = found.iter().map(|pair| line(before, after, pair)).collect();
    for peer in &options.peers {
        widen(&mut lines, &found, [before, after], peer);
    }
    let band = |of: &dyn Fn(&RunProfile) -> u64| {
        let mut band = [of(before); 2];
        options.peers.iter().for_each(|peer| widen_to(&mut band, of(peer)));
        band
    };
    let has_peers = !options.peers.is_empty();
    let unnamed = |name: &str, of: fn(&RunProfile) -> Amount| ChangedLine {
        found: LineMatch::Exact,
        labels: [name.to_owned(), name.to_owned()],
        places: Default::default(),
        stacks: [None, None],
        held: [of(before), of(after)],
        band: has_peers.then(|| band(&|run| of(run).bytes)),
        category: Category::Unknown,
    };
    lines.extend([unnamed(NO_STACK, |run| run.without_stack), unnamed(FROM_BEFORE, |run| run.at_start)]);
    // A line that holds nothing in either run says nothing of its memory.
    lines.retain(|line| line.held.iter().any(|held| held.count > 0));
    let place = |line: &ChangedLine| (line.growth().unsigned_abs(), line.held[0].bytes.max(line.held[1].bytes));
    lines.sort_few_by(|a, b| place(b).cmp(&place(a)).then_with(|| a.labels.cmp(&b.labels)));
    let amount = |of: &RunProfile, place: usize| of.categories.get(place).copied().unwrap_or_default();
    let mut categories: Vec<(Category, [Amount; 2])> = (0..)
        .zip(Category::ALL)
        .map(|(place, category)| (category, [amount(before, place), amount(after, place)]))
        .filter(|(_, [before, after])| before != after)
        .collect();
    categories.sort_few_by_key(|(_, [before, after])| std::cmp::Reverse(before.bytes.abs_diff(after.bytes)));
    let run = |of: &RunProfile| ComparedRun {
        name: of.name.clone(),
        device: of.device,
        moment: of.moment.clone(),
        memory: of.memory,
        most: of.most,
        conditions: of.conditions.clone(),
    };
    let mut compared = RunComparison {
        runs: [run(before), run(after)],
        comparability: differences.iter().map(|found| found.weight).max().unwrap_or(Comparability::Yes),
        differences,
        band: has_peers.then(|| Band {
            runs: u32::try_from(options.peers.len()).unwrap_or(u32::MAX).saturating_add(1),
            allocated: band(&|run| run.memory.allocated),
            reserved: band(&|run| run.memory.reserved),
            most_allocated: band(&|run| run.most.allocated),
        }),
        sentence: String::new(),
        lines,
        categories,
        streams: parts([&before.streams, &after.streams]),
        pools: parts([&before.pools, &after.pools]),
    };
    compared.sentence = sentence(&compared);
    compared
}

/// Returns the streams or the pools of both runs, if there are several.
fn parts([before, after]: [&[ProfiledPart]; 2]) -> Vec<ChangedPart> {
    let by_name = |parts: &'_ [ProfiledPart]| -> FxHashMap<String, ProfiledPart> {
        parts.iter().map(|part| (part.name.clone(), part.clone())).collect()
    };
    let [mut of_before, mut of_after] = [before, after].map(by_name);
    let new = after.iter().filter(|part| !of_before.contains_key(&part.name));
    let names: Vec<&str> = before.iter().chain(new).map(|part| part.name.as_str()).collect();
    if names.len() < 2 {
        return Vec::new();
    }
    let is_default =
        |name: &str| [stream_name(Stream::default(), &[]), pool_name(PoolId::default())].iter().any(|own| own == name);
    let part = |name: &str| {
        let (one, other) = (of_before.remove(name), of_after.remove(name));
        let found = match (&one, &other) {
            _ if is_default(name) => LineMatch::Exact,
            (Some(_), Some(_)) => LineMatch::Guessed,
            (None, _) => LineMatch::New,
            (_, None) => LineMatch::Gone,
        };
        let [one, other] = [one, other].map(Option::unwrap_or_default);
        ChangedPart {
            name: name.to_owned(),
            found,
            held: [one.held, other.held],
            reserved: [one.reserved, other.reserved],
        }
    };
    names.into_iter().map(part).collect()
}

/// Returns the run in the middle of several by what live tensors hold, and the others; `None` of none.
pub fn middle(mut runs: Vec<RunProfile>) -> Option<(RunProfile, Vec<RunProfile>)> {
    runs.sort_few_by_key(|run| run.memory.allocated);
    let middle = runs.len().checked_sub(1)? / 2;
    let chosen = runs.remove(middle);
    Some((chosen, runs))
}

const fn widen_to([least, most]: &mut [u64; 2], bytes: u64) {
    *least = if bytes < *least { bytes } else { *least };
    *most = if bytes > *most { bytes } else { *most };
}

/// Widens the bands of lines to what they hold in another run like the first one.
fn widen(lines: &mut [ChangedLine], found: &[Pair], [before, after]: [&RunProfile; 2], peer: &RunProfile) {
    let held = |of: &[ProfiledLine]| -> FxHashMap<usize, u64> {
        let pairs = pairs(of, &peer.lines, &[]).into_iter();
        pairs.filter_map(|pair| Some((pair.before?, peer.lines.get(pair.after?)?.held.bytes))).collect()
    };
    // The first run's lines have the paths of its kind; those of the second one alone are looked for by themselves.
    let (known, new) = (held(&before.lines), held(&after.lines));
    for (line, pair) in lines.iter_mut().zip(found) {
        let bytes = match (pair.before, pair.after) {
            (Some(at), _) => known.get(&at),
            (None, Some(at)) => new.get(&at),
            (None, None) => None,
        };
        let [own, _] = line.held;
        widen_to(line.band.get_or_insert([own.bytes; 2]), bytes.copied().unwrap_or(0));
    }
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
        band: None,
        category: if held[1].bytes >= held[0].bytes { other.or(one) } else { one.or(other) }
            .map(|line| line.category)
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use analysis::best_frames::BestFrames;
    use analysis::high_water::HighWater;
    use analysis::roles::Roles;
    use proptest::prelude::*;
    use query::run_profile::{Conditions, MomentChoice, MostMemory, ProfiledMemory, ProfiledMoment};
    use replay::index::Index;
    use replay::{Replay, Replayed};

    use super::*;
    use crate::{Run, profile};

    const MIB: u64 = 1 << 20;

    fn profiled(text: &str, choice: &MomentChoice) -> RunProfile {
        try_profiled(text, choice).unwrap()
    }

    fn try_profiled(text: &str, choice: &MomentChoice) -> Result<RunProfile, String> {
        let mut snapshot = trace::testing::snapshot(text);
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
        let (best_frames, roles) = (BestFrames::build(&snapshot.symbols), Roles::default());
        let (symbols, known) = (&snapshot.symbols, &Conditions::default());
        let (streams, high) = (input.streams(), HighWater::of(&trace, &replay));
        let most = MostMemory { allocated: high.requested, reserved: high.reserved };
        let best_frames = &best_frames;
        let run = Run { name: "run", input, symbols, best_frames, roles: &roles, streams: &streams, most, known };
        profile(&run, choice)
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
    fn what_lies_between_several_runs_of_the_first_kind_is_noise() {
        let of = |bytes: u64| profiled(&trace(&[(bytes, "f@/m/a.py:1"), (7, "g@/m/a.py:9")]), &MomentChoice::Peak);
        let (base, peers) = middle([12, 10, 16].map(of).into()).unwrap();
        assert_eq!((base.memory.allocated / MIB, peers.len()), (19, 2));
        let options = Options { peers, ..Options::default() };
        for (bytes, changed, sentence) in [
            (15, 0, "No difference above the noise: B peaks at 22.0 MiB, 3 runs of A 17.0 MiB to 23.0 MiB."),
            (
                20,
                1,
                "B's peak is 8.00 MiB higher (19.0 MiB → 27.0 MiB); nearly all of it is m/a.py:1 (f), whose tensors are 1.67 times as large.",
            ),
        ] {
            let found = compare(&base, &of(bytes), &options);
            assert_eq!((found.sentence.as_str(), found.changed_lines().count()), (sentence, changed));
            let rule = crate::gate::Rule::parse("peak+1%").unwrap();
            assert_eq!(rule.check(&found).is_tripped, changed > 0);
        }
        // A line that only some of the first runs have.
        let peers = vec![profiled(
            &trace(&[(12, "f@/m/a.py:1"), (7, "g@/m/a.py:9"), (1, "h@/m/a.py:20")]),
            &MomentChoice::Peak,
        )];
        let options = Options { peers, ..Options::default() };
        let after =
            profiled(&trace(&[(12, "f@/m/a.py:1"), (7, "g@/m/a.py:9"), (1, "h@/m/a.py:20")]), &MomentChoice::Peak);
        assert_eq!(compare(&of(12), &after, &options).changed_lines().count(), 0);
        assert_eq!(middle(Vec::new()), None);
    }

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
    fn what_a_step_does_not_show_is_told_beside_it() {
        let step = ProfiledMoment { step: Some(5), is_peak: true, ..ProfiledMoment::default() };
        let run = |of_step: u64, most: u64, failed: u64| RunProfile {
            memory: ProfiledMemory { allocated: of_step * MIB, reserved: 900 * MIB, ..ProfiledMemory::default() },
            most: MostMemory { allocated: most * MIB, reserved: 900 * MIB },
            moment: step.clone(),
            conditions: Conditions { failed, ..Conditions::default() },
            ..RunProfile::default()
        };
        let same = "No difference: both peak at 100 MiB in step 5.";
        let higher = "B's peak is 20.0 MiB higher (100 MiB → 120 MiB).";
        for (before, after, want) in [
            (run(100, 100, 0), run(100, 100, 0), same.to_owned()),
            (
                run(100, 200, 0),
                run(100, 260, 0),
                format!("{same} Over the whole runs, B's peak is 60.0 MiB higher (200 MiB → 260 MiB)."),
            ),
            (run(100, 200, 0), run(120, 220, 0), higher.to_owned()),
            (
                run(100, 200, 0),
                run(120, 200, 0),
                format!("In step 5, {higher} Over the whole runs, both peak at 200 MiB."),
            ),
            (run(100, 100, 0), run(100, 100, 7), format!("B ran out of memory, and A did not. {same}")),
            (run(100, 100, 1), run(100, 100, 7), same.to_owned()),
        ] {
            assert_eq!(compare(&before, &after, &Options::default()).sentence, want);
        }
    }

    /// Four steps. Each has an activation of twice its number in MiB, and keeps 1 MiB.
    #[test]
    fn two_steps_of_one_run_are_compared_at_their_peaks_or_at_their_ends() {
        let mut text = "segment_alloc 0x40000000 4294967296".to_owned();
        for step in 1..=4_u64 {
            let (spent, kept) = (0x5000_0000, 0x7000_0000 + step * MIB);
            text += &format!("\nalloc {spent} {} forward@/m/gpt.py:7\nfree {spent}", step * 2 * MIB);
            text += &format!("\nalloc {kept} {MIB} log@/m/train.py:20");
            text += "\nalloc 0x61000000 512 step@/v/site-packages/torch/optim/adam.py:9 main@/m/train.py:8\nfree 0x61000000";
        }
        let at = |choices: [MomentChoice; 2]| {
            let [before, after] = choices.map(|choice| profiled(&text, &choice));
            let found = compare(&before, &after, &Options::default());
            let rows: Vec<_> = found.changed_lines().map(|line| (line.growth(), line.label().to_owned())).collect();
            (found.sentence, rows, found.runs.map(|run| run.moment.text))
        };
        let mib = |mib: i64, line: &str| (mib * MIB as i64, line.to_owned());
        let (sentence, rows, moments) = at([2, 4].map(MomentChoice::Step));
        assert_eq!(
            sentence,
            "B's peak is 6.00 MiB higher (5.00 MiB → 11.0 MiB); 4.00 MiB of it is m/gpt.py:7 (forward), whose tensors are 2 times as large."
        );
        assert_eq!(rows, [mib(4, "forward  m/gpt.py:7"), mib(2, "log  m/train.py:20")]);
        assert_eq!(moments, ["the peak of step 2", "the peak of step 4"]);
        let (sentence, rows, moments) = at([2, 4].map(MomentChoice::StepEnd));
        assert!(sentence.starts_with("B holds 2.00 MiB more"), "{sentence}");
        assert_eq!(rows, [mib(2, "log  m/train.py:20")]);
        assert_eq!(moments, ["the end of step 2", "the end of step 4"]);
        assert!(try_profiled(&text, &MomentChoice::StepEnd(9)).unwrap_err().contains("has no step 9"));
    }

    #[test]
    fn a_run_is_profiled_at_a_time_that_it_has() {
        let text = trace(&[(1, "f@/m/a.py:1"), (2, "f@/m/a.py:1"), (4, "f@/m/a.py:1")]);
        let at = |choice| try_profiled(&text, &choice).map(|run| (run.moment.position, run.memory.allocated / MIB));
        let (end, middle) =
            [MomentChoice::End, MomentChoice::Event(3)].map(|choice| profiled(&text, &choice).moment).into();
        assert!(middle.time_us < end.time_us);
        assert_eq!(at(MomentChoice::Time(end.time_us)), Ok((4, 7)));
        assert_eq!(at(MomentChoice::Time(middle.time_us)), Ok((3, 3)));
        assert!(at(MomentChoice::Time(end.time_us + 1)).unwrap_err().contains("has no moment at"));
    }

    #[test]
    fn without_stacks_in_one_run_no_line_of_the_other_is_new() {
        let (before, after) = (trace(&[(100, "")]), trace(&[(150, "forward@/m/gpt.py:7")]));
        let found = compared(&before, &after);
        assert_eq!(
            found.sentence,
            "B's peak is 50.0 MiB higher (100 MiB → 150 MiB); 150 MiB more is m/gpt.py:7 (forward), and 100 MiB less elsewhere."
        );
        assert!(!found.knows_lines());
    }

    #[test]
    fn memory_is_told_by_stream_and_by_pool_if_there_are_several() {
        let graph = |pool: u32, mib: u64| {
            format!(
                "\nsegment_alloc 0x300000000 {} stream=7 pool={pool}\nalloc 0x300000000 {} stream=7 pool={pool} g@/m/a.py:9",
                40 * MIB,
                mib * MIB
            )
        };
        let base = trace(&[(100, "f@/m/a.py:1")]);
        let told = |after: &str| {
            let found = compared(&(base.clone() + &graph(1, 10)), after);
            let part = |part: &ChangedPart| {
                let [a, b] = part.held.map(|held| held.bytes / MIB);
                format!("{} {} {a} → {b}, {:+}", part.name, part.found.name(), part.growth() / MIB as i64)
            };
            for (parts, run) in [&found.streams, &found.pools].into_iter().flat_map(|parts| [(parts, 0), (parts, 1)]) {
                let memory = found.runs[run].memory;
                assert_eq!(parts.iter().map(|part| part.reserved[run]).sum::<u64>(), memory.reserved);
                assert_eq!(parts.iter().map(|part| part.held[run].bytes).sum::<u64>(), memory.allocated);
            }
            [&found.streams, &found.pools].map(|parts| parts.iter().map(part).collect::<Vec<_>>())
        };
        let streams = ["default stream exact 100 → 100, +0", "stream 7 guessed 10 → 30, +0"];
        assert_eq!(
            told(&(base.clone() + &graph(1, 30))),
            [streams, ["default pool exact 100 → 100, +0", "pool (0, 1) guessed 10 → 30, +0"]]
        );
        let pools = ["default pool exact 100 → 100, +0", "pool (0, 1) gone 10 → 0, -40", "pool (0, 2) new 0 → 30, +40"];
        assert_eq!(told(&(base.clone() + &graph(2, 30)))[1], pools);
        assert_eq!(compared(&base, &base).streams, []);
    }

    #[test]
    fn what_a_run_cannot_tell_is_said_first() {
        let mut before = profiled(&trace(&[(1, "f@/m/a.py:1")]), &MomentChoice::End);
        let mut after = before.clone();
        after.conditions.torch = "2.11".to_owned();
        after.conditions.conf = "expandable_segments:True".to_owned();
        after.conditions.lost = 3;
        (before.conditions.ranks, after.conditions.ranks) = (Some(8), Some(4));
        (before.inputs.bytes, after.inputs.bytes) = (100, 150);
        let found = compare(&before, &after, &Options::default());
        let what: Vec<&str> = found.differences.iter().map(|found| found.what.as_str()).collect();
        // A release that is not known differs from none.
        assert_eq!(
            (found.comparability, what),
            (Comparability::WithCare, vec!["settings", "processes of the job", "events lost", "inputs of the step"])
        );
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
                there.signed_growth(ProfiledMemory::rounding),
                there.signed_growth(ProfiledMemory::waiting),
                there.signed_growth(ProfiledMemory::gaps),
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
