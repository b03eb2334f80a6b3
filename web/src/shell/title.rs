//! The window's title. The file comes first, since it tells the browser's tabs apart, then the verdict.

use query::diagnosis::{Diagnosis, Verdict};
use query::finding::{Finding, FindingCode, Integrity};

use crate::model::{Model, Phase};

/// Returns the title: `run.pickle · out of memory, fragmented · Vramscope`.
pub fn title(model: &Model) -> String {
    let Some(file) = model.file() else { return "Vramscope".to_owned() };
    let said = match &file.phase {
        Phase::Failed { .. } => "can't be opened".to_owned(),
        Phase::Ready { .. } => match model.device() {
            Some(device) if device.events == 0 && model.integrity() != Integrity::default() => "damaged".to_owned(),
            _ => model.diagnosis().map(|whole| in_short(whole, model.is_partial())).unwrap_or_default(),
        },
        Phase::Loading { .. } | Phase::Away | Phase::Sweep(_) => String::new(),
    };
    let gap = if said.is_empty() { "" } else { " · " };
    format!("{}{gap}{said} · Vramscope", file.name)
}

/// Returns the verdict in a few words; empty if there is none. `is_partial` if a part of what happened is missing from the trace.
fn in_short(whole: &Diagnosis, is_partial: bool) -> String {
    let Verdict { cause, position, is_growing, sentence, .. } = &whole.verdict;
    match position {
        Some(_) => format!("out of memory, {}", cause.name().replace('_', " ")),
        None if *is_growing => "memory keeps growing".to_owned(),
        None if sentence.is_empty() => String::new(),
        // What it lacks may have shown one.
        None if is_partial || whole.findings.iter().any(is_lack) => "incomplete history".to_owned(),
        None => "no memory problem".to_owned(),
    }
}

/// Whether a finding says that a part of what happened is missing from the trace.
fn is_lack(finding: &Finding) -> bool {
    matches!(finding.code, FindingCode::RingOverflow | FindingCode::Inconsistent)
}

#[cfg(test)]
mod tests {
    use query::diagnosis::Cause;

    use super::*;

    #[test]
    fn a_verdict_in_a_few_words() {
        let of = |cause, position, is_growing, sentence: &str| {
            let sentence = sentence.to_owned();
            let verdict = Verdict { cause, position, is_growing, sentence, ..Verdict::default() };
            let whole = Diagnosis { verdict, ..Diagnosis::default() };
            [false, true].map(|is_partial| in_short(&whole, is_partial))
        };
        assert_eq!(of(Cause::Fragmented, Some(7), false, "…"), ["out of memory, fragmented"; 2]);
        assert_eq!(of(Cause::OutOfReach, Some(7), false, "…"), ["out of memory, out of reach"; 2]);
        assert_eq!(of(Cause::None, None, true, "…"), ["memory keeps growing"; 2]);
        assert_eq!(of(Cause::None, None, false, "…"), ["no memory problem", "incomplete history"]);
        assert_eq!(of(Cause::None, None, false, ""), [""; 2]);
        let verdict = Verdict { sentence: "…".to_owned(), ..Verdict::default() };
        for (code, want) in
            [(FindingCode::RingOverflow, "incomplete history"), (FindingCode::Rounding, "no memory problem")]
        {
            let findings = vec![Finding::new(code, "")];
            assert_eq!(
                in_short(&Diagnosis { verdict: verdict.clone(), findings, ..Diagnosis::default() }, false),
                want
            );
        }
    }

    #[test]
    fn without_a_file_only_the_name_of_the_page_is_left() {
        assert_eq!(title(&Model::default()), "Vramscope");
    }
}
