//! The printed answer: for programs as JSON, and for people as text.

use std::fmt;

use query::whatif::{CARDS, Card};
use serde::Serialize;
use trace::text::quoted;
use trace::units::{Bytes, Count, counted, counted_as};

use super::super::fit::Fit;
use super::super::tune::Printed;
use super::found::{Ended, Found, Readback};
use super::prediction::{DeviceMemory, Prediction, Process, SharedDevice};
use super::target::AMPLE;
use super::variable::Largest;

/// The lines that read values from the GPU that are listed.
const READBACKS: usize = 5;
/// The ranks that are listed.
const RANKS: usize = 16;
/// What NCCL takes, by the reports that `PREDICT.md` names.
const NCCL: &str = "users report 1.6 GB for one group of ranks, and 3 to 6 GB for several or with an all-to-all";
/// What no GPU has confirmed.
const UNCONFIRMED: &str = "Predicted, not measured: no GPU has confirmed this kind of job yet.";

/// A prediction with what it was asked for.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// The answer in a sentence.
    pub(super) sentence: String,
    /// What people call the program.
    pub(super) program: String,
    /// The version of PyTorch.
    pub(super) torch: String,
    /// The card that it should fit on.
    pub(super) card: Option<&'static str>,
    /// The bytes that the process can have of each device; `None` if nothing limits it.
    pub(super) room: Option<u64>,
    /// Whether it fits; `None` without a limit.
    pub(super) fits: Option<bool>,
    /// The bytes that it needs on the device where it needs most.
    pub(super) needs: u64,
    /// Whether it needs a larger share than `--fail-if-over` says.
    pub(super) is_over: Option<bool>,
    /// How long the program ran, in seconds.
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) prediction: Prediction,
    /// The prediction for a device without a limit, if it does not fit within the limit.
    pub(super) unlimited: Option<Prediction>,
    pub(super) cards: Vec<CardFit>,
    /// Whether its ranks stand for all others.
    #[serde(skip)]
    pub(super) is_of_classes: bool,
    /// The allocator settings that serve it best.
    pub(super) tuning: Option<Printed>,
    /// The largest number that fits, if one was varied.
    pub(super) largest: Option<Largest>,
    /// Whether all is printed.
    #[serde(skip)]
    pub(super) is_verbose: bool,
}

/// Whether it fits on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CardFit {
    pub(super) name: &'static str,
    /// The bytes that a process can have of it.
    pub(super) usable: u64,
    pub(super) fits: bool,
}

/// Returns whether a process that needs `bytes` fits on each card beside what others hold.
pub(super) fn cards(bytes: u64, held_by_others: u64) -> Vec<CardFit> {
    let on = |card: &Card| {
        let usable = card.usable().saturating_sub(held_by_others);
        CardFit { name: card.name, usable, fits: usable >= bytes }
    };
    CARDS.iter().map(on).collect()
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(largest) = &self.largest {
            self.write_largest(f, largest)?;
        }
        let Some((process, memory)) = self.prediction.largest() else { return Ok(()) };
        writeln!(f, "{}", self.sentence)?;
        if self.fits == Some(false) {
            match self.cards.iter().find(|card| card.fits) {
                Some(card) => writeln!(f, "The smallest card with that much is {}.", card.name)?,
                None => writeln!(f, "No card in the list has that much.")?,
            }
        }
        if let Some(error) = self.unlimited.as_ref().and_then(Prediction::error) {
            writeln!(
                f,
                "With more memory, it failed for another reason: {error}. It may need more than is said here."
            )?;
        }
        self.write_ranks(f)?;
        writeln!(f)?;
        match self.is_verbose {
            true => write!(f, "{}", memory.report)?,
            false => write!(f, "{}", memory.report.brief())?,
        }
        if let Some(tuning) = &self.tuning {
            write!(f, "{}", tuning.advice())?;
        }
        writeln!(f)?;
        self.write_end(f, process)?;
        self.write_readbacks(f, &process.found.readbacks)?;
        if process.found.convolutions {
            writeln!(f, "cuDNN's workspaces for convolutions come on top; how large they are depends on the card.")?;
        }
        if process.found.world.is_some_and(|world| world > 1) {
            writeln!(f, "NCCL's buffers come on top: {NCCL}.")?;
        }
        writeln!(f, "{UNCONFIRMED}")?;
        if self.is_verbose {
            self.cards.iter().try_for_each(|card| {
                let fits = if card.fits { "fits" } else { "does not fit" };
                writeln!(f, "  {:<16} {:>9} usable  {fits}", card.name, Bytes(card.usable).to_string())
            })?;
        }
        process.recording.iter().try_for_each(|path| writeln!(f, "→ vramscope open {}", quoted(path)))
    }
}

impl Answer {
    /// Returns it with its sentence.
    pub(super) fn said(self) -> Self {
        Self { sentence: self.sentence(), ..self }
    }

