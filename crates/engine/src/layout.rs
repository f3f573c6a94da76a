//! How the event loops of a side are distributed: in this process, or over worker processes if the file descriptors
//! of one process do not suffice.

/// The distribution of the loops of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of event loops, at least 1.
    pub loops: usize,
    /// Number of worker processes that share the loops; 0 if the loops are threads of this process.
    pub processes: usize,
}

impl Layout {
    /// `loops` threads of this process.
    pub fn threads(loops: usize) -> Layout {
        Layout { loops: loops.max(1), processes: 0 }
    }

    /// `processes` worker processes with at least one loop each.
    pub fn workers(loops: usize, processes: usize) -> Layout {
        Layout { loops: loops.max(processes).max(1), processes }
    }

    /// Divides the loops, in order, among `self.processes` processes.
    pub fn divide<T>(&self, loops: Vec<T>) -> Vec<Vec<T>> {
        let count = loops.len();
        let mut loops = loops.into_iter();
        let edge = |process: usize| count * process / self.processes.max(1);
        (0..self.processes.max(1))
            .map(|process| loops.by_ref().take(edge(process + 1) - edge(process)).collect())
            .collect()
    }
}

/// The estimated need of a side for file descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptorNeed {
    /// Connections that are open at the same time.
    pub connections: usize,
    /// Addresses to listen on, each with one socket in every loop of its process.
    pub listeners: usize,
    /// Number of loops that the user requested.
    pub loops: usize,
    /// The most parts into which the side can be divided, at least 1.
    pub most_loops: usize,
}

impl DescriptorNeed {
    /// Descriptors in each of `processes` processes.
    fn descriptors(&self, loops: usize, processes: usize) -> usize {
        let here = loops.div_ceil(processes);
        self.connections.div_ceil(processes) + self.listeners.div_ceil(processes) * here
    }
}

/// The need is an estimate, so a process is planned to use this share of its connection limit.
const PLANNED_SHARE: f64 = 0.8;
/// The most worker processes of a side.
const MOST_PROCESSES: usize = 1024;

/// Distributes the loops of all sides. The sides share this process if its `connections`, the connections that a
/// process may have open, suffice for all of them. `workers` overrides the number of worker processes of each side.
pub fn lay_out(sides: &[DescriptorNeed], workers: Option<usize>, connections: usize) -> Vec<Layout> {
    let budget = ((connections as f64 * PLANNED_SHARE) as usize).max(1);
    let loops_of = |need: &DescriptorNeed| need.loops.clamp(1, need.most_loops.max(1));
    let together: usize = sides.iter().map(|need| need.descriptors(loops_of(need), 1)).sum();
    let lay_out_side = |need: &DescriptorNeed| {
        let loops = loops_of(need);
        let most = MOST_PROCESSES.min(need.most_loops.max(1));
        match workers {
            None if together <= budget => Layout::threads(loops),
            None => {
                let fits = |&count: &usize| need.descriptors(loops.max(count), count) <= budget;
                Layout::workers(loops, (1..most).find(fits).unwrap_or(most))
            }
            Some(workers) => Layout::workers(loops, workers.clamp(1, most)),
        }
    };
    sides.iter().map(lay_out_side).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_as_many_as_descriptors_ask_for() {
        let need =
            |connections, listeners| DescriptorNeed { connections, listeners, loops: 0, most_loops: 1 << 20 };
        let robots = |count| DescriptorNeed { connections: count, listeners: 0, loops: 0, most_loops: count };
        // Sides, loops, requested workers, connections of a process, and (loops, processes) of each side.
        type Row<'a> = (&'a [DescriptorNeed], usize, Option<usize>, usize, &'a [(usize, usize)]);
        let rows: [Row<'_>; 9] = [
            (&[robots(10), need(10, 1)], 2, None, 20_000, &[(2, 0), (2, 0)]),
            (&[robots(1)], 4, None, 20_000, &[(1, 0)]),
            // 2 x 8,000 and two sockets at one address are just too much for one process, and not for two.
            (&[robots(8_000), need(8_000, 1)], 2, None, 20_000, &[(2, 1), (2, 1)]),
            (&[robots(100_000), need(100_000, 5_000)], 2, None, 20_000, &[(7, 7), (7, 7)]),
            (&[need(0, 10_000)], 4, None, 20_000, &[(4, 2)]),
            (&[robots(10), need(10, 1)], 2, Some(3), 20_000, &[(3, 3), (3, 3)]),
            (&[robots(2), need(10, 1)], 4, Some(3), 20_000, &[(2, 2), (4, 3)]),
            (&[robots(10)], 2, Some(1), 20_000, &[(2, 1)]),
            (&[robots(10)], 2, None, 1, &[(10, 10)]),
        ];
        for (sides, loops, workers, connections, expected) in rows {
            let sides: Vec<DescriptorNeed> =
                sides.iter().map(|need| DescriptorNeed { loops, ..*need }).collect();
            let layouts = lay_out(&sides, workers, connections);
            let found: Vec<_> = layouts.iter().map(|layout| (layout.loops, layout.processes)).collect();
            assert_eq!(found, expected, "{sides:?} {loops} {workers:?} {connections}");
        }
    }

    #[test]
    fn loops_are_divided_evenly_and_in_order() {
        for (loops, processes, parts) in [
            (4, 0, vec![vec![0, 1, 2, 3]]),
            (4, 2, vec![vec![0, 1], vec![2, 3]]),
            (5, 3, vec![vec![0], vec![1, 2], vec![3, 4]]),
        ] {
            let layout = Layout { loops, processes };
            assert_eq!(layout.divide((0..loops).collect()), parts);
        }
    }
}
