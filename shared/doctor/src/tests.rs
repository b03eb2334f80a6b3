//! Traces of which the verdict is known.

use super::*;
use crate::testing::TestCase;
use query::diagnosis::Cause;
use query::finding::Remedy;

const MIB: u64 = 1 << 20;

fn diagnosis(lines: &str, capacity: Option<u64>) -> Diagnosis {
    let mut test_case = TestCase::new(lines);
    test_case.capacity = capacity;
    diagnose(&test_case.case())
}

#[test]
fn a_file_whose_history_is_damaged_is_not_said_to_have_none() {
    let test_case = TestCase::new("");
    for (integrity, want) in [
        (Integrity::default(), "There is no history, so"),
        (Integrity { is_damaged: true, is_cut: false }, "No history could be read from the damaged file, so"),
        (Integrity { is_damaged: true, is_cut: true }, "The file ends before its first event, so"),
    ] {
        let found = diagnose(&Case { integrity, ..test_case.case() });
        assert!(found.verdict.sentence.starts_with(want), "{}", found.verdict.sentence);
    }
}

/// A segment of `mib` MiB at `0x10000000`.
fn segment(mib: u64) -> String {
    format!("segment_alloc 0x10000000 {}\n", mib * MIB)
}

/// An allocation of `mib` MiB, `at` MiB into the segment.
fn alloc(at: u64, mib: u64, line: &str) -> String {
    format!("alloc {} {} {line}\n", 0x1000_0000 + at * MIB, mib * MIB)
}

fn free(at: u64) -> String {
    format!("free {}\n", 0x1000_0000 + at * MIB)
}

fn oom(free_mib: u64, mib: u64) -> String {
    format!("oom {} {} ask@/m/a.py:9\n", free_mib * MIB, mib * MIB)
}

/// `count` blocks of `mib` MiB, of which every other one is freed.
fn every_other(count: u64, mib: u64) -> String {
    let made: String = (0..count).map(|i| alloc(i * mib, mib, "fill@/m/a.py:1")).collect();
    let freed: String = (0..count).step_by(2).map(|i| free(i * mib)).collect();
    segment(count * mib) + &made + &freed
}

