//! The members of a sample by the names that phase scripts use (docs/reference/statistics.md, "Script samples").

use crate::class::Class;
use crate::summary_stats::{SummaryStats, TimeAndSize};
use crate::window::{LevelDelta, Window};

/// No sample has a member of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a StatSample has no member `{0}`")]
pub struct NoSuchMember(pub String);

/// Members with a common prefix.
enum Group {
    TimeAndSize(TimeAndSize),
    /// Counted values and values that are never counted, each with its name.
    Ratio([(&'static str, TimeAndSize); 2]),
    Level(LevelDelta),
    /// A ratio and a level under the same prefix.
    Xacts([(&'static str, TimeAndSize); 2], LevelDelta),
    /// Values with the factor by which they are multiplied.
    Summary(SummaryStats, f64),
}

const US: f64 = 1e-6;

impl Window {
    /// The value of a member such as `rep.rptm.mean`: times in seconds, sizes in bytes, rates per second, ratios and
    /// relative deviations as shares (0 to 1); `Ok(None)` if it is undefined, like the mean of no values.
    ///
    /// What is not counted has counts of 0: FTP, connections by protocol, unfinished transactions by status. Responses to requests that were refused because they had no credentials are those of `auth.ing` and
    /// `authenticating`, whose connections are not distinguished from others.
    ///
    /// # Errors
    /// If there is no such member.
    pub fn member(&self, path: &str) -> Result<Option<f64>, NoSuchMember> {
        let unknown = || NoSuchMember(path.to_owned());
        if let Some(value) = self.single(path) {
            return Ok(value);
        }
        let dots = path.match_indices('.').map(|(at, _)| at);
        let groups = dots.filter_map(|at| Some((self.group(&path[..at])?, &path[at + 1..])));
        groups.into_iter().find_map(|(group, rest)| self.of_group(&group, rest)).ok_or_else(unknown)
    }

    fn single(&self, path: &str) -> Option<Option<f64>> {
        let seconds = Some(self.seconds()).filter(|seconds| *seconds > 0.0);
        let ok = self.all().size.count + self.refused;
        Some(match path {
            "duration" => Some(self.seconds()),
            "baseline.req.rate" => seconds.map(|seconds| self.xacts.entered as f64 / seconds),
            "baseline.rep.rate" => seconds.map(|seconds| self.xacts.left as f64 / seconds),
            "ok_xact.count" => Some(ok as f64),
            "err_xact.count" => Some(self.failed as f64),
            "retr_xact.count" => Some(self.retried as f64),
            "err_xact.ratio" => share(self.failed as f64, (ok + self.failed) as f64),
            "authenticating.err_xact.count" => Some(self.failed_access as f64),
            "socks.err_xact.count" => Some(self.failed_layers[0] as f64),
            "ssl.err_xact.count" => Some(self.failed_layers[1] as f64),
            "connect.err_xact.count" => Some(self.failed_layers[2] as f64),
            "ftp.err_xact.count" => Some(0.0),
            _ => return None,
        })
    }

    fn group(&self, prefix: &str) -> Option<Group> {
        let of = |classes: &[Class]| Group::TimeAndSize(self.of(classes));
        let none = TimeAndSize::default;
        Some(match prefix {
            "rep" => Group::TimeAndSize(self.replies()),
            "basic" => of(&Class::BASIC),
            "fill" => of(&[Class::Miss]),
            "redired_req" => of(&[Class::RedirectedReq]),
            "rep_to_redir" => of(&[Class::RepToRedir]),
            "ims" => of(&[Class::Ims200, Class::Ims304]),
            "reload" => of(&[Class::Reload]),
            "range" => of(&[Class::Range]),
            "head" => of(&[Class::Head]),
            "post" => of(&[Class::Post]),
            "put" => of(&[Class::Put]),
            "abort" => of(&[Class::Abort]),
            "page" => Group::TimeAndSize(self.pages),
            "auth.ing" => Group::TimeAndSize(self.authenticating()),
            "auth.ed" => Group::TimeAndSize(self.authenticated),
            "auth.none" => Group::TimeAndSize(self.anonymous),
            "live.rep" => Group::TimeAndSize(self.live),
            "projected.rep" => Group::TimeAndSize(self.replies().with(&self.live)),
            "custom.rep" | "custom.projected.rep" => Group::TimeAndSize(self.custom),
            "tunneled" => Group::TimeAndSize(self.tunneled),
            "custom.live.rep" => Group::TimeAndSize(none()),
            "offered" => Group::Ratio([("hit", self.offered[0]), ("miss", self.offered[1])]),
            "real" => {
                let misses = self.of(&[Class::Miss, Class::Uncachable]);
                Group::Ratio([("hit", self.of(&[Class::Hit])), ("miss", misses)])
            }
            "cachable" => {
                let yes = self.of(&[Class::Hit, Class::Miss]);
                Group::Ratio([("yes", yes), ("no", self.of(&[Class::Uncachable]))])
            }
            "xact" => Group::Level(self.xacts),
            "populus" => Group::Level(self.populus),
            "wait" => Group::Level(self.waiting),
            "conn.open" => Group::Level(self.conns),
            "conn.estb" => Group::Level(self.established),
            "conn.idle" => Group::Level(self.idle),
            "conn.ttl" => Group::Summary(self.conn_ttl_us, US),
            "conn.use" => Group::Summary(self.conn_uses, 1.0),
            "baseline.rptm" => Group::Summary(self.all().rptm_us, US),
            "authenticating.xact" => xacts([none(), self.authenticating()]),
            "socks.xact" => xacts(self.socks),
            "ssl.xact" => xacts(self.secure),
            "connect.xact" => xacts([none(), self.connects]),
            "ftp.xact" => xacts([none(), none()]),
            "socks.conn" | "ssl.conn" | "ftp.conn" | "connect.conn" | "authenticating.conn" => {
                Group::Level(LevelDelta::default())
            }
            _ => return None,
        })
    }

    /// All replies except aborted ones.
    fn replies(&self) -> TimeAndSize {
        let classes = Class::ALL.into_iter().filter(|class| *class != Class::Abort);
        classes.fold(self.auth_steps, |sum, class| sum.with(&self.classes[class as usize]))
    }

    /// Unsuccessful steps of authentications: challenges that were answered, and refusals.
    fn authenticating(&self) -> TimeAndSize {
        self.of(&[Class::Authenticating]).with(&self.auth_steps)
    }

    fn of_group(&self, group: &Group, rest: &str) -> Option<Option<f64>> {
        match group {
            Group::TimeAndSize(sums) => of_tm_sz(sums, rest),
            Group::Summary(aggr, scale) => of_aggr(aggr, *scale, rest),
            Group::Level(flow) => self.of_level(flow, rest),
            Group::Ratio(both) => of_ratio(both, rest),
            Group::Xacts(both, flow) => of_ratio(both, rest).or_else(|| self.of_level(flow, rest)),
        }
    }

    fn of_level(&self, flow: &LevelDelta, leaf: &str) -> Option<Option<f64>> {
        Some(match leaf {
            "started" => Some(flow.entered as f64),
            "finished" => Some(flow.left as f64),
            "level.last" => Some(flow.last as f64),
            "level.mean" => Some(self.seconds()).filter(|s| *s > 0.0).map(|s| flow.integral / s),
            _ => return None,
        })
    }
}

/// Transactions that have ended: hits, and others.
fn xacts([hits, rest]: [TimeAndSize; 2]) -> Group {
    let times = hits.with(&rest).rptm_us;
    // The integral of a level is the sum of the times spent in it.
    let level = LevelDelta { last: 0, entered: times.count, left: times.count, integral: times.sum * US };
    Group::Xacts([("hit", hits), ("miss", rest)], level)
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn of_ratio(both: &[(&str, TimeAndSize); 2], rest: &str) -> Option<Option<f64>> {
    let [(yes, a), (no, b)] = both;
    match rest {
        "ratio.obj" => Some(share(a.size.count as f64, (a.size.count + b.size.count) as f64)),
        "ratio.byte" => Some(share(a.size.sum, a.size.sum + b.size.sum)),
        _ => {
            let (name, rest) = rest.split_once('.')?;
            let sums = if name == *yes { Some(a) } else { (name == *no).then_some(b) };
            of_tm_sz(sums?, rest)
        }
    }
}

fn of_tm_sz(sums: &TimeAndSize, rest: &str) -> Option<Option<f64>> {
    match rest.split_once('.')? {
        ("rptm", leaf) => of_aggr(&sums.rptm_us, US, leaf),
        ("size", leaf) => of_aggr(&sums.size, 1.0, leaf),
        _ => None,
    }
}

fn of_aggr(aggr: &SummaryStats, scale: f64, leaf: &str) -> Option<Option<f64>> {
    Some(match leaf {
        "count" => Some(aggr.count as f64),
        "mean" => aggr.mean().map(|value| value * scale),
        "min" => aggr.min().map(|value| value as f64 * scale),
        "max" => aggr.max().map(|value| value as f64 * scale),
        "sum" => Some(aggr.sum * scale),
        "std_dev" => aggr.std_dev().map(|value| value * scale),
        "rel_dev" => aggr.rel_dev(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Block, Finished};
    use crate::counts::{AuthScheme, CloseKind};
    use crate::error::ErrorKind;
    use crate::recorder::Recorder;
    use polygraph_link::Nanos;

    const SECOND: u64 = 1_000_000_000;

    /// Two seconds in the life of a loop in which something of everything happens.
    fn sample() -> Window {
        let recorder = Recorder::new();
        recorder.take_delta(Nanos::ZERO);
        let tickets: Vec<_> = (0..2 * Class::COUNT).map(|_| recorder.begin(Nanos::ZERO)).collect();
        tickets.into_iter().for_each(|ticket| recorder.end(ticket, Nanos::new(SECOND)));
        for (index, class) in Class::ALL.into_iter().enumerate() {
            for copy in 0..2u64 {
                recorder.finish(&Finished {
                    class,
                    rptm_us: 1000 * (index as u64 + 1) + copy * 500,
                    size: 100 * (index as u64 + 1),
                    offered_hit: matches!(class, Class::Hit) || copy == 1 && class == Class::Miss,
                    authenticated: (class == Class::Put).then_some(AuthScheme::Basic),
                    socks: matches!(class, Class::Hit | Class::Miss),
                    secure: class == Class::Head,
                    ..Finished::default()
                });
            }
        }
        recorder.read(recorder.begin(Nanos::new(SECOND)), 77);
        recorder.error(ErrorKind::Timeout, Nanos::new(1), String::new);
        recorder.error(ErrorKind::NoOriginChallenge, Nanos::new(1), String::new);
        recorder.with(|block: &mut Block| {
            block.page(3_000_000, 5000, 4);
            block.challenge(AuthScheme::Basic, 407, 2_000, 800, true);
            block.retried = 3;
            block.tls.tunneled.record(7_000, 70);
            block.tls.connects.record(1_000, 39);
            block.close_connection(CloseKind::Busy, 4_000_000, 8);
            block.close_connection(CloseKind::Busy, 2_000_000, 2);
            block.populus.set(Nanos::ZERO, 10);
            block.populus.set(Nanos::new(SECOND), 5);
            block.waiting.enter(Nanos::ZERO);
            block.waiting.leave(Nanos::new(SECOND / 2));
            (0..3).for_each(|_| block.conns.enter(Nanos::ZERO));
            (0..2).for_each(|_| block.established.enter(Nanos::ZERO));
            block.idle.enter(Nanos::new(SECOND));
        });
        recorder.take_delta(Nanos::new(2 * SECOND))
    }

    #[test]
    fn members_are_what_they_say() {
        let sample = sample();
        let (a_third, basic) = (2.0 / 6.0, 6.0);
        for (path, value) in [
            ("duration", 2.0),
            ("ok_xact.count", 28.0),
            ("err_xact.count", 2.0),
            ("err_xact.ratio", 2.0 / 30.0),
            ("retr_xact.count", 3.0),
            ("baseline.req.rate", 14.5),
            ("baseline.rep.rate", 14.0),
            ("baseline.rptm.count", 28.0),
            ("baseline.rptm.max", 0.0145),
            ("rep.rptm.count", 27.0),
            ("rep.size.sum", 2.0 * (10_500.0 - 400.0) + 800.0),
            ("basic.rptm.count", basic),
            ("basic.rptm.min", 0.001),
            ("fill.rptm.mean", 0.00225),
            ("fill.rptm.sum", 0.0045),
            ("fill.rptm.std_dev", 0.0005 / 2f64.sqrt()),
            ("fill.rptm.rel_dev", 0.0005 / 2f64.sqrt() / 0.00225),
            ("fill.size.mean", 200.0),
            ("abort.size.mean", 400.0),
            ("auth.ing.size.mean", 600.0),
            ("rep_to_redir.size.mean", 600.0),
            ("redired_req.size.mean", 700.0),
            ("ims.size.mean", 850.0),
            ("reload.size.mean", 1000.0),
            ("range.size.mean", 1100.0),
            ("head.size.mean", 1200.0),
            ("post.size.mean", 1300.0),
            ("put.size.mean", 1400.0),
            ("auth.ed.size.mean", 1400.0),
            ("auth.none.rptm.count", 22.0),
            ("page.rptm.mean", 3.0),
            ("page.size.sum", 5000.0),
            ("live.rep.rptm.sum", 1.0),
            ("live.rep.size.max", 77.0),
            ("projected.rep.rptm.count", 28.0),
            ("projected.rep.rptm.max", 1.0),
            ("custom.rep.rptm.count", 1.0),
            ("custom.projected.rep.size.max", 800.0),
            ("custom.live.rep.rptm.count", 0.0),
            ("offered.ratio.obj", 0.5),
            ("offered.hit.rptm.max", 0.0025),
            ("offered.miss.size.count", 3.0),
            ("real.ratio.obj", a_third),
            ("real.ratio.byte", 200.0 / 1200.0),
            ("real.hit.size.sum", 200.0),
            ("real.miss.rptm.count", 4.0),
            ("cachable.ratio.obj", 4.0 / 6.0),
            ("cachable.yes.size.sum", 600.0),
            ("cachable.no.size.sum", 600.0),
            ("xact.started", 29.0),
            ("xact.finished", 28.0),
            ("xact.level.last", 1.0),
            ("xact.level.mean", 14.5),
            ("populus.started", 10.0),
            ("populus.finished", 5.0),
            ("populus.level.mean", 7.5),
            ("wait.level.mean", 0.25),
            ("conn.open.level.last", 3.0),
            ("conn.estb.level.last", 2.0),
            ("conn.idle.level.mean", 0.5),
            ("conn.ttl.mean", 3.0),
            ("conn.use.sum", 10.0),
            ("authenticating.xact.started", 3.0),
            ("authenticating.xact.miss.size.sum", 1800.0),
            ("authenticating.err_xact.count", 1.0),
            ("socks.xact.ratio.obj", 0.5),
            ("socks.xact.hit.size.sum", 200.0),
            ("socks.xact.miss.size.sum", 400.0),
            ("socks.xact.started", 4.0),
            ("socks.xact.level.mean", 0.0035),
            ("socks.err_xact.count", 0.0),
            ("ssl.xact.miss.size.mean", 1200.0),
            ("ssl.xact.hit.size.count", 0.0),
            ("tunneled.rptm.max", 0.007),
            ("tunneled.size.sum", 70.0),
            ("connect.xact.miss.rptm.mean", 0.001),
            ("connect.xact.miss.size.sum", 39.0),
            ("ssl.conn.started", 0.0),
        ] {
            let member = sample.member(path).unwrap_or_else(|e| panic!("{e}"));
            assert!(member.is_some_and(|it| (it - value).abs() < 1e-9), "{path}: {member:?}, not {value}");
        }
        assert_eq!(sample.member("ftp.xact.ratio.obj"), Ok(None));
        assert_eq!(Window::default().member("rep.rptm.mean"), Ok(None));
        for path in
            ["", "rep", "rep.rptm", "rep.rptm.means", "rep.mean", "real.yes.size.sum", "conn.level.mean"]
        {
            assert_eq!(sample.member(path), Err(NoSuchMember(path.to_owned())));
        }
    }
    #[test]
    fn errors_of_layers_are_told_apart() {
        let recorder = Recorder::new();
        recorder.take_delta(Nanos::ZERO);
        for kind in [
            ErrorKind::SocksConnect,
            ErrorKind::SocksClosed,
            ErrorKind::TlsRefused,
            ErrorKind::TunnelRefused,
            ErrorKind::Timeout,
            // It is noted, and fails nothing.
            ErrorKind::TlsNotResumed,
        ] {
            recorder.error(kind, Nanos::new(1), String::new);
        }
        let sample = recorder.take_delta(Nanos::new(SECOND));
        for (path, value) in [
            ("err_xact.count", 5.0),
            ("socks.err_xact.count", 2.0),
            ("ssl.err_xact.count", 1.0),
            ("connect.err_xact.count", 1.0),
            ("ftp.err_xact.count", 0.0),
        ] {
            assert_eq!(sample.member(path), Ok(Some(value)), "{path}");
        }
    }
}