    /// Returns whether it fits, in a sentence.
    fn sentence(&self) -> String {
        let Some((_, DeviceMemory { conf, outcome, .. })) = self.prediction.largest() else { return String::new() };
        let fit = Fit { conf, outcome, needs: self.needs, room: self.room };
        let refused = self.prediction.refused();
        let mut fit = match self.room {
            Some(room) if refused > 0 && self.fits == Some(true) => {
                format!(
                    "FITS after {} failed and the program went on; it can have {}",
                    counted(refused, "request"),
                    Bytes(room)
                )
            }
            Some(room) if self.fits == Some(false) && !self.prediction.has_failed() => {
                let SharedDevice { device, processes, .. } = self.prediction.shared.unwrap_or_default();
                format!(
                    "DOES NOT FIT: {processes} processes use device {device} at the same time and need up to {}, but only {} is available",
                    Bytes(self.needs),
                    Bytes(room)
                )
            }
            None if self.prediction.has_failed() => format!("NEEDS more than {}, the most that is tried", Bytes(AMPLE)),
            _ => fit.to_string(),
        };
        // What it would do later is not known.
        let all = || self.prediction.processes.iter().map(|process| &process.found);
        let steps = |found: &Found| counted(found.steps, "step");
        if self.prediction.error().is_some() {
            let steps = all().max_by_key(|found| found.steps).map(steps).unwrap_or_default();
            fit = format!("FAILED after {steps}. Up to there: {fit}");
        } else if let Some(found) = all().filter(|found| found.is_stopped()).max_by_key(|found| found.steps)
            && self.fits != Some(false)
        {
            let then = if found.ended == Ended::Loop {
                ", then a loop that waits for a value which no kernel computes"
            } else {
                ""
            };
            fit += &format!(" (as far as it ran: {}{then})", steps(found));
        }
        self.card.map_or_else(|| fit.clone(), |card| format!("{card}: {fit}"))
    }

    fn write_largest(&self, f: &mut fmt::Formatter<'_>, largest: &Largest) -> fmt::Result {
        let name = largest.name();
        match (largest.fits, largest.fails) {
            (Some(fits), Some(fails)) => {
                writeln!(f, "{name} {}: the largest that fits. {} does not: both were run.", fits.value, fails.value)?;
            }
            (Some(fits), None) => writeln!(f, "{name} {}: fits, and is the largest of the range.", fits.value)?,
            (None, Some(fails)) => {
                writeln!(f, "{name} {}: does not fit, and is the smallest of the range.", fails.value)?;
            }
            (None, None) => {}
        }
        for run in &largest.runs {
            let what = if run.fits { Bytes(run.needs).to_string() } else { "does not fit".to_owned() };
            writeln!(f, "  {:>8}  {what}", run.value)?;
        }
        writeln!(f)
    }

    fn write_ranks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = &self.prediction.processes;
        let all = processes.iter().flat_map(|process| process.memory.iter().map(move |memory| (process, memory)));
        let count = all.clone().count();
        if count < 2 {
            return Ok(());
        }
        writeln!(f, "\n  {:>9}  {:>9}  {:>9}", "needs", "reserved", "allocated")?;
        for (process, memory) in all.take(RANKS) {
            let [needs, reserved, allocated] =
                [memory.needs, memory.peak_reserved, memory.peak_allocated].map(|bytes| Bytes(bytes).to_string());
            let name = process.found.name();
            writeln!(f, "  {needs:>9}  {reserved:>9}  {allocated:>9}  {name}, device {}", memory.device)?;
        }
        match count.saturating_sub(RANKS) {
            0 => {}
            more => writeln!(f, "  {} more: add --json", Count(more as u64))?,
        }
        if self.is_of_classes {
            writeln!(f, "  Ranks that are not listed are taken to be like one of these.")?;
        }
        if let Some(SharedDevice { needs, device, processes }) = self.prediction.shared {
            let needs = Bytes(needs);
            writeln!(
                f,
                "  {processes} processes use device {device} at the same time: together up to {needs}, with a context for each."
            )?;
        }
        Ok(())
    }

    /// Writes how far the program ran.
    fn write_end(&self, f: &mut fmt::Formatter<'_>, process: &Process) -> fmt::Result {
        let steps = counted(process.found.steps, "step");
        let Self { torch, seconds, program, .. } = self;
        let ran = format!("{program} ran on torch {torch} without a GPU for {seconds:.1} s");
        match process.found.ended {
            Ended::SamePeak => {
                writeln!(
                    f,
                    "{ran}. It was stopped after {steps}, since two in a row had the same peak. What comes later, such as an \
                     evaluation, may need more: --whole runs all."
                )
            }
            Ended::Steps => writeln!(f, "{ran}. It was stopped after {steps}."),
            Ended::Loop => writeln!(
                f,
                "{ran}. It was stopped in a loop that reads a value which no kernel computed, again and again: see below."
            ),
            Ended::Time => writeln!(
                f,
                "{ran}. It was stopped there, after {steps}: what comes later may need more (--seconds gives it more time)."
            ),
            Ended::Exit if process.found.steps == 0 => writeln!(f, "{ran}, to its end."),
            Ended::Exit => writeln!(f, "{ran}, to its end, with {steps}."),
            Ended::OutOfMemory => writeln!(f, "{ran}, until memory ran out after {steps}."),
            Ended::Error => {
                writeln!(f, "{ran}, until it failed after {steps}. Up to there it needs what is said above.")
            }
        }
    }

    /// Writes which lines read values that no kernel computed.
    fn write_readbacks(&self, f: &mut fmt::Formatter<'_>, readbacks: &[Readback]) -> fmt::Result {
        let made_up: Vec<&Readback> = readbacks.iter().filter(|readback| readback.made_up).collect();
        if made_up.is_empty() {
            return Ok(());
        }
        let read = counted_as(made_up.len() as u64, "line reads", "lines read");
        writeln!(
            f,
            "{read} values that no kernel computed. Where they decide what is done, a GPU may do otherwise (--value says what a line reads):"
        )?;
        let shown = if self.is_verbose { made_up.len() } else { READBACKS };
        for readback in made_up.iter().take(shown) {
            let place = match (&readback.file, readback.line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => "inside PyTorch".to_owned(),
            };
            writeln!(f, "  {place}  {}, {}", readback.op, counted_as(readback.count, "time", "times"))?;
        }
        match made_up.len().saturating_sub(shown) {
            0 => Ok(()),
            more => writeln!(f, "  {} more: add -v", Count(more as u64)),
        }
    }
}
