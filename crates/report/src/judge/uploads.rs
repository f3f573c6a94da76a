//! Whether the bodies that robots sent arrived at servers, and as often as they were sent.

use polygraph_stats::{Block, Class, EndReason};

use super::blame::ERRORS_MAX;
use super::surplus::unexplained;
use super::{Findings, logs, unasked};
use crate::facts::{RunFacts, SideFacts};

pub(super) const UPLOADS: &str = "uploads";
/// Fewer uploads than these prove nothing: some are under way when logs end.
const LEAST: f64 = 10.0;
/// What a device did that made other requests of uploads.
const ALTERED: &str = "altered requests";
/// What a device did that kept uploads from servers.
const ANSWERED_ITSELF: &str = "answered uploads itself";

fn of(class: Class, block: &Block) -> f64 {
    block.class(class).size.count() as f64
}

/// Uploads of robots, and those that arrived at servers.
#[derive(Clone, Copy)]
struct Uploads {
    methods: &'static str,
    sent: f64,
    arrived: f64,
}

impl Uploads {
    fn missing(self) -> f64 {
        self.sent - self.arrived
    }

    fn are_too_few(&self) -> bool {
        self.sent >= LEAST && self.missing() > allowed(self.sent)
    }

    fn text(self) -> String {
        let Uploads { methods, sent, arrived } = self;
        format!(
            "{sent:.0} uploads of robots ({methods}) got good replies, and {arrived:.0} arrived at servers"
        )
    }
}

fn total(side: &SideFacts) -> Option<&Block> {
    side.total.as_ref().map(|total| &total.block)
}

pub(super) fn uploads(facts: &RunFacts, found: &mut Findings) {
    let (Some(client), Some(server)) = (&facts.client, &facts.server) else { return };
    let (Some(robots), Some(servers)) = (total(client), total(server)) else { return };
    let of_method =
        |methods, class| Uploads { methods, sent: of(class, robots), arrived: of(class, servers) };
    let (posts, puts) = (of_method("POST", Class::Post), of_method("PUT", Class::Put));
    let (sent, arrived) = (posts.sent + puts.sent, posts.arrived + puts.arrived);
    let all = Uploads { methods: "POST, PUT", sent, arrived };
    let lacks_logs = logs::servers(client, server).is_some_and(|(here, planned)| here < planned);
    if sent < LEAST || facts.origin_gone.is_some() || lacks_logs || unasked::others_answered(facts) {
        return;
    }
    let (due, checked) = (servers.verified.due as f64, servers.verified.replies as f64);
    // Those that arrive with the other method make up for what is missing of both together.
    let lacking = [all, posts, puts].into_iter().find(Uploads::are_too_few);
    if let Some(lacking) = lacking.filter(|_| covers(server, client)) {
        let missing = lacking.missing();
        let surplus = |others: &Uploads| -others.missing();
        let changed =
            [posts, puts].into_iter().find(|other| (0.5..=2.0).contains(&(surplus(other) / missing)));
        let (deed, why) = match changed {
            Some(to) => (ALTERED, format!("about as many more {} arrived than robots sent", to.methods)),
            // What arrived as GET is among the plain requests there.
            None if 2.0 * unexplained(robots, servers) > missing => {
                (ALTERED, "about as many arrived as GET".to_owned())
            }
            None => {
                let which = if lacking.arrived == 0.0 { "all of them" } else { "the others" };
                (ANSWERED_ITSELF, format!("the device answered {which} itself, so their content is lost"))
            }
        };
        return found.failed_as(UPLOADS, deed, format!("{}: {why}", lacking.text()));
    }
    if due - checked > allowed(due) {
        let text = format!(
            "{:.0} of {due:.0} request bodies could not be verified, because they came without X-Upload",
            due - checked
        );
        found.failed_as(UPLOADS, ALTERED, text);
    }
    // Failed attempts may have arrived, too, and those that had not ended.
    let others = robots.failed_count() + robots.retried + open(client);
    if arrived - sent > allowed(sent) + others as f64 {
        let again = -posts.missing();
        let forbidden = match again > allowed(posts.sent) {
            true => format!(
                "; {again:.0} of these are POST, which nobody may send again on their own (RFC 9110, section 9.2.2)"
            ),
            false => String::new(),
        };
        found.warn(
            UPLOADS,
            format!(
                "{}: the device sends some more than once, or the logs do not cover the same time{forbidden}",
                all.text()
            ),
        );
    }
}

/// Whether the servers' logs go on as long as those of the robots, so that what robots sent must be in them. A server that ended without
/// traffic has missed nothing.
fn covers(server: &SideFacts, client: &SideFacts) -> bool {
    let end_s = client.processes.iter().map(|process| process.last_s).fold(0.0, f64::max);
    server.processes.iter().all(|process| {
        process.missing.is_empty() && (process.end == Some(EndReason::Idle) || process.lived_until(end_s))
    })
}

/// Transactions that had not ended when the logs of robots did.
fn open(client: &SideFacts) -> u64 {
    client.processes.iter().filter_map(|process| process.unfinished).sum()
}

/// So many may differ: some are under way when a log begins or ends.
fn allowed(count: f64) -> f64 {
    (LEAST / 2.0).max(ERRORS_MAX * count)
}
