//! Settings that do nothing, by the rules of PyTorch's allocator or because no request of the trace is concerned.

use super::RuleContext;
use super::thresholds::CONCLUSIVE_EVENTS;
use allocator::rounding::round_size;
use query::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use trace::event::Action;
use trace::units::{Bytes, counted, counted_as};

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    if context.case.trace.events.is_empty() {
        return Vec::new();
    }
    let found = [garbage_collection(context), max_split_size(context), expandable_segments(context), rounding(context)];
    let end = context.case.replay.positions();
    // The whole trace shows that a setting does nothing.
    let shown = |finding: Finding| finding.at(end).with_evidence(Evidence::Window(0, end));
    found.into_iter().flatten().map(shown).collect()
}

/// Returns whether the trace is long enough to say that a setting concerns no request.
fn is_conclusive(context: &RuleContext<'_>) -> bool {
    context.case.trace.events.len() >= CONCLUSIVE_EVENTS
}

/// Returns a finding; `message` begins with the setting.
fn finding(message: &str, advice: &str) -> Finding {
    Finding::new(FindingCode::IneffectiveSetting, format!("The setting {message}"))
        .with_severity(Severity::Note)
        .with_remedy(Remedy::advice(advice))
}

/// `garbage_collect_cached_blocks` compares what is reserved with the threshold times the memory limit, and is called
/// only if there is a limit: `set_per_process_memory_fraction`, or `per_process_memory_fraction` since torch 2.10. It
/// skips blocks of expandable segments.
fn garbage_collection(context: &RuleContext<'_>) -> Option<Finding> {
    let settings = context.case.settings;
    let threshold = settings.garbage_collection_threshold;
    if threshold <= 0.0 {
        return None;
    }
    if context.has_expandable_segments() && context.segments().0 == 0 {
        return Some(finding(
            &format!(
                "garbage_collection_threshold:{threshold} does nothing here: it skips expandable segments, and all \
                     segments are expandable."
            ),
            "Leave one of the two settings out.",
        ));
    }
    let is_limited = settings.conf.contains("per_process_memory_fraction");
    (!is_limited).then(|| {
        finding(
            &format!(
                "garbage_collection_threshold:{threshold} does nothing unless the process has a memory limit, and the \
                 settings name none."
            ),
            "Set a limit with torch.cuda.set_per_process_memory_fraction(), below 1.0, or leave the threshold out.",
        )
    })
}

/// With expandable segments, `should_split` splits every large block, whatever `max_split_size_mb` says, while
/// `get_free_block` still refuses large cached blocks for smaller requests. Otherwise the setting concerns blocks of at
/// least its size only.
fn max_split_size(context: &RuleContext<'_>) -> Option<Finding> {
    let limit = context.case.settings.max_split_size?;
    let size = Bytes(limit);
    if context.has_expandable_segments() {
        return Some(
            finding(
                &format!(
                    "max_split_size_mb ({size}) does not keep blocks of expandable segments whole, but still keeps requests \
                     from using large cached blocks: together the two settings make reserved memory grow."
                ),
                "Leave max_split_size_mb out where expandable_segments is on.",
            )
            .with_severity(Severity::Warning),
        );
    }
    let events = &context.case.trace.events;
    let mut sizes = events.action.iter().zip(events.size.iter());
    let is_used = sizes.any(|(action, size)| action == Action::SegmentAlloc as u8 && size >= limit)
        || context.case.replay.state_at(0).ranges.iter().any(|range| range.size >= limit);
    (!is_used && is_conclusive(context)).then(|| {
        finding(
            &format!("max_split_size_mb ({size}) does nothing in this trace: no segment is that large."),
            "Leave it out, or set it below the sizes of the large segments.",
        )
    })
}

/// A build without the driver's virtual memory functions ignores the setting, as did torch 2.9.1 where it was set by
/// `PYTORCH_ALLOC_CONF`; pools with an allocator of their own never use it.
fn expandable_segments(context: &RuleContext<'_>) -> Option<Finding> {
    let (native, expandable) = context.segments();
    let is_set = context.case.settings.conf.contains("expandable_segments:True");
    (is_set && expandable == 0 && native > 0).then(|| {
        finding(
            &format!(
                "expandable_segments:True does nothing in this trace: {} ordinary.",
                counted_as(native, "segment is", "segments are")
            ),
            "Set it by PYTORCH_CUDA_ALLOC_CONF before the process starts; PyTorch warns at its start if the platform has no \
             support.",
        )
        .with_severity(Severity::Warning)
    })
}

/// Each entry of `roundup_power2_divisions` concerns requests between two powers of two.
fn rounding(context: &RuleContext<'_>) -> Option<Finding> {
    let divisions = &context.case.settings.roundup_power2_divisions;
    if divisions.iter().all(|divisions| *divisions < 2) {
        return None;
    }
    let requested = &context.case.replay.allocations.requested;
    let is_used = requested.iter().any(|bytes| round_size(divisions, bytes) != round_size(&[0; 16], bytes));
    (!is_used && is_conclusive(context)).then(|| {
        finding(
            &format!(
                "roundup_power2_divisions does nothing in this trace: it leaves the size of its {} as it is.",
                counted(requested.len() as u64, "allocation")
            ),
            "Leave it out, or name the sizes that the program requests.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;
    use trace::Settings;

    fn found(settings: Settings) -> Vec<String> {
        let rest = "alloc 0x12100000 2097152 g@/m/a.py:2\nfree 0x12100000\n".repeat(CONCLUSIVE_EVENTS / 3);
        let lines = format!("segment_alloc 0x10000000 104857600\nalloc 0x10000000 34603008 f@/m/a.py:1\n{rest}");
        trace(&lines).with_settings(settings).messages(FindingCode::IneffectiveSetting)
    }

    fn conf(conf: &str) -> Settings {
        Settings { conf: conf.to_owned(), ..Settings::default() }
    }

    #[test]
    fn settings_without_effect_are_found() {
        let threshold = Settings { garbage_collection_threshold: 0.8, ..conf("garbage_collection_threshold:0.8") };
        assert_eq!(
            found(threshold),
            [
                "The setting garbage_collection_threshold:0.8 does nothing unless the process has a memory limit, and the settings name none."
            ]
        );
        assert_eq!(
            found(conf("expandable_segments:True")),
            ["The setting expandable_segments:True does nothing in this trace: 1 segment is ordinary."]
        );
        assert_eq!(
            found(Settings { max_split_size: Some(200 << 20), ..Settings::default() }),
            ["The setting max_split_size_mb (200 MiB) does nothing in this trace: no segment is that large."]
        );
        // Only requests from 1 GiB on are concerned.
        let mut large = Settings::default();
        large.roundup_power2_divisions[10] = 4;
        assert_eq!(
            found(large),
            [
                "The setting roundup_power2_divisions does nothing in this trace: it leaves the size of its 334 allocations as it is."
            ]
        );
        let both = Settings { max_split_size: Some(64 << 20), expandable_segments: true, ..Settings::default() };
        assert_eq!(found(both).len(), 1);
    }

    #[test]
    fn settings_with_an_effect_are_left_alone() {
        let limited = "garbage_collection_threshold:0.8,per_process_memory_fraction:0.5";
        let cases = [
            Settings::default(),
            Settings { garbage_collection_threshold: 0.8, ..conf(limited) },
            Settings { max_split_size: Some(64 << 20), ..Settings::default() },
            Settings { roundup_power2_divisions: [4; 16], ..Settings::default() },
            conf("expandable_segments:False"),
        ];
        for settings in cases {
            assert_eq!(found(settings.clone()), [""; 0], "{settings:?}");
        }
    }
}
