//! Lines that keep what they allocate.

use super::RuleContext;
use super::thresholds::{GRAVE_LEAK_PERCENT, LEAKS, STEPS_OF_SMALL_LEAK, is_share};
use crate::held;
use crate::rise::Rise;
use analysis::leak::{LeakCandidate, Trend};
use query::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use trace::units::{Count, counted};

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let peak = context.case.usage.peak_bytes;
    // Over a few steps, a buffer that fills up looks the same.
    let is_long =
        |leak: &LeakCandidate| context.rise_by_step(leak).is_none_or(|rise| rise.steps >= STEPS_OF_SMALL_LEAK);
    let leaks: Vec<&LeakCandidate> =
        context.rising.iter().filter(|leak| leak.is_leak() && (leak.is_decisive(peak) || is_long(leak))).collect();
    let more = leaks.len().saturating_sub(LEAKS);
    let last = leaks.len().min(LEAKS).saturating_sub(1);
    let first = leaks.iter().take(LEAKS).enumerate();
    first.map(|(i, leak)| finding(context, leak, if i == last { more } else { 0 })).collect()
}

fn finding(context: &RuleContext<'_>, leak: &LeakCandidate, more: usize) -> Finding {
    let others = match more {
        0 => String::new(),
        1 => " 1 other line keeps no more than that.".to_owned(),
        _ => format!(" {more} other lines keep no more than that."),
    };
    let text = Rise::of(context.case, *leak).text();
    let (count, since, until) =
        (counted(leak.count.into(), "allocation"), Count(leak.first_seen.into()), Count(leak.until.into()));
    if leak.trend == Trend::Replaced {
        let advice = "Cut it to what is still needed, or collect the parts on the CPU (.detach().cpu()).";
        return of(context, leak, format!("{text}, in {count}.{others}"), advice);
    }
    let were = if leak.count == 1 { "was" } else { "were" };
    let message =
        format!("{text}. {count} of it {were} still live after event {until}, the first since event {since}.{others}");
    let advice = held::advice(context.case.symbols, leak.stack).unwrap_or(
        "Find what holds them (a list, a dictionary, a hook, a closure, a graph that a loss keeps alive), and clear or bound it. \
         Where only values are needed, store .item() or .detach().cpu().",
    );
    of(context, leak, message, advice)
}

fn of(context: &RuleContext<'_>, leak: &LeakCandidate, message: String, advice: &str) -> Finding {
    let is_grave = is_share(leak.rise(), context.case.usage.peak_bytes, GRAVE_LEAK_PERCENT);
    Finding::new(FindingCode::Leak, message)
        .with_severity(if is_grave { Severity::Failure } else { Severity::Warning })
        .at(leak.until)
        .with_bytes(leak.last_bytes)
        .with_evidence(Evidence::Site(leak.stack.0))
        .with_remedy(Remedy::advice(advice))
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    /// Steps that each use a layer five times and keep a tensor of `kept` bytes at each of some lines.
    fn lines(kept: u64, at: &[&str]) -> String {
        let mut lines = "segment_alloc 0x10000000 524288000\n".to_owned();
        let mut address = 0x1100_0000_u64;
        for _ in 0..40 {
            for line in 1..11 {
                lines += &format!("alloc 0x10000000 4000000 layer@/m/l.py:{}\nfree 0x10000000\n", line % 2);
            }
            for line in at {
                lines += &format!("alloc {address} {kept} {line}\n");
                address += kept.next_multiple_of(512);
            }
        }
        lines
    }

    #[test]
    fn a_leak_is_told_with_its_count_its_slope_and_its_start() {
        let findings = trace(&lines(1_048_576, &["log@/m/a.py:7"])).findings();
        let [leak] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(
            leak.message,
            "m/a.py:7 (log) held 9.00 MiB a quarter of the way through and 40.0 MiB at the end, more at every step. 40 \
             allocations of it were still live after event 1,241, the first since event 32."
        );
        assert_eq!((leak.code, leak.severity, leak.bytes), (FindingCode::Leak, Severity::Failure, Some(40 << 20)));
    }

    #[test]
    fn where_the_trace_has_steps_the_slope_is_that_of_a_step() {
        let step = "alloc 0x20000000 512 step@/v/site-packages/torch/optim/adam.py:9 main@/m/t.py:8\nfree 0x20000000\n";
        let lines = lines(1_048_576, &["log@/m/a.py:7"]);
        let steps: Vec<String> =
            lines.split_inclusive("log@/m/a.py:7\n").map(|lines| lines.to_owned() + step).collect();
        let messages = trace(&steps.concat()).messages(FindingCode::Leak);
        assert_eq!(
            messages,
            [
                "m/a.py:7 (log) kept 1.00 MiB more in each step, over steps 1 to 40 (40.0 MiB in all). 40 allocations of it were \
                 still live after event 1,361, the first since event 32."
            ]
        );
    }

    #[test]
    fn the_largest_leaks_are_told_one_by_one() {
        let at = ["a@/m/a.py:1", "b@/m/a.py:2", "c@/m/a.py:3", "d@/m/a.py:4", "e@/m/a.py:5"];
        let messages = trace(&lines(1_048_576, &at)).messages(FindingCode::Leak);
        assert_eq!(messages.len(), 3);
        assert!(messages[2].ends_with(" 2 other lines keep no more than that."), "{}", messages[2]);
    }

    #[test]
    fn a_small_leak_is_a_warning() {
        let severity =
            |kept| trace(&lines(kept, &["log@/m/a.py:7"])).findings().first().map(|finding| finding.severity);
        assert_eq!(severity(6_000), Some(Severity::Warning));
        assert_eq!(severity(1), Some(Severity::Warning));
    }
}