#[test]
fn the_cause_is_that_of_the_story() {
    let spike = {
        let step = alloc(10, 60, "act@/m/a.py:2") + &free(10);
        segment(100)
            + &alloc(0, 10, "weights@/m/a.py:1")
            + &step.repeat(40)
            + &alloc(10, 40, "clone@/m/save.py:7")
            + &alloc(50, 40, "clone@/m/save.py:7")
    };
    // The trace, the capacity in MiB, and the cause with a part of its sentence.
    let cases: &[(String, Option<u64>, Cause, &str)] = &[
        (every_other(6, 2) + &oom(0, 4), None, Cause::Fragmented, "6.00 MiB was free in 3 gaps"),
        (
            every_other(100, 4) + &oom(0, 100),
            None,
            Cause::Fragmented,
            "the largest gap for a request of 100 MiB was 4.00 MiB; 12 blocks of 48.0 MiB in all, the largest from \
             m/a.py:1 (fill),",
        ),
        // Just one block in the way, between 50 and 49 MiB.
        (
            segment(100) + &alloc(50, 1, "pin@/m/a.py:5") + &oom(3, 60),
            None,
            Cause::Fragmented,
            "one block of 1.00 MiB from m/a.py:5 (pin) stood in the way",
        ),
        (
            segment(100) + &alloc(0, 90, "a@/m/a.py:1") + &oom(5, 40),
            None,
            Cause::Full,
            "Full: live tensors held 90.0 MiB of 105 MiB. 40.0 MiB was requested; 15.0 MiB was free, 25.0 MiB short \
             even without fragmentation.",
        ),
        (
            segment(100) + &alloc(1, 98, "a@/m/a.py:1") + &oom(0, 2),
            None,
            Cause::Full,
            "Full: live tensors held 98.0 MiB of 100 MiB, and with this request it would have been more than ever \
             before. 2.00 MiB was requested; 2.00 MiB was free, but the largest gap for it was 1.00 MiB.",
        ),
        // Steps before had needed as much: packing alone would have helped.
        (
            segment(100)
                + &(alloc(0, 100, "a@/m/a.py:1") + &free(0)).repeat(40)
                + &alloc(1, 98, "a@/m/a.py:1")
                + &oom(0, 2),
            None,
            Cause::Fragmented,
            "Fragmented: 2.00 MiB was free in 2 gaps",
        ),
        // It takes a segment of 20 MiB.
        (
            oom(12, 4),
            Some(12),
            Cause::Full,
            "Full: a request of 4.00 MiB takes a segment of 20.0 MiB, and the device has 12.0 MiB in all.",
        ),
        (oom(12, 40), Some(12), Cause::Full, "one request was for 40.0 MiB, and the device has 12.0 MiB in all"),
        // Without a known capacity, others may hold the rest of the device.
        (oom(12, 40), None, Cause::Full, "one request was for 40.0 MiB, and this process could use 12.0 MiB in all"),
        (
            segment(100) + &alloc(0, 100, "a@/m/a.py:1") + &oom(12, 4),
            None,
            Cause::Full,
            "4.00 MiB was requested, for which the driver was asked for a segment of 20.0 MiB; 12.0 MiB was free, ",
        ),
        (
            segment(40) + "oom 100 20971520 stream=7",
            None,
            Cause::OutOfReach,
            "a gap of 40.0 MiB was free in another pool or for another stream",
        ),
        (segment(40) + "oom 100 20971520 pool=1", None, Cause::OutOfReach, "another pool"),
        (
            segment(40) + &alloc(0, 40, "a@/m/a.py:1") + &oom(50, 30),
            None,
            Cause::Limit,
            "A limit: the driver had 50.0 MiB free and was asked for 30.0 MiB",
        ),
        // The same with a limit that is known: what the driver has beyond it is out of reach.
        (segment(40) + &alloc(0, 40, "a@/m/a.py:1") + &oom(50, 30), Some(45), Cause::Full, "25.0 MiB short"),
        (
            segment(40) + &alloc(0, 40, "a@/m/a.py:1") + &oom(10, 30),
            Some(100),
            Cause::OtherProcess,
            "Another process: 50.0 MiB of 100 MiB was held outside of this program's allocator; 30.0 MiB was requested, \
             20.0 MiB short.",
        ),
        // Packing would have helped, but others hold most of the device.
        (
            segment(40) + &alloc(10, 2, "a@/m/a.py:1") + &oom(10, 30),
            Some(300),
            Cause::OtherProcess,
            "Another process: 250 MiB of 300 MiB was held outside of this program's allocator; 30.0 MiB was requested; of the \
             48.0 MiB that was left, no free gap was large enough.",
        ),
        // A segment is a multiple of 2 MiB, which sizes of three digits don't show.
        (
            segment(2000) + &alloc(0, 2000, "a@/m/a.py:1") + "oom 104857600 1073742336",
            None,
            Cause::Full,
            "1.00 GiB was requested; 100 MiB was free, 926 MiB short even without fragmentation, since the driver gives \
             whole segments.",
        ),
        (
            spike + &oom(0, 20),
            None,
            Cause::Spike,
            "A spike: m/save.py:7 (clone) held 80.0 MiB for the moment in which a request of 20.0 MiB failed; the program \
             had never needed more than 70.0 MiB before.",
        ),
        (String::new(), None, Cause::None, "There is no history"),
        (
            every_other(6, 2),
            None,
            Cause::None,
            "No request failed; at the peak, 12.0 MiB was allocated, 12.0 MiB of it by m/a.py:1 (fill), 12.0 MiB was \
             reserved, and nothing was cached.",
        ),
    ];
    for (lines, capacity, cause, want) in cases {
        let found = diagnosis(lines, capacity.map(|mib| mib * MIB));
        let Verdict { sentence, remedies, position, .. } = &found.verdict;
        assert_eq!(found.verdict.cause, *cause, "{sentence}");
        assert!(sentence.contains(want), "{want} is not in: {sentence}");
        assert!(remedies.len() <= 3 && remedies.iter().all(|remedy| !remedy.checked), "{sentence}");
        assert_eq!(position.is_some(), *cause != Cause::None);
        assert_eq!(remedies.is_empty(), *cause == Cause::None, "{sentence}");
        // The finding states the facts of the verdict's failure, and the verdict its cause: nothing is said twice.
        let failures: Vec<_> = found.findings.iter().filter(|found| found.code == FindingCode::OutOfMemory).collect();
        assert_eq!(failures.len(), usize::from(position.is_some()));
        let subject = found.ooms.iter().find(|failed| Some(failed.position()) == *position);
        for finding in failures {
            let facts = subject.map(|failed| failed.message.as_str()).unwrap_or_default();
            assert!(finding.message.contains(facts) && !finding.message.contains(sentence), "{}", finding.message);
            assert_eq!(finding.position, *position);
        }
    }
}

