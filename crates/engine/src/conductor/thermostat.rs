//! The thermostat: steers the load of a phase by its response time (reference: models.md, section 18.1).

use polygraph_plan::{Goal, Rptmstat};

use super::{Adjustment, Governor, Helm, Sampler};

/// Judges the mean response time of all that ended well in each sample, and changes the load factor.
#[derive(Debug)]
pub struct Thermostat {
    rule: Rptmstat,
    sampler: Sampler,
}

impl Thermostat {
    /// A thermostat that follows this rule.
    pub fn new(rule: Rptmstat) -> Thermostat {
        let goal = Goal { duration: Some(rule.sample_dur), ..Goal::default() };
        Thermostat { rule, sampler: Sampler::new(goal, 0) }
    }
}

impl Governor for Thermostat {
    fn begin(&mut self, helm: &mut Helm<'_>) {
        self.sampler = Sampler::new(self.sampler.goal, helm.now);
        helm.say(6, format!("fyi: rptmstat: {}", self.rule));
    }

    fn look(&mut self, helm: &mut Helm<'_>) {
        let Some(sample) = self.sampler.look(helm.now, helm.news) else { return };
        let mean = sample.all().rptm_us.mean().map(|us| us * 1e-6);
        let change = mean.map_or(0.0, |mean| self.rule.change(mean));
        // That all is well need not be said as loudly.
        let level = if mean.is_some() && change == 0.0 { 8 } else { 7 };
        helm.say(level, format!("fyi: rptmstat: {}", self.rule.report(mean)));
        if change != 0.0 {
            helm.adjust(Adjustment::LoadBy(change));
        }
    }
}
