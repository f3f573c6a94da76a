//! Predictions of a workload: agents and addresses per host, phases, offered load, and warnings about what
//! hosts and networks cannot do.
//!
//! All figures are expectations computed from the workload alone. The robot's request rate is its total rate:
//! embedded objects are part of it. The offered hit ratio is recurrence times the cachable share of what is
//! requested.

mod lengths;
mod phases;
mod scaled;
mod text;
mod traffic;

use std::collections::{HashMap, HashSet};

use polygraph_addr::{Addr, Host, compact, join};
use polygraph_pgl::types::{AgentAddrs, BenchSide};
use polygraph_pgl::value::significant;
use polygraph_pgl::{Code, Diagnostic, Workload};
use serde::Serialize;

pub use crate::factor::Factor;
use crate::without_effect::settings_without_effect;
pub use phases::PhasePrediction;
pub use scaled::scaled;
pub(crate) use traffic::direct;
pub use traffic::{ContentMix, OfferedLoad};

/// The prediction of a workload.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// Robots and their addresses.
    pub robots: SidePrediction,
    /// Servers and their addresses.
    pub servers: SidePrediction,
    /// The schedule.
    pub phases: Vec<PhasePrediction>,
    /// The number of client processes that share robots and goals.
    pub processes: usize,
    /// Total time of the phases that end by time, in seconds.
    pub timed_secs: f64,
    /// Expected time of all phases, in seconds; `None` if that of some phase is unknown.
    pub total_secs: Option<f64>,
    /// The load at the peak.
    pub load: OfferedLoad,
    /// The content types with their shares of requests.
    pub mix: ContentMix,
}

/// The agents of one side.
#[derive(Debug, Clone, Serialize)]
pub struct SidePrediction {
    /// Number of agents.
    pub agents: usize,
    /// Number of different IP addresses.
    pub addresses: usize,
    /// The machines; empty if the bench names none.
    pub hosts: Vec<HostPrediction>,
    /// All addresses as ranges.
    pub ranges: String,
}

/// The agents of one machine.
#[derive(Debug, Clone, Serialize)]
pub struct HostPrediction {
    /// The address of the machine.
    pub host: String,
    /// Number of agents.
    pub agents: usize,
    /// Their addresses as ranges.
    pub ranges: String,
}

/// The phases with all factors resolved.
pub fn phase_plans(workload: &Workload) -> Vec<PhasePrediction> {
    phases::plan(workload, None)
}

/// Predicts what a workload does.
pub fn predict(workload: &Workload) -> Prediction {
    let bench = workload.bench.as_ref();
    let robots: Vec<&AgentAddrs> = workload.robots.iter().map(|robot| &robot.agent.addresses).collect();
    let servers: Vec<&AgentAddrs> = workload.servers.iter().map(|server| &server.agent.addresses).collect();
    let robots = side(&robots, bench.and_then(|bench| bench.client_side.as_deref()));
    let servers = side(&servers, bench.and_then(|bench| bench.server_side.as_deref()));
    let mix = traffic::mix(workload);
    let load = traffic::load(workload, &mix);
    let mut phases = phases::plan(workload, load.req_rate);
    let processes = processes(workload, &robots);
    lengths::fill_in(workload, &mix, &load, processes, &mut phases);
    let timed_secs = phases.iter().filter_map(|phase| phase.duration_secs).fold(0.0, |sum, secs| sum + secs);
    let total_secs = phases.iter().map(|phase| phase.expected_secs).sum();
    Prediction { robots, servers, phases, processes, timed_secs, total_secs, load, mix }
}

/// Client processes that share the robots: the machines of the bench or, if it names none, as many as it needs.
fn processes(workload: &Workload, robots: &SidePrediction) -> usize {
    let limit = workload.bench.as_ref().and_then(|bench| bench.client_side.as_deref()?.max_host_load);
    match (robots.hosts.len(), workload.peak_req_rate.zip(limit)) {
        (0, Some((peak, limit))) if limit.0 > 0.0 => polygraph_addr::xceil(peak, limit.0).max(1) as usize,
        (hosts, _) => hosts.max(1),
    }
}

