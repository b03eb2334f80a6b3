//! A sweep as the page shows it: each text and each place is ready, so that the page only draws.

use query::sweep::{Row, SweepPicture};

use super::{Largest, Run, Sweep};
use trace::narrow::number32;
use trace::units::{Bytes, Count, counted};

impl Sweep {
    /// Returns the sweep as it is shown.
    pub fn shown(&self) -> SweepPicture {
        let (runs, is_numeric) = (self.all_runs(), self.is_numeric());
        let largest = self.largest.as_ref();
        let place = |wanted: &Run| number32(runs.iter().position(|run| run.value == wanted.value).unwrap_or(0));
        let first = match largest.and_then(Largest::fits) {
            Some(fits) => place(fits),
            None => number32(runs.iter().position(|run| run.fits).unwrap_or(0)),
        };
        let end = |largest: &Largest| largest.fits().or(largest.fails()).map(|run| (place(run), largest.proof()));
        let name = self.card.as_ref().map_or_else(|| "capacity".to_owned(), |card| format!("capacity of {card}"));
        let at =
            |place: usize, run: &Run| run.number().filter(|_| is_numeric).map_or(place as f64, |number| number as f64);
        SweepPicture {
            verdict: self.verdict().unwrap_or_else(|| self.share()),
            subject: self.subject(),
            conditions: self.conditions(),
            param: self.param.clone(),
            capacity_bytes: self.capacity_bytes,
            capacity: format!("{name}: {}", Bytes(self.capacity_bytes)),
            is_numeric,
            rows: runs.iter().enumerate().map(|(place, run)| self.row(run, at(place, run))).collect(),
            first,
            proof: largest.and_then(end),
            words: self.words(&runs),
        }
    }

    fn row(&self, run: &Run, at: f64) -> Row {
        let Run { value, fits, peak_reserved, peak_allocated, retries, .. } = run.clone();
        let failure = run.failure();
        let (reserved, allocated) = (Bytes(peak_reserved), Bytes(peak_allocated));
        Row {
            at,
            fits,
            peak_reserved,
            peak_allocated,
            retries,
            driver_calls: run.driver_calls(),
            note: self.note(run).to_owned(),
            title: format!(
                "{}={value}: {reserved} reserved, {allocated} allocated, out of memory: {failure}",
                self.param
            ),
            command: self.command(&value),
            failure,
            value,
        }
    }

    /// Returns what a run proves.
    fn note(&self, run: &Run) -> &'static str {
        let is = |other: Option<&Run>| other.is_some_and(|other| other.value == run.value);
        match &self.largest {
            Some(largest) if is(largest.fits()) => "largest that fits",
            Some(Largest::Between { fails, .. }) if is(Some(fails)) => "the next fails",
            _ => "",
        }
    }

    /// Returns how many runs fit.
    fn share(&self) -> String {
        let fits = Count(self.runs.iter().filter(|run| run.fits).count() as u64);
        let all = counted(self.runs.len() as u64, "run");
        format!("{}: {fits} of {all} fit in {}", self.param, Bytes(self.capacity_bytes))
    }

    fn words(&self, runs: &[&Run]) -> String {
        let range = |peak: fn(&Run) -> u64| {
            let of = |run: &&Run| peak(run);
            let (least, most) = (runs.iter().map(of).min(), runs.iter().map(of).max());
            format!("from {} to {}", Bytes(least.unwrap_or(0)), Bytes(most.unwrap_or(0)))
        };
        let value = |run: Option<&&Run>| run.map_or("", |run| run.value.as_str()).to_owned();
        let failed: Vec<&str> = runs.iter().filter(|run| !run.fits).map(|run| run.value.as_str()).collect();
        let failed = match failed.as_slice() {
            [] => "No run ran out of memory.".to_owned(),
            failed => format!("Out of memory with {}.", failed.join(", ")),
        };
        format!(
            "Plot of {} from {} to {}: peak reserved memory {}, peak allocated memory {}, on a device of {}. {failed}",
            self.param,
            value(runs.first()),
            value(runs.last()),
            range(|run| run.peak_reserved),
            range(|run| run.peak_allocated),
            Bytes(self.capacity_bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{run, sweep};
    use super::*;

    fn values(shown: &SweepPicture, holds: fn(&Row) -> bool) -> String {
        shown.rows.iter().filter(|row| holds(row)).map(|row| row.value.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_proof_is_among_the_rows_and_the_largest_is_chosen_first() {
        let shown = sweep().shown();
        assert_eq!(values(&shown, |_| true), "64 128 256 280 281 512");
        assert_eq!(values(&shown, |row| !row.fits), "281 512");
        assert_eq!((values(&shown, |row| row.note == "largest that fits"), shown.first), ("280".to_owned(), 3));
        assert_eq!(values(&shown, |row| row.note == "the next fails"), "281");
        assert_eq!(shown.proof, Some((3, "280 fits, 281 fails".to_owned())));
        let places: Vec<f64> = shown.rows.iter().map(|row| row.at).collect();
        assert_eq!(places, [64.0, 128.0, 256.0, 280.0, 281.0, 512.0]);
        assert_eq!(shown.capacity, "capacity of A100-40GB: 40.0 GiB");
        assert_eq!(shown.rows[3].command, sweep().command("280"));
        assert!(shown.rows[4].title.ends_with("out of memory: a request of 281 KiB fails"), "{}", shown.rows[4].title);
        let bytes = query::encoding::encode(&shown);
        assert_eq!(query::encoding::decode::<SweepPicture>(&bytes).unwrap(), shown);
    }

    #[test]
    fn where_nothing_fits_the_first_is_chosen_and_proves_it() {
        let runs = [64, 128].map(|number| run(number, 0)).into();
        let shown = Sweep { runs, largest: Some(Largest::Below { fails: run(64, 0) }), ..sweep() }.shown();
        assert_eq!((shown.first, shown.proof), (0, Some((0, "64 fails, the start of the range".to_owned()))));
        assert!(shown.rows.iter().all(|row| row.note.is_empty()));
    }

    #[test]
    fn words_stand_in_their_order_and_say_how_many_fit() {
        let word = |value: &str, fits| Run { value: value.to_owned(), fits, ..run(1, 1) };
        let runs = vec![word("none", false), word("full", true), word("2", true)];
        let shown = Sweep { runs, largest: None, card: None, ..sweep() }.shown();
        assert_eq!(shown.rows.iter().map(|row| row.at).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
        assert_eq!((shown.is_numeric, shown.first, &shown.proof), (false, 1, &None));
        assert_eq!(shown.verdict, "batch: 2 of 3 runs fit in 40.0 GiB");
        assert_eq!(shown.capacity, "capacity: 40.0 GiB");
    }

    #[test]
    fn the_plot_has_a_text() {
        assert_eq!(
            sweep().shown().words,
            "Plot of batch from 64 to 512: peak reserved memory from 64.0 MiB to 512 MiB, peak allocated memory from 32.0 MiB \
             to 256 MiB, on a device of 40.0 GiB. Out of memory with 281, 512."
        );
        let fine = Sweep { runs: vec![run(1, 2)], largest: None, ..sweep() };
        assert!(fine.shown().words.ends_with(" No run ran out of memory."));
    }
}
