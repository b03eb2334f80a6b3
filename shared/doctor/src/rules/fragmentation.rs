//! Cached memory in gaps that are too small for a request: it is reserved, and of no use.

use super::RuleContext;
use super::moment::{MissMoment, Outcome, SplitGaps};
use super::thresholds::{FRAGMENTED_PERCENT, FRAGMENTED_PERCENT_OF_PEAK, LEAST_BYTES, is_share};
use crate::remedies::{allocate_early, has_many_sizes, would_grow};
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use replay::Gap;
use trace::units::{Bytes, percent};

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let gaps = context.moments.iter().map(|moment| (moment, moment.split_gaps(context.case)));
    let fragmented: Vec<(&MissMoment, SplitGaps, Gap)> =
        gaps.filter_map(|(moment, gaps)| fragmented(context, moment, gaps)).collect();
    // What made a request fail matters most.
    let failed = fragmented.iter().find(|(moment, ..)| moment.outcome == Outcome::Failed);
    let Some((moment, gaps, largest)) = failed.or_else(|| fragmented.iter().max_by_key(|(_, gaps, _)| gaps.bytes))
    else {
        return Vec::new();
    };
    let reserved = moment.state.totals.reserved;
    let percent = percent(gaps.bytes, reserved);
    let size = Bytes(moment.size);
    let line = context.known(moment.stack);
    let request = match (moment.outcome, line) {
        (Outcome::Failed, line) => format!("too small for {}", line.as_deref().unwrap_or("it")),
        (_, None) => format!("so {} was taken from the driver for a request of {size}", Bytes(moment.taken)),
        (_, Some(line)) if moment.taken == moment.size => format!("so the {size} of {line} were taken from the driver"),
        (_, Some(line)) => format!("so {} was taken from the driver for the {size} of {line}", Bytes(moment.taken)),
    };
    // The verdict counts it: the two must not seem to disagree.
    let besides = match gaps.at_end {
        0 => String::new(),
        bytes => format!(", besides the end of an expandable segment ({}), which can grow", Bytes(bytes)),
    };
    let message = format!(
        "{}, {} was free in {} of one pool and stream{besides}: {percent} % of the {} reserved. The largest was {}, {request}.",
        moment.description(),
        Bytes(gaps.bytes),
        // Their number beside that of all gaps, which the verdict has, would look like a mistake.
        if gaps.count == 1 { "a gap" } else { "gaps" },
        Bytes(reserved),
        Bytes(largest.size),
    );
    let finding = Finding::new(FindingCode::Fragmentation, message)
        .at(moment.state.position)
        .with_bytes(gaps.bytes)
        .with_evidence(Evidence::Segment(largest.address));
    vec![remedies(context, moment).into_iter().fold(finding, Finding::with_remedy)]
}

/// Returns a moment with its gaps and the largest of them, if much lies in gaps that are too small for the request.
fn fragmented<'a>(
    context: &RuleContext<'_>,
    moment: &'a MissMoment,
    gaps: SplitGaps,
) -> Option<(&'a MissMoment, SplitGaps, Gap)> {
    let largest = gaps.largest?;
    let is_much = match moment.outcome {
        // The verdict says so.
        Outcome::Failed => true,
        Outcome::Peak => is_share(gaps.bytes, moment.state.totals.reserved, FRAGMENTED_PERCENT),
        Outcome::Served => is_share(gaps.bytes, context.survey.reserved, FRAGMENTED_PERCENT_OF_PEAK),
        // Nobody asked for more.
        Outcome::End => false,
    };
    // A gap that is large enough is not used under `max_split_size_mb`, which is no fragmentation.
    let is_fragmented = is_much && largest.size < moment.size;
    let is_fragmented =
        is_fragmented && (moment.outcome == Outcome::Failed || gaps.bytes >= moment.size.max(LEAST_BYTES));
    is_fragmented.then_some((moment, gaps, largest))
}