fn side(agents: &[&AgentAddrs], bench: Option<&BenchSide>) -> SidePrediction {
    // Agents at each IP address and port. There may be a million of them, and many machines.
    let mut places: HashSet<(&Host, Option<u16>)> = HashSet::new();
    let mut numbers: HashMap<&Host, usize> = HashMap::new();
    let mut unique: Vec<AgentsOfAddress<'_>> = Vec::new();
    for addr in agents.iter().flat_map(|addrs| &addrs.0) {
        let number = *numbers.entry(&addr.host).or_insert_with(|| {
            unique.push(AgentsOfAddress::default());
            unique.len() - 1
        });
        unique[number].agents += 1;
        if places.insert((&addr.host, addr.port)) {
            unique[number].places.push(addr);
        }
    }
    // Interface and subnet describe the machine and would clutter the ranges.
    let bare = |addresses: &[AgentsOfAddress<'_>]| {
        let places = addresses.iter().flat_map(|address| &address.places);
        let places = places.map(|addr| Addr { interface: None, subnet: None, ..(*addr).clone() });
        join(&compact(places), " ")
    };
    let count = |addresses: &[AgentsOfAddress<'_>]| addresses.iter().map(|address| address.agents).sum();
    let machines = bench.map_or(&[][..], |bench| &bench.hosts);
    let mut hosts = Vec::new();
    if !machines.is_empty() && unique.len().is_multiple_of(machines.len()) {
        for (machine, share) in machines.iter().zip(unique.chunks((unique.len() / machines.len()).max(1))) {
            let (agents, ranges) = (count(share), bare(share));
            hosts.push(HostPrediction { host: machine.host.to_string(), agents, ranges });
        }
    }
    SidePrediction { agents: count(&unique), addresses: unique.len(), hosts, ranges: bare(&unique) }
}

/// The agents of one IP address.
#[derive(Debug, Default)]
struct AgentsOfAddress<'a> {
    agents: usize,
    /// The address with each port that they have.
    places: Vec<&'a Addr>,
}

/// Ports that one client address has towards one server address on a typical system (32768 to 60999).
const PORTS: f64 = 28_232.0;
/// Seconds for which a closed connection keeps its port.
const TIME_WAIT_SECS: f64 = 60.0;
/// Bits per second of a typical network card.
const CARD_BITS: f64 = 1e9;
/// Memory of one robot or server in bytes, and of one open connection with its kernel buffers.
const AGENT_BYTES: f64 = 1_000.0;
const CONN_BYTES: f64 = 10_000.0;
/// Memory of a typical machine in bytes.
const HOST_BYTES: f64 = 8e9;

/// True if robots offer more than the bench allows, by more than rounding explains: schemes round the number of
/// robots up, because all hosts and all addresses get the same number.
fn above_peak(rate: f64, peak: f64, plan: &Prediction) -> bool {
    let robots = plan.robots.agents.max(1) as f64;
    let per_address = (robots / plan.robots.addresses.max(1) as f64).ceil();
    let rounded_up = 1.0 + per_address * plan.robots.hosts.len().max(1) as f64;
    rate > peak * 1.1 && rate - peak > rounded_up * rate / robots
}

