//! The response-time controller: keeps the response time of a phase near a target by changing the load
//! (docs/reference/models.md, "Response-time controller").

use polygraph_link::Nanos;
use polygraph_plan::{Goal, Rptmstat};

use super::{Adjustment, ControlHandle, LoadController, Sampler};

/// Changes the load factor according to the mean response time of all successful transactions in each sample.
#[derive(Debug)]
pub struct ResponseTimeController {
    rule: Rptmstat,
    sampler: Sampler,
}

impl ResponseTimeController {
    /// A controller that follows `rule`.
    pub fn new(rule: Rptmstat) -> ResponseTimeController {
        let goal = Goal { duration: Some(rule.sample_dur), ..Goal::default() };
        ResponseTimeController { rule, sampler: Sampler::new(goal, Nanos::ZERO) }
    }
}

impl LoadController for ResponseTimeController {
    fn begin(&mut self, handle: &mut ControlHandle<'_>) {
        self.sampler = Sampler::new(self.sampler.goal, handle.now);
        handle.say(6, format!("fyi: rptmstat: {}", self.rule));
    }

    fn look(&mut self, handle: &mut ControlHandle<'_>) {
        let Some(sample) = self.sampler.look(handle.now, handle.delta) else { return };
        let mean = sample.all().rptm_us.mean().map(|us| us * 1e-6);
        let change = mean.map_or(0.0, |mean| self.rule.change(mean));
        // "No change" is reported at a higher level, which fewer users see.
        let level = if mean.is_some() && change == 0.0 { 8 } else { 7 };
        handle.say(level, format!("fyi: rptmstat: {}", self.rule.report(mean)));
        if change != 0.0 {
            handle.adjust(Adjustment::LoadBy(change));
        }
    }
}
