//! `--fail-on`: what makes a command exit with 1, so that a script or a CI job stops there.

use std::process::ExitCode;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use query::finding::Severity;
use report::DiagnosisReport;

use super::message::TRIPPED;

/// The exit codes, as the help of the program and of commands with gates tells them.
pub(super) const EXIT_STATUS: &str = "\
Exit status: 0 done; 1 a gate tripped, such as --fail-on; 2 it can't be done";

/// The exit codes of a command with `--fail-on`.
pub(super) const GATE_STATUS: &str = "\
Exit status:
  0  Done, and what --fail-on names was not found
  1  What --fail-on names was found
  2  It can't be done: invalid arguments, or a file, a device or a server that can't be used";

/// What trips the gate. Each one includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum FailOn {
    /// Nothing
    Never,
    /// A request that failed because memory ran out
    Oom,
    /// Also a leak
    Failure,
    /// Also a warning, such as of fragmentation or of lost events
    Warning,
    /// Any finding
    Note,
}

impl FailOn {
    /// Whether a device trips the gate.
    pub(super) fn is_tripped_by(self, device: &DiagnosisReport) -> bool {
        self.is_tripped(device.failed > 0, device.findings.iter().map(|finding| finding.severity))
    }

    /// Whether failed requests, or findings of some severities, trip the gate.
    pub(super) fn is_tripped(self, has_failed: bool, mut found: impl Iterator<Item = Severity>) -> bool {
        (has_failed && self >= Self::Oom) || found.any(|severity| self >= Self::of(severity))
    }

    /// Returns the gate that findings of a severity trip.
    fn of(severity: Severity) -> Self {
        match severity {
            Severity::Failure => Self::Failure,
            Severity::Warning => Self::Warning,
            Severity::Note => Self::Note,
        }
    }
}

/// Reads the gate of a run, which has no findings: `never` or `oom`.
pub(super) fn of_a_run() -> impl TypedValueParser<Value = FailOn> {
    PossibleValuesParser::new(["never", "oom"])
        .map(|text: String| if text == "oom" { FailOn::Oom } else { FailOn::Never })
}

/// Returns the exit code of a gate.
pub(super) fn code(is_tripped: bool) -> ExitCode {
    if is_tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gate_includes_those_before_it() {
        use FailOn::{Failure, Never, Note, Oom, Warning};
        let gates = [Never, Oom, Failure, Warning, Note];
        for (has_failed, found, first) in [
            (true, None, Oom),
            (false, Some(Severity::Failure), Failure),
            (false, Some(Severity::Warning), Warning),
            (false, Some(Severity::Note), Note),
        ] {
            for gate in gates {
                assert_eq!(gate.is_tripped(has_failed, found.into_iter()), gate >= first, "{gate:?}, {first:?}");
            }
        }
        assert!(gates.iter().all(|gate| !gate.is_tripped(false, std::iter::empty())));
    }
}
