//! A run at one moment in brief, and what changed from one run to another.

use compare::{Options, Run, compare, profile};
use query::run_comparison::{CompareRunsQuery, RunComparison};
use query::run_profile::{Conditions, MomentChoice, MostMemory, RunProfile, RunProfileQuery};
use query::{DeviceSummary, Sealed};
use trace::frames::StackId;
use trace::limits::PROFILED_LINES;
use trace::units::Count;

use super::Answering;
use crate::caches::Caches;
use crate::categories::CategoryCache;
use crate::context::Context;

/// Profiles the device of a session.
fn profiled(query: &RunProfileQuery, context: Context<'_>, caches: &mut Caches) -> Result<RunProfile, String> {
    let integrity = context.integrity;
    let known = Conditions {
        conf: context.snapshot.settings.conf.clone(),
        is_damaged: integrity.is_damaged || integrity.is_cut,
        ..context.header.map(|header| header.conditions(context.trace.device)).unwrap_or_default()
    };
    let mut found = caches.of::<CategoryCache>().lend(context, |roles| {
        let (best_frames, symbols) = (context.sites.best_frames(), context.symbols());
        let most = MostMemory { allocated: context.usage.peak_bytes, reserved: context.usage.peak_reserved };
        let run = Run {
            name: &query.name,
            input: context.replayed(),
            symbols,
            best_frames,
            roles,
            streams: &context.summary.streams,
            most,
            known: &known,
        };
        profile(&run, &query.moment)
    })?;
    for line in &mut found.lines {
        line.stack = context.sites.first(StackId(line.stack)).0;
    }
    Ok(found)
}

impl Answering for RunProfileQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<RunProfile>, String> {
        let profile = profiled(self, context, caches)?;
        if profile.lines.len() > PROFILED_LINES {
            return Err(format!(
                "{} has more than {} lines, too many for the page. `vramscope diff A B` compares any number.",
                self.name,
                Count(PROFILED_LINES as u64)
            ));
        }
        Ok(Sealed::new(&profile))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let moments = [
            MomentChoice::Peak,
            MomentChoice::End,
            MomentChoice::Step(2),
            MomentChoice::StepEnd(2),
            MomentChoice::Event(device.events / 2),
            MomentChoice::Time(1),
            MomentChoice::Mark("no such mark".to_owned()),
        ];
        moments.map(|moment| Self { name: "run".to_owned(), moment }).into()
    }
}

impl Answering for CompareRunsQuery {
    fn answer(&self, _: Context<'_>, _: &mut Caches) -> Result<Sealed<RunComparison>, String> {
        Ok(Sealed::new(&compare(&self.before, &self.after, &Options::default())))
    }

    fn examples(_: &DeviceSummary) -> Vec<Self> {
        let run = |name: &str| Sealed::new(&RunProfile { name: name.to_owned(), ..RunProfile::default() });
        vec![Self { before: run("a"), after: run("b") }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    const MIB: u64 = 1 << 20;

    /// A run whose line `f` has so many tensors of 1 MiB.
    fn session(tensors: u64) -> Session {
        let mut lines = "segment_alloc 0x40000000 4294967296".to_owned();
        for tensor in 0..tensors {
            lines += &format!("\nalloc {} {MIB} f@/m/a.py:3", 0x4000_0000 + tensor * MIB);
        }
        Session::new(trace::testing::snapshot(&lines), "pickle".to_owned(), Vec::new(), &mut |_| {})
    }

    #[test]
    fn both_runs_are_asked_for_their_profiles_and_one_for_the_difference() {
        let (mut a, mut b) = (session(2), session(5));
        let ask = |name: &str| RunProfileQuery { name: name.to_owned(), moment: MomentChoice::Peak };
        let before = a.ask(0, &ask("a.pickle")).unwrap();
        assert_eq!((before.lines.len(), before.memory.allocated, &*before.name), (1, 2 * MIB, "a.pickle"));
        let after = b.ask(0, &ask("b.pickle")).unwrap();
        let found = b.ask(0, &CompareRunsQuery { before, after }).unwrap();
        assert_eq!(found.growth(|memory| memory.allocated), 3 * MIB as i64);
        assert_eq!(found.runs.each_ref().map(|run| run.name.as_str()), ["a.pickle", "b.pickle"]);
        assert_eq!(
            found.sentence,
            "B's peak is 3.00 MiB higher (2.00 MiB → 5.00 MiB); nearly all of it is m/a.py:3 (f), which holds 5 tensors instead of 2."
        );
    }

    #[test]
    fn a_moment_that_a_run_does_not_have_is_refused_by_its_name() {
        let step = RunProfileQuery { name: "a.pickle".to_owned(), moment: MomentChoice::Step(3) };
        let refused = session(1).ask(0, &step);
        assert_eq!(
            refused.unwrap_err(),
            "a.pickle has no steps: nothing in it repeats. Name another moment, such as peak or end."
        );
    }
}
