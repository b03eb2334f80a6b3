//! Rules that a change may break: `peak+2%`, `line+100MiB`.

use std::fmt;

use query::parse_bytes;
use query::run_comparison::{ChangedLine, RunComparison};
use query::run_profile::ProfiledMemory;
use trace::totals::difference;
use trace::units::Bytes;

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// What live tensors hold at the moment; at a step's peak, also the most of the whole run, if that grew more.
    Peak,
    /// What is reserved.
    Reserved,
    /// The line that grew most.
    Line,
    /// What is in free gaps; in percent, its share of what is reserved.
    Fragmentation,
}

impl Measured {
    const ALL: [(&'static str, Self); 4] = [
        ("peak", Self::Peak),
        ("reserved", Self::Reserved),
        ("line", Self::Line),
        ("fragmentation", Self::Fragmentation),
    ];
}

/// The most that may be added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// So many percent of the first run; of fragmentation, so many percentage points.
    Percent(f64),
    /// So many bytes.
    Bytes(u64),
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// As it was written.
    pub text: String,
    /// What it is about.
    pub measured: Measured,
    /// The most that may be added.
    pub limit: Limit,
}

/// Outcome of checking a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The rule.
    pub rule: Rule,
    /// Whether it is broken.
    pub is_tripped: bool,
    /// What was added, in bytes.
    pub bytes: i64,
    /// What was added, in the rule's own unit: percent, percentage points or bytes.
    pub value: f64,
    /// The line that it is about, if it is about one.
    pub line: Option<String>,
    /// Whether it is about the whole runs, and not about the moment.
    pub is_of_whole_run: bool,
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says how rules are written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let how = || {
            format!(
                "{text:?} is no rule. A rule is peak, reserved, line or fragmentation, a plus and the most that may be added: \
                 peak+2%, line+100MiB."
            )
        };
        let (measured, limit) = text.split_once('+').ok_or_else(how)?;
        let measured = Measured::ALL.into_iter().find(|(name, _)| *name == measured.trim()).ok_or_else(how)?.1;
        let limit = match limit.trim().strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.trim().parse().map_err(|_| how())?;
                Limit::Percent(Some(percent).filter(|percent| percent.is_finite() && *percent >= 0.0).ok_or_else(how)?)
            }
            None => Limit::Bytes(parse_bytes(limit.trim()).map_err(|_| how())?),
        };
        if measured == Measured::Line && matches!(limit, Limit::Percent(_)) {
            return Err(format!("{text:?}: a line is limited in bytes, such as line+100MiB."));
        }
        Ok(Self { text: text.to_owned(), measured, limit })
    }

    /// Checks a comparison.
    pub fn check(&self, compared: &RunComparison) -> Checked {
        let [before, after] = &compared.runs;
        let grown = compared.growth(|memory| memory.allocated);
        let outside = compared.outside_steps().filter(|[a, b]| {
            self.measured == Measured::Peak
                && difference(*b, *a) > grown
                && !compared.is_noise(|band| band.most_allocated, |run| run.most.allocated)
        });
        let (bytes, base, line) = match self.measured {
            Measured::Peak => match outside {
                Some([a, b]) => (difference(b, a), a, None),
                None => (grown, before.memory.allocated, None),
            },
            Measured::Reserved => (compared.growth(|memory| memory.reserved), before.memory.reserved, None),
            Measured::Fragmentation => (compared.signed_growth(ProfiledMemory::gaps), before.memory.reserved, None),
            Measured::Line => {
                let most = compared.lines.iter().filter(|line| !line.is_noise()).max_by_key(|line| line.growth());
                (most.map_or(0, ChangedLine::growth), 0, most.map(|line| line.label().to_owned()))
            }
        };
        let gap_share = |memory: &ProfiledMemory| memory.gaps() as f64 * 100.0 / (memory.reserved.max(1)) as f64;
        let (value, most) = match (self.limit, self.measured) {
            (Limit::Bytes(most), _) => (bytes as f64, most as f64),
            (Limit::Percent(most), Measured::Fragmentation) => {
                (gap_share(&after.memory) - gap_share(&before.memory), most)
            }
            (Limit::Percent(most), _) if base == 0 => (if bytes > 0 { f64::INFINITY } else { 0.0 }, most),
            (Limit::Percent(most), _) => (bytes as f64 * 100.0 / base as f64, most),
        };
        let is_noise = match self.measured {
            Measured::Peak => outside.is_none() && compared.is_noise(|band| band.allocated, |run| run.memory.allocated),
            Measured::Reserved => compared.is_noise(|band| band.reserved, |run| run.memory.reserved),
            Measured::Line | Measured::Fragmentation => false,
        };
        let is_tripped = value > most && !is_noise;
        Checked { rule: self.clone(), is_tripped, bytes, value, line, is_of_whole_run: outside.is_some() }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.bytes < 0 { "−" } else { "+" };
        write!(f, "{}: {sign}{}", self.rule.text, Bytes(self.bytes.unsigned_abs()))?;
        if matches!(self.rule.limit, Limit::Percent(_)) && self.value.is_finite() {
            let unit = if self.rule.measured == Measured::Fragmentation { "points" } else { "%" };
            write!(f, ", {:+.1} {unit}", self.value)?;
        }
        match &self.line {
            Some(line) => write!(f, ", {line}"),
            None if self.is_of_whole_run => write!(f, " over the whole run"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use query::run_profile::{MostMemory, ProfiledLine, ProfiledMoment, RunProfile};
    use trace::totals::Amount;

    use super::*;
    use crate::{Options, compare};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_rule_trips_above_its_limit_and_not_at_it() {
        let run = |allocated: u64, reserved: u64| RunProfile {
            memory: ProfiledMemory { allocated, blocks: allocated, active: allocated, reserved, outside: None },
            lines: vec![ProfiledLine {
                label: "f  m.py:1".to_owned(),
                held: Amount { bytes: allocated, count: 1 },
                ..ProfiledLine::default()
            }],
            ..RunProfile::default()
        };
        let compared = compare(&run(100 * MIB, 200 * MIB), &run(110 * MIB, 260 * MIB), &Options::default());
        for (rule, trips, text) in [
            ("peak+10%", false, "peak+10%: +10.0 MiB, +10.0 %"),
            ("peak+9.9%", true, "peak+9.9%: +10.0 MiB, +10.0 %"),
            ("peak+10MiB", false, "peak+10MiB: +10.0 MiB"),
            ("line+9MiB", true, "line+9MiB: +10.0 MiB, f  m.py:1"),
            ("reserved+30%", false, "reserved+30%: +60.0 MiB, +30.0 %"),
            ("reserved+0%", true, "reserved+0%: +60.0 MiB, +30.0 %"),
            ("fragmentation+7%", true, "fragmentation+7%: +50.0 MiB, +7.7 points"),
        ] {
            let checked = Rule::parse(rule).unwrap().check(&compared);
            assert_eq!((checked.is_tripped, checked.to_string().as_str()), (trips, text));
        }
    }

    #[test]
    fn a_peak_outside_the_compared_steps_counts() {
        let run = |of_step: u64, most: u64| RunProfile {
            memory: ProfiledMemory { allocated: of_step * MIB, ..ProfiledMemory::default() },
            most: MostMemory { allocated: most * MIB, reserved: 0 },
            moment: ProfiledMoment { step: Some(5), is_peak: true, ..ProfiledMoment::default() },
            ..RunProfile::default()
        };
        let check = |before, after, peers: Vec<RunProfile>| {
            let compared = compare(&before, &after, &Options { peers, ..Options::default() });
            let checked = Rule::parse("peak+2%").unwrap().check(&compared);
            (checked.is_tripped, checked.to_string())
        };
        let outside = "peak+2%: +60.0 MiB, +30.0 % over the whole run";
        assert_eq!(check(run(100, 200), run(100, 260), Vec::new()), (true, outside.to_owned()));
        let inside = "peak+2%: +10.0 MiB, +10.0 %";
        assert_eq!(check(run(100, 300), run(110, 300), Vec::new()), (true, inside.to_owned()));
        assert!(!check(run(100, 200), run(100, 260), vec![run(100, 280)]).0, "noise");
    }

    #[test]
    fn what_is_no_rule_is_refused_with_an_example() {
        for text in ["", "peak", "peak+", "peak+x", "peak-2%", "peak+-2%", "peak+NaN%", "all+2%", "line+2%"] {
            let error = Rule::parse(text).unwrap_err();
            assert!(error.contains("line+100MiB"), "{error}");
        }
    }
}