/// Warnings about a workload and its prediction: settings without effect, and what hosts, ports and networks cannot do.
pub fn warnings(workload: &Workload, plan: &Prediction) -> Vec<Diagnostic> {
    let mut found = settings_without_effect(workload);
    let hosts = plan.robots.hosts.len().max(1) as f64;
    let bench = workload.bench.as_ref();
    let client = bench.and_then(|bench| bench.client_side.as_deref());
    let Some(rate) = plan.load.req_rate else { return found };
    if let Some(limit) =
        client.and_then(|side| side.max_host_load).filter(|limit| rate / hosts > limit.0 * 1.01)
        && !plan.robots.hosts.is_empty()
    {
        let text = format!(
            "each of {hosts} client hosts offers {:.1} requests/sec, above its max_host_load of {}/sec",
            rate / hosts,
            limit.0
        );
        found.push(Diagnostic::new(Code::Load, None, text).help("list more hosts or lower peak_req_rate"));
    }
    if let Some(peak) = workload.peak_req_rate.filter(|peak| above_peak(rate, *peak, plan)) {
        let robots = plan.robots.agents;
        let text = format!(
            "{robots} robots offer {} requests/sec, above the bench's peak_req_rate of {}/sec",
            significant(rate, 6),
            significant(peak, 6)
        );
        let each = significant(peak / robots.max(1) as f64, 4);
        found.push(
            Diagnostic::new(Code::Load, None, text)
                .note("the total rate is the req_rate of a robot times the number of robots")
                .help(format!("lower the robots' req_rate to {each}/sec, or raise peak_req_rate")),
        );
    }
    if let Some(bits) = plan.load.reply_bits_per_sec
        && bits / hosts > 0.8 * CARD_BITS
    {
        let text = format!("each client host receives {:.0} Mbit/s of replies", bits / hosts / 1e6);
        let finding = Diagnostic::new(Code::Bandwidth, None, text)
            .note("a common network card carries 1000 Mbit/s, overhead included");
        found.push(finding.help("use faster cards or more client hosts"));
    }
    let ports = plan.load.new_conns_per_sec * TIME_WAIT_SECS / plan.robots.addresses.max(1) as f64;
    if ports > PORTS {
        let text = format!(
            "each client address opens {:.0} connections per minute and has {PORTS} ports to one destination",
            ports
        );
        found.push(
            Diagnostic::new(Code::Ports, None, text)
                .help("use more addresses or raise the robots' pconn_use_lmt"),
        );
    }
    let memory =
        (plan.robots.agents as f64 * AGENT_BYTES + plan.load.max_conns.unwrap_or(0.0) * CONN_BYTES) / hosts;
    if memory > HOST_BYTES {
        let text =
            format!("agents and open connections of a client host may take {:.0} GB of memory", memory / 1e9);
        found.push(
            Diagnostic::new(Code::Memory, None, text).help("use more client hosts or a lower open_conn_lmt"),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use polygraph_pgl::{MemoryLoader, Options, compile};

    use super::*;

    /// A test of 10 robots on one address each; `{}` are more settings of robots, servers and the program.
    fn program(robots: &str, rate: &str, more: &str) -> String {
        format!(
            "Content C = {{ size = const(13KB); cachable = 80%; }};\n\
             Server S = {{ contents = [ C ]; addresses = [ '10.0.1.1:80' ]; }};\n\
             Robot R = {{ origins = S.addresses; addresses = {robots}; req_rate = {rate}; }};\n\
             Phase P = {{ name = \"p\"; goal.duration = 1min; }};\n{more}\nschedule(P); use(S, R);\n"
        )
    }

    fn plan(text: &str) -> (Workload, Prediction) {
        let loader = MemoryLoader::default().with("test.pg", text);
        let compilation = compile("test.pg", &loader, &Options::default());
        let text = compilation.render(polygraph_pgl::render::Style::Plain);
        let workload = compilation.workload.expect(&text);
        let plan = predict(&workload);
        (workload, plan)
    }

    /// Checks the classes of the warnings about a program, and words in their messages.
    fn check(text: &str, wanted: &[(Code, &str)]) {
        let (workload, plan) = plan(text);
        let found = warnings(&workload, &plan);
        let codes: Vec<Code> = found.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, wanted.iter().map(|(code, _)| *code).collect::<Vec<_>>(), "{text}\n{found:?}");
        for (finding, (_, words)) in found.iter().zip(wanted) {
            assert!(finding.message.contains(words), "{}", finding.message);
            assert!(!finding.help.is_empty(), "{}", finding.message);
        }
    }

    #[test]
    fn a_small_test_needs_no_warning() {
        check(&program("[ '10.0.0.1-10' ]", "1/sec", ""), &[]);
    }

    #[test]
    fn servers_at_ports_of_one_address_are_told_apart() {
        let servers = "Server S3 = S; S3.addresses = [ '10.0.1.1:81-83' ]; use(S3);";
        let (_, plan) = plan(&program("[ '10.0.0.1-10' ]", "1/sec", servers));
        assert_eq!((plan.servers.agents, plan.servers.addresses), (4, 1));
        let text = plan.to_string();
        assert!(text.contains("servers  4 on 1 address\n"), "{text}");
        assert!(text.contains(" 10.0.1.1:81-83 10.0.1.1:80\n"), "{text}");
    }

    #[test]
    fn ports_run_out_with_one_request_on_each_connection() {
        // 28,232 ports a minute are 470.5 connections per second and address.
        check(&program("[ '10.0.0.1-10' ]", "470/sec", ""), &[]);
        check(&program("[ '10.0.0.1-10' ]", "471/sec", ""), &[(Code::Ports, "28260 connections per minute")]);
        check(&program("[ '10.0.0.1-10' ]", "471/sec", "R.pconn_use_lmt = const(2);"), &[]);
        check(&program("[ '10.0.0.1' ] ** 10", "48/sec", ""), &[(Code::Ports, "28800 connections")]);
    }

    #[test]
    fn bandwidth_is_that_of_a_common_card() {
        // 13 KB are 106,496 bits: 800 Mbit/s are 7512 replies per second.
        let conns = "R.pconn_use_lmt = const(100);";
        check(&program("[ '10.0.0.1-10' ]", "751/sec", conns), &[]);
        check(&program("[ '10.0.0.1-10' ]", "752/sec", conns), &[(Code::Bandwidth, "801 Mbit/s")]);
        let hosts = format!("{conns} Bench B; B.client_side.hosts = [ '10.0.2.1-2' ]; use(B);");
        check(&program("[ '10.0.0.1-10' ]", "752/sec", &hosts), &[]);
    }

    #[test]
    fn memory_counts_agents_and_connections() {
        // 10 KB for each of 10 times 79,000 connections are 7.9 GB.
        check(&program("[ '10.0.0.1-10' ]", "1/sec", "R.open_conn_lmt = 79000;"), &[]);
        check(&program("[ '10.0.0.1-10' ]", "1/sec", "R.open_conn_lmt = 81000;"), &[(Code::Memory, "8 GB")]);
    }

    #[test]
    fn the_bench_limits_hosts_and_the_whole() {
        let bench = |peak: &str, host: &str| {
            format!(
                "Bench B = {{ peak_req_rate = {peak}; client_side = {{ hosts = [ '10.0.2.1' ]; max_host_load = {host}; }}; }}; use(B);"
            )
        };
        let with =
            |rate: &str, peak: &str, host: &str| program("[ '10.0.0.1-10' ]", rate, &bench(peak, host));
        check(&with("1/sec", "10/sec", "10/sec"), &[]);
        check(&with("1/sec", "10/sec", "9/sec"), &[(Code::Load, "max_host_load of 9/sec")]);
        check(&with("5/sec", "10/sec", "500/sec"), &[(Code::Load, "10 robots offer 50 requests/sec, above")]);
        // A bench that is only passed to a scheme counts as well.
        let scheme = "Bench B = { peak_req_rate = 10/sec; client_side = { max_host_load = 500/sec; max_agent_load = 1/sec; \
                      addr_space = [ '10.0.0.1-50' ]; }; }; PolyMix4As a = { agents_per_addr = 1; }; R.addresses = robotAddrs(a, B);";
        check(&program("undef()", "1/sec", scheme), &[]);
        check(
            &program("undef()", "5/sec", scheme),
            &[(Code::Load, "10 robots offer 50 requests/sec, above")],
        );
        // Schemes round up: 4 robots of 0.4/sec for 1/sec.
        check(&program("[ '10.0.0.1-2' ] ** 2", "0.4/sec", &bench("1/sec", "500/sec")), &[]);
    }

    /// Lengths of the phases, and their total.
    fn lengths(text: &str) -> (Vec<Option<f64>>, Option<f64>) {
        let (_, plan) = plan(text);
        let round = |secs: f64| (secs * 100.0).round() / 100.0;
        (plan.phases.iter().map(|phase| phase.expected_secs.map(round)).collect(), plan.total_secs.map(round))
    }

    #[test]
    fn phases_last_until_enough_is_counted() {
        // Ten requests per second; half of them are repeats and a fifth is not cachable: 4 new objects of 13 KB
        // per second for the cache.
        let with = |goal: &str, more: &str| {
            let robots = "R.pop_model.pop_distr = popUnif(); R.recurrence = 50%;".to_owned() + more;
            program("[ '10.0.0.1-10' ]", "1/sec", &robots).replace("goal.duration = 1min", goal)
        };
        for (goal, more, seconds) in [
            ("goal.fill_size = 5200KB", "", Some(100.0)),
            ("goal.xactions = 300", "", Some(30.0)),
            ("goal = { fill_size = 5200KB; duration = 90sec; }", "", Some(90.0)),
            // A quarter of the requests is not basic, so a quarter fewer objects come.
            ("goal.fill_size = 5200KB", "R.req_types = [ \"Ims304\": 25%, \"Basic\" ];", Some(133.33)),
            // The factor halves the repeats: 6 objects per second.
            ("goal.fill_size = 5200KB; recur_factor_beg = 0.5", "", Some(66.67)),
            ("goal.fill_size = 5200KB; load_factor_beg = 0.5", "", Some(200.0)),
            ("goal.fill_size = 5200KB; wait_wss_freeze = true", "working_set_cap(1000);", Some(250.0)),
            ("goal.fill_size = 5200KB; wait_wss_freeze = true", "working_set_cap(100);", Some(100.0)),
            ("goal.fill_size = 52KB; wait_wss_freeze = true", "working_set_length(5min);", Some(300.0)),
            ("goal.errors = 3", "", None),
            ("goal.fill_size = 5200KB", "R.req_rate = undef();", None),
            ("goal.fill_size = 5200KB", "R.recurrence = 100%;", None),
        ] {
            assert_eq!(lengths(&with(goal, more)), (vec![seconds], seconds), "{goal} {more}");
        }
        // With the rules of 4.9 the cap counts the objects of the phase.
        let cap = "working_set_cap(1000); compat(\"4.9\");";
        assert_eq!(lengths(&with("goal.fill_size = 5200KB; wait_wss_freeze = true", cap)).1, Some(250.0));
        // Two machines share the robots, and each has its own goal: together they fill twice as much.
        let bench = "Bench B = { peak_req_rate = 10/sec; client_side.max_host_load = 5/sec; }; use(B);";
        assert_eq!(lengths(&with("goal.fill_size = 5200KB", bench)).1, Some(200.0));
    }

    #[test]
    fn a_later_phase_begins_when_the_fill_is_expected_to_be_done() {
        let text =
            program("[ '10.0.0.1-10' ]", "1/sec", "Phase Q = { name = \"q\"; goal.duration = 1min; };")
                .replace("schedule(P)", "schedule(Q, P, Q)")
                .replace("name = \"p\"; goal.duration = 1min", "name = \"p\"; goal.fill_size = 10400KB");
        let (workload, plan) = plan(&text);
        let starts: Vec<_> = plan.phases.iter().map(|phase| phase.start_secs.map(f64::round)).collect();
        assert_eq!(starts, [Some(0.0), Some(60.0), Some(160.0)]);
        let words = plan.to_string();
        for line in
            ["  p      0:01:00  ~0:01:40  fill of 10.1562MB", "  q     ~0:02:40   0:01:00  1min", " ~0:03:40"]
        {
            assert!(words.contains(line), "{line}: {words}");
        }
        let tenth = predict(&scaled(workload, 0.1));
        assert_eq!((tenth.total_secs.map(f64::round), tenth.timed_secs), (Some(22.0), 12.0));
    }

    #[test]
    fn nobody_is_busy_if_servers_do_not_think() {
        let (_, quiet) = plan(&program("[ '10.0.0.1' ]", "4/sec", ""));
        assert_eq!(quiet.load.busy, None);
        assert!(!quiet.to_string().contains("busy"), "{quiet}");
        let (_, thinking) = plan(&program("[ '10.0.0.1' ]", "4/sec", "S.xact_think = const(2sec);"));
        assert!(thinking.to_string().contains(" 8 busy while servers think"), "{thinking}");
    }
}
