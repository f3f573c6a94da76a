//! A division as a table for people.

use std::fmt::{self, Display, Formatter};

use super::{Division, HostShare, SideShare};

/// Names of the columns.
const COLUMNS: [&str; 6] = ["host", "side", "agents", "requests/sec", "loops", "addresses"];

/// One line for each side of each host, below the column names. `-` is unknown before the test, or left to the command.
impl Display for Division {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rows = vec![COLUMNS.map(str::to_owned)];
        rows.extend(self.hosts.iter().flat_map(rows_of));
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let [host, side, agents, rate, loops] = [0, 1, 2, 3, 4].map(width);
        for row in &rows {
            // Words are aligned to the left, numbers to the right.
            let line = format!(
                "  {:<host$}  {:<side$}  {:>agents$}  {:>rate$}  {:>loops$}  {}",
                row[0], row[1], row[2], row[3], row[4], row[5]
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn rows_of(share: &HostShare) -> Vec<[String; COLUMNS.len()]> {
    let sides = [("client", &share.client), ("server", &share.server)];
    let present = sides.into_iter().filter_map(|(name, side)| Some((name, side.as_ref()?)));
    let mut rows: Vec<_> = present.map(|(name, side)| row(&share.host, name, side)).collect();
    if rows.is_empty() {
        let nothing = ["-", "0", "-", "-", "none: the other hosts take all of them"];
        let [side, agents, rate, loops, addresses] = nothing.map(str::to_owned);
        rows.push([share.host.clone(), side, agents, rate, loops, addresses]);
    }
    rows
}

fn row(host: &str, name: &str, side: &SideShare) -> [String; COLUMNS.len()] {
    let dash = || "-".to_owned();
    [
        host.to_owned(),
        name.to_owned(),
        side.agents.to_string(),
        side.rate.map_or_else(dash, |rate| format!("{rate:.2}")),
        side.loops.map_or_else(dash, |loops| loops.to_string()),
        side.ranges(),
    ]
}
