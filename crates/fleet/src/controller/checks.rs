//! Whether agents can work together.

use std::time::Duration;

use crate::clock::ClockOffset;
use crate::protocol::Inventory;

/// An agent that could take part in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What it says about itself.
    pub inventory: Inventory,
    /// The offset of its clock, if that was measured.
    pub clock: Option<ClockOffset>,
}

/// Everything that keeps these agents from carrying out a run together, each with its remedy. `version` is that of the
/// controller, `clocks` by how much clocks may differ.
pub fn check(candidates: &[Candidate], version: &str, clocks: Option<Duration>) -> Vec<String> {
    let mut problems = Vec::new();
    for Candidate { inventory, clock } in candidates {
        let name = &inventory.name;
        if inventory.version != version {
            problems.push(format!(
                "{name} has version {}, and this program is {version}: install the same version on all hosts",
                inventory.version
            ));
        }
        if let Some(run) = &inventory.busy {
            problems.push(format!(
                "{name} is busy with the run {run}: wait for its end, or end it with `polygraph fleet stop`"
            ));
        }
        if let Some((clock, limit)) = clock.zip(clocks)
            && clock.exceeds(limit)
        {
            problems.push(format!(
                "the clock of {name} is off by {clock} ms, and {} ms is the limit: synchronise the clocks (chrony, ntpd), or change \
                 --clock_limit",
                limit.as_secs_f64() * 1e3
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, version: &str, offset_ms: f64) -> Candidate {
        let inventory = Inventory {
            name: name.parse().unwrap(),
            instance: 1,
            host: name.to_owned(),
            version: version.to_owned(),
            client: true,
            server: false,
            weight: 1.0,
            cores: 2,
            memory: 1 << 30,
            disk_free: 1 << 30,
            busy: None,
        };
        let clock = Some(ClockOffset { seconds: offset_ms / 1e3, uncertainty: 0.0005 });
        Candidate { inventory, clock }
    }

    #[test]
    fn every_problem_is_named_with_its_agent() {
        let limit = Some(Duration::from_millis(5));
        let good = [candidate("a", "1", 0.1), candidate("b", "1", -5.4)];
        assert_eq!(check(&good, "1", limit), Vec::<String>::new());
        let mut bad = [candidate("a", "2", 0.0), candidate("b", "1", 7.0), candidate("c", "1", 0.0)];
        bad[2].inventory.busy = Some("r7".parse().unwrap());
        let problems = check(&bad, "1", limit);
        assert_eq!(problems.len(), 3, "{problems:?}");
        for (problem, part) in problems.iter().zip([
            "a has version 2",
            "the clock of b is off by +7.000 ms ± 0.500 ms, and 5 ms is the limit",
            "c is busy with the run r7",
        ]) {
            assert!(problem.contains(part), "{problem}");
        }
        assert_eq!(check(&bad, "1", None).len(), 2);
    }
}
