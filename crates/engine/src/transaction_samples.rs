//! Samples of single transactions on one side: merges what loops have sampled (docs/reference/statistics.md,
//! "Transaction samples").

use polygraph_link::Nanos;
use polygraph_plan::SamplePlan;
use polygraph_stats::xacts::SampleMerger;
use polygraph_stats::{Record, TransactionSample};

/// The message level of the start and end of samples.
const LEVEL: u8 = 3;

#[derive(Debug)]
struct ActiveSample {
    plan: SamplePlan,
    merger: SampleMerger,
    count: u64,
}

/// The transaction samples of one side.
#[derive(Debug)]
pub struct TransactionSamples(Vec<ActiveSample>);

impl TransactionSamples {
    /// Samples that have not started.
    pub fn new(plans: Vec<SamplePlan>) -> TransactionSamples {
        let running =
            |plan: SamplePlan| ActiveSample { merger: SampleMerger::new(plan.capacity), count: 0, plan };
        TransactionSamples(plans.into_iter().map(running).collect())
    }

    /// The records of an interval that ends `at_ns` after the `start` of the run: sampled transactions, and messages
    /// about samples that start or are complete. Times become relative to the start.
    pub fn records(&mut self, taken: Vec<TransactionSample>, start: Nanos, at_ns: u64) -> Vec<Record> {
        for TransactionSample { sample, mut xacts } in taken {
            xacts.iter_mut().for_each(|xact| xact.ended_ns = xact.ended_ns.saturating_sub(start.as_u64()));
            if let Some(running) = self.0.get_mut(sample) {
                running.merger.add(xacts);
            }
        }
        let mut records = Vec::new();
        let say = |records: &mut Vec<Record>, text| {
            records.push(Record::Comment { at_ns, level: LEVEL, text });
        };
        for at in 0..self.0.len() {
            let running = &mut self.0[at];
            let xacts = running.merger.draw();
            if xacts.is_empty() {
                continue;
            }
            let (name, capacity) = (running.plan.name.clone(), running.plan.capacity);
            if running.count == 0 {
                say(&mut records, format!("fyi: sample `{name}` of {capacity} transactions begins"));
                let others = |other: &&ActiveSample| other.count > 0 && other.count < other.plan.capacity;
                if let Some(other) = self.0.iter().find(others) {
                    say(&mut records, format!("warning: it overlaps the sample `{}`", other.plan.name));
                }
            }
            let running = &mut self.0[at];
            running.count += xacts.len() as u64;
            let full = running.merger.is_full();
            records.push(Record::Xacts { sample: name.clone(), xacts });
            if full {
                say(&mut records, format!("fyi: sample `{name}` is complete"));
            }
        }
        records
    }

    /// Messages about samples that are incomplete at the end.
    pub fn close(&self, at_ns: u64) -> Vec<Record> {
        let missing = self.0.iter().filter(|running| running.count < running.plan.capacity);
        let line = |running: &ActiveSample| Record::Comment {
            at_ns,
            level: LEVEL,
            text: format!(
                "fyi: sample `{}` has {} of {} transactions",
                running.plan.name, running.count, running.plan.capacity
            ),
        };
        missing.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_stats::Recorder;
    use polygraph_stats::Xact;

    fn lines(records: &[Record]) -> Vec<String> {
        let line = |record: &Record| match record {
            Record::Comment { level: LEVEL, text, .. } => text.clone(),
            Record::Xacts { sample, xacts } => {
                let times: Vec<u64> = xacts.iter().map(|xact| xact.ended_ns).collect();
                format!("{sample} {times:?}")
            }
            other => panic!("{other:?}"),
        };
        records.iter().map(line).collect()
    }

    #[test]
    fn samples_of_several_loops_become_one() {
        let plan =
            |name: &str, capacity| SamplePlan { name: name.into(), start: 0.0, of_run: false, capacity };
        let mut samples = TransactionSamples::new(vec![plan("a", 3), plan("b", 9)]);
        let loops = [Recorder::new(), Recorder::new()];
        loops.iter().for_each(|recorder| recorder.begin_sample(0, 3));
        let end = |of: usize, ended_ns| {
            loops[of].take(|| Xact {
                ended_ns,
                lifetime_us: 1,
                queued_us: None,
                id: String::new(),
                connection: 1,
                object: String::new(),
                size: 1,
                status: 200,
                robot: None,
                server: None,
                ims: None,
            });
        };
        let interval_report = |samples: &mut TransactionSamples| {
            let taken = loops.iter().flat_map(Recorder::taken).collect();
            lines(&samples.records(taken, Nanos::new(100), 50))
        };
        assert_eq!(interval_report(&mut samples), [""; 0]);
        end(0, 120);
        end(1, 110);
        let begun = ["fyi: sample `a` of 3 transactions begins", "a [10, 20]"];
        assert_eq!(interval_report(&mut samples), begun);
        loops[1].begin_sample(1, 9);
        end(0, 140);
        end(1, 130);
        let rest =
            ["a [30]", "fyi: sample `a` is complete", "fyi: sample `b` of 9 transactions begins", "b [30]"];
        assert_eq!(interval_report(&mut samples), rest);
        assert_eq!(lines(&samples.close(60)), ["fyi: sample `b` has 1 of 9 transactions"]);
    }
}