#[test]
fn nearly_full_and_fragmented_never_stand_together() {
    for live in 1..100 {
        let lines = segment(100) + &alloc(0, live, "a@/m/a.py:1") + &oom(0, 50);
        let found = diagnosis(&lines, None);
        let said = format!("{} {}", found.verdict.sentence, found.ooms[0].message).to_lowercase();
        assert!(!(said.contains("full") && said.contains("fragmented")), "{said}");
        assert_eq!(found.verdict.cause == Cause::Full, !found.ooms[0].fits_if_packed(), "{live}: {said}");
    }
}

/// Steps that each keep 1 MB.
fn every_step(count: u64) -> String {
    let step = |step| {
        let kept = format!("alloc {} 1000000 keep@/m/a.py:2\n", 0x1100_0000 + 1_000_448 * step);
        alloc(0, 4, "act@/m/a.py:1") + &kept + &free(0)
    };
    (0..count).map(step).collect()
}

#[test]
fn a_leak_takes_precedence() {
    let steps = every_step(40);
    let leak = diagnosis(&format!("{}{steps}{}", segment(64), oom(0, 20)), None).verdict;
    assert_eq!((leak.cause, leak.line.as_deref()), (Cause::Leak, Some("keep  m/a.py:2")), "{}", leak.sentence);
    let growing = diagnosis(&format!("{}{steps}", segment(64)), None).verdict;
    assert_eq!((growing.cause, growing.is_growing), (Cause::None, true));
    // The step in which the request failed is not complete, and what it kept is no part of the rise.
    let how = |last| {
        let bytes = if last == 40 { "38.2 MiB in all" } else { "37.2 MiB of the 38.2 MiB that it holds" };
        format!("m/a.py:2 (keep) kept 977 KiB more in each step, over steps 1 to {last} ({bytes})")
    };
    let then =
        "A request of 20.0 MiB then failed: 25.8 MiB was free in 2 gaps, and the largest gap for it was 16.0 MiB.";
    assert_eq!(leak.sentence, format!("A leak: {}. {then}", how(39)));
    let more = diagnosis(&format!("{}{steps}{}", segment(64), oom(0, 30)), None).verdict.sentence;
    assert_eq!(more, format!("A leak: {}. A request of 30.0 MiB then no longer fitted.", how(39)));
    let start = format!("Growing, but nothing failed yet: {}; at the peak, ", how(40));
    assert!(growing.sentence.starts_with(&start), "{}", growing.sentence);
    // What is missing of a file that is cut off or damaged may be the failure.
    for (integrity, missing) in [
        (Integrity { is_cut: true, is_damaged: false }, "the end is missing"),
        (Integrity { is_cut: false, is_damaged: true }, "a part is missing"),
    ] {
        let test_case = TestCase::new(&format!("{}{steps}", segment(64)));
        let Verdict { headline, sentence, .. } = diagnose(&Case { integrity, ..test_case.case() }).verdict;
        assert!(headline.starts_with("Growing: ") && headline.ends_with(missing), "{headline}");
        assert!(sentence.starts_with("Growing, as far as was read: "), "{sentence}");
    }
    // Without the rise it would not have fitted either.
    let beside = diagnosis(&format!("{}{steps}{}", segment(64), oom(0, 200)), None).verdict;
    assert_eq!(beside.cause, Cause::Full, "{}", beside.sentence);
}

/// Four segments of 20 MiB, each with three gaps of 4.
fn apart() -> String {
    let segment = |i: u64| {
        let base = 0x1000_0000 + (i << 28);
        let block = |n: u64| base + n * 4 * MIB;
        let made: String = (0..5).map(|n| format!("alloc {} {} fill@/m/a.py:1\n", block(n), 4 * MIB)).collect();
        let freed: String = (0..5).step_by(2).map(|n| format!("free {}\n", block(n))).collect();
        format!("segment_alloc {base} {}\n{made}{freed}", 20 * MIB)
    };
    (0..4_u64).map(segment).collect()
}