/// Returns what to try against fragmentation.
fn remedies(context: &RuleContext<'_>, moment: &MissMoment) -> Vec<Remedy> {
    let sizes = "Let tensors have few distinct sizes, for example by padding lengths to a multiple: freed blocks are then \
                 used again.";
    let case = context.case;
    let mut remedies = Vec::new();
    if !context.has_expandable_segments() && would_grow(case, &moment.state, moment.size, moment.driver_free) {
        remedies.push(context.grow("segments then grow, and free pages of one serve another"));
    }
    if has_many_sizes(case) {
        remedies.push(Remedy::advice(sizes));
    }
    if remedies.is_empty() {
        remedies.push(allocate_early(&context.known(moment.stack).unwrap_or_default()));
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A segment of `count` blocks of `mib` each, of which those are freed that `is_freed` names.
    fn blocks(count: u64, mib: u64, is_freed: impl Fn(u64) -> bool) -> String {
        let address = |i: u64| 0x1000_0000 + i * mib * MIB;
        let mut lines = format!("segment_alloc 0x10000000 {}\n", count * mib * MIB);
        for i in 0..count {
            lines += &format!("alloc {} {} fill@/m/a.py:1\n", address(i), mib * MIB);
        }
        for i in (0..count).filter(|i| is_freed(*i)) {
            lines += &format!("free {}\n", address(i));
        }
        lines
    }

    fn found(lines: &str) -> Vec<String> {
        trace(lines).messages(FindingCode::Fragmentation)
    }

    /// A request of 20 MiB for which the driver is asked.
    const REQUEST: &str = "segment_alloc 0x50000000 20971520 cat@/m/a.py:2\nalloc 0x50000000 20971520 cat@/m/a.py:2";

    #[test]
    fn gaps_that_no_request_fits_are_found_where_the_driver_had_to_serve_one() {
        let lines = blocks(25, 4, |i| i % 2 == 0) + REQUEST;
        assert_eq!(
            found(&lines),
            [
                "Before reserved memory rose to its peak (after event 52), 52.0 MiB was free in gaps of one pool and stream: 52 % of the 100 MiB reserved. The largest was 4.00 MiB, so the 20.0 MiB of m/a.py:2 (cat) were taken \
              from the driver."
            ]
        );
    }

    #[test]
    fn a_request_without_a_stack_is_named_by_its_size() {
        let lines = blocks(25, 4, |i| i % 2 == 0) + "segment_alloc 0x50000000 20971520\nalloc 0x50000000 20971520";
        let said = found(&lines).concat();
        assert!(said.ends_with("so 20.0 MiB was taken from the driver for a request of 20.0 MiB."), "{said}");
    }

    #[test]
    fn a_hundred_tensors_of_which_every_other_is_freed_do_not_hold_one_of_a_hundred_mib() {
        let lines = blocks(100, 4, |i| i % 2 == 0)
            + "segment_alloc 0x50000000 104857600 cat@/m/a.py:2\nalloc 0x50000000 104857600 cat@/m/a.py:2";
        assert_eq!(
            found(&lines),
            [
                "Before reserved memory rose to its peak (after event 201), 200 MiB was free in gaps of one pool and stream: 50 % of \
              the 400 MiB reserved. The largest was 4.00 MiB, so the 100 MiB of m/a.py:2 (cat) were taken from the driver."
            ]
        );
    }

    #[test]
    fn gaps_that_make_a_request_fail_are_found_whatever_their_size() {
        let lines = blocks(6, 2, |i| i % 2 == 0) + "oom 100 4194304 cat@/m/a.py:2";
        assert_eq!(
            found(&lines),
            ["When the request of 4.00 MiB failed (event 14), 6.00 MiB was free in gaps of one pool and stream: \
              50 % of the 12.0 MiB reserved. The largest was 2.00 MiB, too small for m/a.py:2 (cat)."]
        );
    }

    #[test]
    fn the_end_of_an_expandable_segment_is_told_apart_from_the_gaps() {
        let segment = blocks(6, 2, |i| i % 2 == 0)
            .replace("segment_alloc 0x10000000 12582912", "segment_map 0x10000000 18874368");
        let lines = segment + "oom 100 10485760 cat@/m/a.py:2";
        let settings = trace::Settings { expandable_segments: true, ..Default::default() };
        assert_eq!(
            trace(&lines).with_settings(settings).messages(FindingCode::Fragmentation),
            ["When the request of 10.0 MiB failed (event 14), 6.00 MiB was free in gaps of one pool and stream, \
                 besides the end of an expandable segment (6.00 MiB), which can grow: 33 % of the 18.0 MiB reserved. The largest \
                 was 2.00 MiB, too small for m/a.py:2 (cat)."]
        );
    }

    #[test]
    fn the_gaps_of_other_streams_are_counted_apart() {
        let other = "segment_alloc 0x70000000 4194304 stream=7\nalloc 0x70000000 1048576 stream=7\n";
        let lines = other.to_owned() + &blocks(6, 2, |i| i % 2 == 0) + "oom 100 4194304 cat@/m/a.py:2";
        let messages = found(&lines);
        let want = "6.00 MiB was free in gaps of one pool and stream";
        assert!(messages.iter().any(|message| message.contains(want)), "{messages:?}");
    }

    #[test]
    fn other_free_memory_is_no_fragmentation() {
        let cases = [
            // Few of them; or nobody asks for more.
            blocks(25, 4, |i| i == 3 || i == 9) + REQUEST,
            blocks(25, 4, |i| i % 2 == 0),
            // A whole segment, which can be released; or one gap that would have done.
            blocks(4, 4, |_| true) + REQUEST,
            blocks(25, 4, |i| i < 13) + REQUEST,
            // Another stream's; or that of the small pool.
            blocks(25, 4, |i| i % 2 == 0) + &REQUEST.replace("20971520 cat", "20971520 stream=7 cat"),
            blocks(25, 4, |i| i % 2 == 0) + "segment_alloc 0x50000000 2097152\nalloc 0x50000000 1000",
            // All of it together would not have been enough.
            blocks(6, 2, |i| i % 2 == 0) + "oom 100 8388608 cat@/m/a.py:2",
        ];
        for lines in cases {
            assert_eq!(found(&lines), [""; 0], "{lines}");
        }
    }

    #[test]
    fn a_setting_is_advised_only_where_it_helps() {
        let advice = |lines: &str| {
            let found = trace(lines).findings().into_iter().find(|found| found.code == FindingCode::Fragmentation);
            found.map(|found| found.remedies.iter().map(|remedy| remedy.text.clone()).collect::<Vec<_>>().join(" "))
        };
        let sizes: String = (2..20).map(|mib| format!("alloc 0x70000000 {0}\nfree 0x70000000\n", mib * MIB)).collect();
        let some_sizes = format!("segment_alloc 0x70000000 20971520\n{sizes}segment_free 0x70000000\n");
        // The trace, and whether expandable segments, few sizes, and an early request are advised. Gaps of 4 MiB hold no
        // page of 20.
        let cases = [
            (blocks(25, 4, |i| i % 2 == 0) + REQUEST, [false, false, true]),
            (some_sizes + &blocks(25, 4, |i| i % 2 == 0) + REQUEST, [false, true, false]),
            (blocks(25, 24, |i| i % 2 == 0) + &REQUEST.replace("20971520", "41943040"), [true, false, false]),
        ];
        for (lines, want) in cases {
            let said = advice(&lines).unwrap_or_default();
            let parts =
                ["expandable_segments:True", "few distinct sizes", "Allocate the large tensor of m/a.py:2 (cat) once"];
            assert_eq!(parts.map(|part| said.contains(part)), want, "{said}");
        }
    }

    #[test]
    fn the_remedy_keeps_the_settings_of_the_run() {
        // Gaps of 24 MiB, each with a page of 20.
        let lines = blocks(25, 24, |i| i % 2 == 0) + &REQUEST.replace("20971520", "41943040");
        let copied = |conf: &str, expandable_segments| {
            let settings = trace::Settings { conf: conf.to_owned(), expandable_segments, ..Default::default() };
            let findings = trace(&lines).with_settings(settings).findings();
            let found = findings.into_iter().find(|finding| finding.code == FindingCode::Fragmentation);
            found.map(|finding| finding.remedies.into_iter().next().map(|remedy| remedy.copy).unwrap_or_default())
        };
        let name = "PYTORCH_CUDA_ALLOC_CONF=";
        assert_eq!(copied("", false), Some(format!("{name}expandable_segments:True")));
        assert_eq!(
            copied("max_split_size_mb:64,expandable_segments:False", false),
            Some(format!("{name}max_split_size_mb:64,expandable_segments:True"))
        );
        // A shell would read the `>` otherwise.
        let list = "roundup_power2_divisions:[64:8,>:1]";
        assert_eq!(copied(list, false), Some(format!("{name}'{list},expandable_segments:True'")));
        assert_eq!(copied("expandable_segments:True", true), Some(String::new()));
    }
}
