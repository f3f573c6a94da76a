//! A prediction as text for people.

use std::fmt::{self, Display, Formatter};

use polygraph_text as text;

use crate::predict::{Factor, Prediction, SidePrediction};

impl Display for Prediction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "agents")?;
        side(f, "robots", &self.robots)?;
        side(f, "servers", &self.servers)?;
        self.load_lines(f)?;
        self.content_lines(f)?;
        self.phase_lines(f)
    }
}

fn side(f: &mut Formatter<'_>, what: &str, side: &SidePrediction) -> fmt::Result {
    let addresses = match side.addresses == side.agents {
        true => String::new(),
        false => format!(" on {}", text::counted(side.addresses as u64, "address")),
    };
    let hosts = match side.hosts.len() {
        0 => String::new(),
        count => format!(", {}", text::counted(count as u64, "host")),
    };
    let agents = |count: usize| text::whole(count as u64);
    writeln!(f, "  {what:<8} {}{addresses}{hosts}", agents(side.agents))?;
    for host in &side.hosts {
        writeln!(f, "    {:<16} {:>7}  {}", host.host, agents(host.agents), shorten(&host.ranges))?;
    }
    if side.hosts.is_empty() && side.agents > 0 {
        writeln!(f, "    {:<16} {:>7}  {}", "", agents(side.agents), shorten(&side.ranges))?;
    }
    Ok(())
}

fn shorten(ranges: &str) -> String {
    match ranges.char_indices().nth(200) {
        Some((end, _)) => format!("{} ...", &ranges[..end]),
        None => ranges.to_owned(),
    }
}

impl Prediction {
    fn load_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let load = &self.load;
        writeln!(f, "\noffered load at the peak")?;
        match load.req_rate {
            Some(rate) => writeln!(f, "  requests      {rate:.2}/sec")?,
            None if self.robots.agents == 0 => writeln!(f, "  requests      none")?,
            None => writeln!(f, "  requests      as fast as replies come (best effort)")?,
        }
        if let Some(bits) = load.reply_bits_per_sec {
            writeln!(f, "  bandwidth     {:.2} Mbit/s of reply bodies", bits / 1e6)?;
        }
        if let Some(bytes) = self.mix.mean_bytes {
            writeln!(f, "  reply size    {:.2} KB on average", bytes / 1024.0)?;
        }
        writeln!(
            f,
            "  hit ratio     about {:.2} % of documents, {:.2} % of bytes offered",
            load.hit_ratio * 100.0,
            load.byte_hit_ratio * 100.0
        )?;
        if let Some(uses) = load.requests_per_conn {
            writeln!(
                f,
                "  connections   at least {:.2}/sec opened, at most {uses:.2} requests on each",
                load.new_conns_per_sec
            )?;
        }
        if let Some(limit) = load.max_conns {
            writeln!(f, "                at most {limit:.0} open")?;
        }
        if let Some(busy) = load.busy {
            writeln!(f, "                {busy:.0} busy while servers think")?;
        }
        Ok(())
    }

    fn content_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.mix.types.is_empty() {
            return Ok(());
        }
        writeln!(f, "\ncontents           requests  mean size  cachable")?;
        for kind in &self.mix.types {
            let size = kind.mean_bytes.map_or("?".to_owned(), |bytes| format!("{:.2} KB", bytes / 1024.0));
            let (share, cachable) = (kind.share * 100.0, kind.cachable * 100.0);
            writeln!(f, "  {:<16} {share:>7.2} % {size:>10} {cachable:>7.2} %", kind.kind)?;
        }
        Ok(())
    }

    fn phase_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nphases")?;
        let width = self.phases.iter().map(|phase| phase.name.len()).max().unwrap_or(4).max(4);
        let ends = self.phases.iter().map(|phase| phase.goal.len()).max().unwrap_or(4).max(4);
        writeln!(
            f,
            "  {:<width$} {:>9} {:>9}  {:<ends$}  {:>13} {:>13} {:>13} {:>13} {:>17}",
            "name", "starts", "lasts", "ends", "populus", "load", "recurrence", "special", "requests/sec"
        )?;
        // From the first phase that ends by a count, times are expectations.
        let mut sure = true;
        let about = |sure: bool, secs: f64| format!("{}{}", if sure { "" } else { "~" }, clock(secs));
        for phase in &self.phases {
            let is_timed = phase.duration_secs.is_some();
            let start = phase.start_secs.map_or("?".to_owned(), |secs| about(sure, secs));
            let lasts = phase.expected_secs.map_or("?".to_owned(), |secs| about(is_timed, secs));
            sure &= is_timed;
            let rate = phase.req_rate.map_or("?".to_owned(), |rate| arrow(rate, 1.0, ""));
            let note = match (phase.logged, phase.script) {
                (true, false) => "",
                (false, false) => "  not logged",
                (true, true) => "  script",
                (false, true) => "  not logged, script",
            };
            writeln!(
                f,
                "  {:<width$} {start:>9} {lasts:>9}  {:<ends$}  {:>13} {:>13} {:>13} {:>13} {rate:>17}{note}",
                phase.name,
                phase.goal,
                percent(phase.populus),
                percent(phase.load),
                percent(phase.recur),
                percent(phase.special_msg),
            )?;
        }
        match self.total_secs {
            Some(secs) => writeln!(f, "  {:<width$} {:>9} {:>9}", "total", "", about(sure, secs)),
            None => {
                let timed = clock(self.timed_secs);
                writeln!(
                    f,
                    "  {:<width$} {:>9} {timed:>9} and the phases whose length depends on replies",
                    "total", ""
                )
            }
        }
    }
}

fn percent(factor: Factor) -> String {
    arrow(factor, 100.0, " %")
}

fn arrow(factor: Factor, scale: f64, unit: &str) -> String {
    let number = |value: f64| polygraph_pgl::value::significant(value * scale, 4);
    match factor.beg == factor.end {
        true => format!("{}{unit}", number(factor.beg)),
        false => format!("{}-{}{unit}", number(factor.beg), number(factor.end)),
    }
}

/// Hours, minutes and seconds.
fn clock(secs: f64) -> String {
    let secs = secs.round() as u64;
    format!("{}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60)
}