#[test]
fn the_sentence_names_what_held_most() {
    let two = segment(100) + &alloc(0, 60, "attention@/m/a.py:1") + &alloc(60, 30, "head@/m/a.py:2");
    let cases = [
        (two.clone() + &oom(5, 40), "m/a.py:1 (attention) held most: 60.0 MiB in 1 allocation, 67 % of what was live."),
        (
            two.replace("attention@/m/a.py:1", "") + &oom(5, 40),
            "Most was held without a recorded stack: 60.0 MiB in 1 allocation, 67 % of what was live.",
        ),
        // The line that keeps segments from being released, where none is as long as the request.
        (
            apart() + &oom(12, 40),
            "; 8 blocks from m/a.py:1 (fill), 32.0 MiB in all, kept the 4 segments with these gaps from being released. \
             m/a.py:1 (fill) held most: 32.0 MiB in 8 allocations, 100 % of what was live.",
        ),
        (
            apart().replacen("fill@/m/a.py:1", "keep@/m/a.py:7", 2) + &oom(12, 40),
            "; 8 blocks, 32.0 MiB in all, 7 of them from m/a.py:1 (fill), kept the 4 segments",
        ),
        // A request for most of the memory says so.
        (
            apart() + &oom(79, 80),
            "Fragmented: one request was for 80.0 MiB, 50 % of the 159 MiB and 20 times as much as any before; 48.0 MiB was \
             free in 12 gaps and 79.0 MiB at the driver, but the largest gap for it was 4.00 MiB. m/a.py:1 (fill)",
        ),
    ];
    for (lines, want) in cases {
        let verdict = diagnosis(&lines, None).verdict;
        assert!(verdict.sentence.contains(want), "{want} is not in: {}", verdict.sentence);
        assert!(verdict.line.is_some(), "{}", verdict.sentence);
    }
    // The verdict of a leak has its bytes.
    let leak = TestCase::new(&(segment(64) + &every_step(40) + &oom(0, 20))).diagnosis().verdict.sentence;
    assert!(leak.starts_with("A leak: m/a.py:2 (keep)") && !leak.contains("held most"), "{leak}");
}

#[test]
fn no_advice_frees_what_a_backward_pass_needs() {
    let step = alloc(0, 4, "f@/m/a.py:1") + &free(0);
    let run = |before: &str, block: &str| {
        let lines = segment(100) + &step.repeat(20) + before + &alloc(50, 1, block) + &oom(3, 60);
        let remedies = diagnosis(&lines, None).verdict.remedies;
        remedies.into_iter().map(|remedy| remedy.text + "\n").collect::<String>()
    };
    let backward = "alloc 0x70000000 512 backward@/m/t.py:4\nfree 0x70000000\n";
    let training = run(backward, "forward@/m/a.py:5");
    assert!(training.contains("its backward pass may still need the blocks of m/a.py:5 (forward)"), "{training}");
    assert!(!training.contains("del"), "{training}");
    let other = run("", "make@/m/a.py:5");
    assert!(
        other.contains("Free the blocks of m/a.py:5 (make) before the large request, for example with del"),
        "{other}"
    );
}

#[test]
fn every_failure_has_its_facts() {
    let lines = every_other(6, 2) + &oom(0, 4) + &oom(7, 8) + "alloc 0x10000000 2097152 late@/m/a.py:3";
    let found = diagnosis(&lines, None);
    assert_eq!(found.failed, 2);
    let [first, second] = &found.ooms[..] else { panic!("two failures") };
    assert_eq!((first.requested, first.asked_of_driver, first.driver_free), (4 * MIB, 20 * MIB, 0));
    assert_eq!((second.requested, second.asked_of_driver, second.driver_free), (8 * MIB, 20 * MIB, 7 * MIB));
    assert_eq!((first.cached, first.largest_servable, first.gaps, first.allocated), (6 * MIB, 2 * MIB, 3, 6 * MIB));
    assert_eq!((first.missing, second.missing), (0, 2 * MIB));
    assert_eq!((first.lines[0].bytes, first.lines[0].count), (6 * MIB, 3));
    // The gap at the start has a block after it.
    let [before, behind] = &first.beside_gap;
    assert_eq!((first.nearest_gap, before), (Some((trace::units::Address(0x1000_0000), 2 * MIB)), &None));
    assert_eq!(behind.as_ref().map(|block| block.address.0), Some(0x1000_0000 + 2 * MIB));
    let obstacle = first.obstacle.as_ref().expect("a place");
    assert_eq!((obstacle.address.0, obstacle.blocks, obstacle.bytes), (0x1000_0000, 1, 2 * MIB));
    // Allocations follow, so the first failure is the decisive one.
    assert_eq!(found.verdict.position, Some(first.position()));
    assert_eq!(
        diagnose_failure(&TestCase::new(&lines).case(), second.position()).map(|found| found.ooms[0].event),
        Some(second.event)
    );
    assert_eq!(diagnose_failure(&TestCase::new(&lines).case(), 3), None);
}

#[test]
fn the_finding_of_a_summary_states_facts_alone() {
    let test_case = TestCase::new(&(every_other(6, 2) + &oom(0, 4) + &oom(1, 8)));
    let case = test_case.case();
    let failures = oom::positions(case.trace);
    let decisive = oom::decisive(case.trace, &failures).expect("a failure");
    let facts = failure_facts(&case, decisive).expect("facts");
    let found = failure_finding(case.trace, decisive, &facts, failures.len() as u32);
    assert_eq!(
        found.message,
        "Device 0: out of memory at event 15. m/a.py:9 (ask) asked for 8.00 MiB, for which the driver was asked for a segment of 20.0 MiB; \
         the driver had 1.00 MiB free. Live tensors held 6.00 MiB of 13.0 MiB, and 6.00 MiB was free in 3 gaps; the largest \
         gap for it was 2.00 MiB. One more request failed."
    );
    assert_eq!((found.position, found.bytes), (Some(15), Some(8 * MIB)));
    assert_eq!(failure_facts(&case, 1), None);
}

#[test]
fn remedies_fit_the_case() {
    let old = segment(100) + &alloc(50, 1, "pin@/m/a.py:5") + &(alloc(0, 4, "f@/m/a.py:1") + &free(0)).repeat(20);
    let young = segment(100) + &(alloc(0, 4, "f@/m/a.py:1") + &free(0)).repeat(20) + &alloc(50, 1, "pin@/m/a.py:5");
    let sizes: String = (2..20).map(|mib| alloc(0, mib, "f@/m/a.py:1") + &free(0)).collect();
    let apart = apart();
    let full = segment(100) + &alloc(0, 100, "a@/m/a.py:1");
    // The trace, what a remedy has to contain, and what none may contain.
    let cases = [
        (oom(12, 4), "large_segment_size_mb:11", "batch"),
        // No setting makes room for it.
        (oom(1, 62), "smaller batch", "large_segment_size_mb"),
        (
            old.clone() + &oom(3, 60),
            "Allocate what lives long, such as the blocks of m/a.py:5 (pin)",
            "Free the blocks",
        ),
        (young + &oom(3, 60), "Free the blocks of m/a.py:5 (pin) before the large request", "lives long"),
        // Sizes that repeat need no rounding.
        (old.clone() + &oom(3, 60), "expandable_segments", "roundup"),
        (old + &sizes + &oom(3, 60), "roundup_power2_divisions:8", "batch"),
        // Gaps of 4 MiB hold no page of an expandable segment.
        (every_other(25, 4) + &oom(0, 40), "the blocks of m/a.py:1 (fill)", "expandable_segments"),
        // And nothing lies in the way within a segment that is smaller than the request.
        (apart.clone() + &oom(12, 40), "Allocate the large tensor of m/a.py:9 (ask) once", "expandable_segments"),
        (apart + &oom(12, 40), "Allocate the large tensor", "roundup"),
        // What a program that trains can do, and one that doesn't.
        (full.clone() + &oom(1, 62), "In training, recompute activations", "8-bit optimizer"),
        (full.replace("a@/m/a.py:1", "update@/m/cache.py:8") + &oom(1, 62), "Bound the KV cache", "raining"),
        (full + "alloc 0x70000000 512 backward@/m/t.py:4\n" + &oom(1, 62), "8-bit optimizer", "KV cache"),
    ];
    for (lines, want, never) in cases {
        let mut test_case = TestCase::new(&lines);
        test_case.snapshot.settings.conf = "backend:native,expandable_segments:False".to_owned();
        let remedies = diagnose(&test_case.case()).verdict.remedies;
        // Whoever copies a setting keeps those of the run.
        for setting in remedies.iter().filter_map(Remedy::setting) {
            assert!(setting.starts_with("backend:native,expandable_segments:"), "{setting}");
            assert_eq!(setting.matches("expandable_segments").count(), 1, "{setting}");
        }
        let all: String = remedies.iter().map(|remedy| format!("{}\n{}\n", remedy.text, remedy.copy)).collect();
        assert!(all.contains(want) && !all.contains(never), "{want}, but not {never}: {all}");
    }
}

#[test]
fn beside_other_processes_a_setting_is_advised_if_the_own_gaps_would_do() {
    // A gap of 27 MiB in a segment of 40 MiB, and what the driver has free; the device has 400 MiB.
    let verdict = |free: u64| {
        let lines = segment(40) + &alloc(10, 3, "a@/m/a.py:1") + &oom(free, 40);
        diagnosis(&lines, Some(400 * MIB)).verdict
    };
    for (free, is_advised) in [(25, true), (2, false)] {
        let Verdict { cause, remedies, .. } = verdict(free);
        assert_eq!(cause, Cause::OtherProcess, "{free}");
        let advises = remedies.iter().any(|remedy| remedy.copy.ends_with("expandable_segments:True"));
        assert_eq!(advises, is_advised, "{free}: {remedies:?}");
        assert_eq!(remedies[0].copy, "nvidia-smi", "others come first until the setting is checked");
    }
}

#[test]
fn rounding_is_the_first_remedy_if_less_of_it_would_have_made_room() {
    let blocks: String = (0..10).map(|i| alloc(i * 33, 33, "f@/m/a.py:1")).collect();
    let mut test_case = TestCase::new(&(segment(330) + &blocks + &oom(0, 50)));
    test_case.snapshot.settings.roundup_power2_divisions = [2; 16];
    let remedies = diagnose(&test_case.case()).verdict.remedies;
    // 33 MiB take 48 each, 150 MiB more in all.
    let text = remedies.first().map(|remedy| remedy.text.clone()).unwrap_or_default();
    assert!(text.starts_with("Round up less: roundup_power2_divisions took 150 MiB"), "{text}");
}

#[test]
fn a_late_start_is_part_of_the_sentence() {
    let sentence = |lost: usize| {
        let mut snapshot =
            trace::testing::snapshot(&(segment(20) + &alloc(0, 4, "a@/m/a.py:1") + &alloc(4, 1, "a@/m/a.py:1")));
        let events = &mut snapshot.devices[0].events;
        *events = events.split_off(lost);
        TestCase::of(snapshot).diagnosis().verdict.sentence
    };
    assert!(sentence(0).starts_with("No request failed; "), "{}", sentence(0));
    assert!(sentence(1).starts_with("No recorded request failed; "), "{}", sentence(1));
}

#[test]
fn whole_segments_are_told_from_gaps_between_blocks() {
    let cached = "segment_alloc 0x50000000 104857600\nalloc 0x50000000 104857600 f@/m/a.py:1\nfree 0x50000000\n";
    let lines = cached.to_owned() + &segment(200) + &alloc(0, 150, "a@/m/a.py:1");
    let sentence = diagnosis(&lines, None).verdict.sentence;
    let want = "and 150 MiB was free in 2 gaps (100 MiB of it in segments without a live block, which torch.cuda.empty_cache() \
                releases), the largest 100 MiB.";
    assert!(sentence.ends_with(want), "{sentence}");
    // A pool keeps its segments while it is in use.
    let own = "segment_alloc 0x50000000 104857600 pool=7\nalloc 0x50000000 104857600 pool=7 f@/m/a.py:1\nfree 0x50000000 pool=7\n";
    let lines = own.to_owned() + &segment(200) + &alloc(0, 150, "a@/m/a.py:1");
    let sentence = diagnosis(&lines, None).verdict.sentence;
    let want = "(100 MiB of it in empty segments of private pools, which stay until their graphs and MemPools are gone), \
                the largest 100 MiB.";
    assert!(sentence.ends_with(want), "{sentence}");
}

#[test]
fn a_failure_of_steps_that_need_more_and_more_says_so_first() {
    let steps = |more: u64| -> String {
        let optimizer =
            "alloc 0x70000000 512 step@/v/site-packages/torch/optim/adam.py:9 main@/m/t.py:8\nfree 0x70000000\n";
        (0..12).map(|step| alloc(0, 10 + more * step, "forward@/m/a.py:5") + optimizer + &free(0)).collect()
    };
    let lines = |more| segment(200) + &alloc(100, 1, "pin@/m/a.py:5") + &steps(more) + &oom(3, 120);
    let verdict = diagnosis(&lines(5), None).verdict;
    assert_eq!((verdict.cause, verdict.is_growing), (Cause::Fragmented, true), "{}", verdict.sentence);
    let want = "Growing: the peak of requested memory was 16.0 MiB in step 2 and 61.0 MiB in step 11, 5.00 MiB more in each step \
                on average. Fragmented: ";
    assert!(verdict.headline.starts_with("Growing, then fragmented: 120 MiB asked, "), "{}", verdict.headline);
    assert!(verdict.sentence.starts_with(want), "{}", verdict.sentence);
    assert!(verdict.remedies[0].text.starts_with("Find what grows from step to step"), "{:?}", verdict.remedies);
    assert!(verdict.remedies.len() <= 3 && verdict.remedies.iter().any(|remedy| remedy.setting().is_some()));
    let even = diagnosis(&lines(0), None).verdict;
    assert!(!even.is_growing && even.sentence.starts_with("Fragmented: "), "{}", even.sentence);
}

#[test]
fn the_share_of_a_line_is_that_of_requested_bytes() {
    // Each of the small blocks takes 512 B.
    let mut lines = segment(20) + "alloc 0x10800000 20480 large@/m/a.py:2\n";
    for block in 0..40 {
        lines += &format!("alloc {} 100 small@/m/a.py:1\n", 0x1000_0000 + block * 512);
    }
    let verdict = diagnosis(&(lines + &oom(0, 100)), None).verdict;
    let want = " m/a.py:2 (large) held most: 20.0 KiB in 1 allocation, 84 % of what was live.";
    assert!(verdict.sentence.ends_with(want), "{}", verdict.sentence);
}

/// Growth of reserved memory stood only in the second finding, below a leak of a fraction of it.
#[test]
fn reserved_memory_that_tensors_never_held_is_the_verdict() {
    let mut lines = String::new();
    for step in 0..6_u64 {
        let address = 0x1000_0000 + step * (400 << 20);
        lines += &format!("segment_alloc {address} 314572800\nalloc {address} 314572800 f@/m/a.py:1\nfree {address}\n");
    }
    let mut case = TestCase::new(&lines);
    let verdict = case.diagnosis().verdict;
    assert_eq!(verdict.headline, "Reserved: 1.76 GiB, while live tensors held at most 300 MiB");
    assert!(
        verdict.sentence.starts_with("Reserved memory came to 1.76 GiB, while live tensors held at most 300 MiB; ")
    );
    let settings = &mut case.snapshot.settings;
    settings.conf = "max_split_size_mb:128,expandable_segments:True".to_owned();
    (settings.expandable_segments, settings.max_split_size) = (true, Some(128 << 20));
    let verdict = case.diagnosis().verdict;
    assert!(
        verdict.sentence.contains("since max_split_size_mb together with expandable_segments:True keeps"),
        "{verdict:?}"
    );
    assert_eq!(verdict.remedies[0].setting(), Some("expandable_segments:True"));
    // What was reserved before the first event may have been in use then.
    let mut late = trace::testing::snapshot(&lines);
    let events = std::mem::take(&mut late.devices[0].events);
    (20..events.len()).filter_map(|i| events.get(i)).for_each(|event| late.devices[0].events.push(event));
    let verdict = TestCase::of(late).diagnosis().verdict;
    assert!(!verdict.headline.starts_with("Reserved:"), "{verdict:?}");
}
