//! A transaction from its start to its end, with what the robot brings along: credentials and cookies.

mod follow;
pub mod workers;

use std::cell::RefMut;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Link, Nanos};
use polygraph_stats::Block;
use polygraph_traffic::ranges::RangeSet;
use polygraph_traffic::rng::mix;
use polygraph_traffic::{Draw, Random};
use polygraph_wire::uri;

use super::RobotGroup;
use crate::exchange::pipeline::exchange_together;
use crate::exchange::{Done, Unfinished, exchange};
use crate::record;
use crate::request::auth::{AuthAnswers, AuthSource, RobotCredentials};
use crate::request::cookies::CookieJar;
use crate::request::generator::{Cause, Request};
use crate::request::page::Page;

/// A transaction answers so many challenges, at most.
const MAX_CHALLENGES: usize = 3;

impl<L: Link> RobotGroup<L> {
    /// One transaction from its start, now at `entered`, to its end. Returns true if it failed.
    pub(crate) async fn transact(
        self: &Rc<Self>,
        robot: usize,
        request: &mut Request,
        entered: Nanos,
    ) -> bool {
        self.robots()[robot].active += 1;
        if request.cause == Cause::Direct && request.planned > 0 {
            request.page = Some(Rc::new(Page::new(entered)));
        }
        request.ticket = self.recorder.begin(entered);
        if request.cause == Cause::Direct {
            self.recorder.with(|block| {
                block.late_us.record(entered.saturating_sub(request.due) / 1000);
                count_choice(block, request);
            });
        }
        let outcome = self.converse(robot, request, entered, None).await;
        let failed = record::settle(self, robot, request, outcome);
        let left_out_for_nothing = request.planned.saturating_sub(request.launched.get());
        if left_out_for_nothing > 0 {
            self.robots()[robot].forgive(left_out_for_nothing);
        }
        self.end_one(robot);
        failed
    }

    /// One of the robot's tasks is over; if it was the last, whoever waits for that is called.
    pub(crate) fn end_one(&self, robot: usize) {
        let active = {
            let robot = &mut self.robots()[robot];
            robot.active -= 1;
            robot.active
        };
        if active == 0 {
            let queue = self.quiet.borrow().get(&robot).cloned();
            if let Some(queue) = queue {
                queue.call();
            }
        }
    }

    /// Transactions that share a connection: the first one that waits, and others that go the same way. Those
    /// that are cut off by the failure of another one are tried again, each by itself.
    pub(crate) async fn transact_together(self: &Rc<Self>, robot: usize, hop: SocketAddr) {
        // Another task may have taken it along already.
        let Some(request) = self.backlog(robot).first(hop) else { return };
        self.robots()[robot].active += 1;
        let outcomes = exchange_together(self, robot, request, hop).await;
        for (request, outcome) in outcomes {
            let outcome = match outcome {
                // AuthAnswers to challenges go one by one.
                Some(Ok(done)) => self.converse(robot, &request, self.now(), Some(Box::new(done))).await,
                Some(unfinished) => unfinished,
                None => {
                    self.count_retry();
                    self.converse(robot, &request, self.now(), None).await
                }
            };
            record::settle(self, robot, &request, outcome);
        }
        self.end_one(robot);
    }

    /// Exchanges request and reply, from `now` on, and once more with credentials for each side that asks for them: all of
    /// that is one transaction (reference: models.md, section 21). The first exchange may have been made already.
    pub(crate) async fn converse(
        self: &Rc<Self>,
        robot: usize,
        request: &Request,
        mut now: Nanos,
        mut made: Option<Box<Done>>,
    ) -> Result<Done, Unfinished> {
        let (mut lines, mut first, mut sent, mut asked) = (Vec::new(), None, 0, Vec::new());
        let mut steps = None;
        loop {
            let mut done = match made.take() {
                Some(done) => *done,
                None => {
                    lines.clear();
                    let answers = self.write_private_lines(robot, request, &mut lines);
                    exchange(self, robot, request, &lines, answers, now).await?
                }
            };
            let began = done.started;
            done.started = *first.get_or_insert(began);
            sent += done.sent;
            done.sent = sent;
            done.exchanges = asked.len() as u32 + 1;
            done.challenge = steps;
            self.keep_cookies(robot, request, &done);
            let asker = match done.facts.status {
                407 => AuthSource::Proxy,
                401 if request.foreign.is_none() => AuthSource::Origin(request.server),
                _ => {
                    done.denied = done.facts.status == 403 && self.was_spoiled(robot);
                    if done.facts.status < 400 && self.was_spoiled(robot) {
                        // Proxies that ask do so for everything, origins perhaps for this alone.
                        let proxy = done.answers.proxy.map(|_| AuthSource::Proxy);
                        done.fooled = proxy.or(asked.last().copied());
                    }
                    return Ok(done);
                }
            };
            if self.profile(robot).credentials.is_empty() {
                return Ok(done);
            }
            let fields = done.facts.rare.as_deref().map_or(&[][..], |rare| &rare.challenges);
            let scheme = self.credentials(robot).learn(asker, fields, done.answers.to(asker));
            let Some(scheme) = scheme.filter(|_| asked.len() <= MAX_CHALLENGES) else {
                // With a spoiled password that is how it has to be.
                done.denied = self.was_spoiled(robot) && (done.answers.to(asker) || !asked.is_empty());
                return Ok(done);
            };
            asked.push(asker);
            steps = Some(scheme);
            now = self.now();
            let (size, status) = (done.facts.size(), done.facts.status);
            let custom = self.profile(robot).custom_scope.contains(status);
            self.recorder.with(|block| block.challenge(scheme, status, (now - began) / 1000, size, custom));
        }
    }

    /// Appends credentials and cookies. Foreign servers get neither. Tells whose challenges are answered.
    pub(crate) fn write_private_lines(
        &self,
        robot: usize,
        request: &Request,
        out: &mut Vec<u8>,
    ) -> AuthAnswers {
        let profile = self.profile(robot);
        let mut answers = AuthAnswers::default();
        if !profile.credentials.is_empty() {
            let url = self.url(request);
            let via_proxy = !profile.proxies.is_empty();
            let path = uri::split(url.as_bytes()).and_then(|parts| std::str::from_utf8(parts.path).ok());
            let target = if via_proxy { &url } else { path.unwrap_or("/") };
            let mut credentials = self.credentials(robot);
            if request.foreign.is_none() {
                answers.origin =
                    credentials.write(AuthSource::Origin(request.server), request.method.word(), target, out);
            }
            if via_proxy {
                answers.proxy = credentials.write(AuthSource::Proxy, request.method.word(), target, out);
            }
        }
        if request.foreign.is_some() {
            return answers;
        }
        let mut private = RefMut::map(self.robots(), |robots| &mut robots[robot].private);
        if let Some(jar) = private.as_mut().and_then(|private| private.jar.as_mut()) {
            let unix = u64::try_from(self.link.unix_seconds()).unwrap_or(0);
            jar.write(request.server, unix, out, &self.recorder);
        }
        answers
    }

    pub(crate) fn keep_cookies(&self, robot: usize, request: &Request, done: &Done) {
        let Some(rare) = done.facts.rare.as_deref().filter(|rare| !rare.cookies.is_empty()) else { return };
        if request.foreign.is_some() {
            return;
        }
        let profile = self.profile(robot);
        let unix = u64::try_from(self.link.unix_seconds()).unwrap_or(0);
        let mut choices = self.settings.seed.stream("cookies", (self.settings.first_robot + robot) as u64);
        if !choices.event(profile.cookie_sender) {
            return;
        }
        let room = profile.cookies_keep.sample(&mut choices).ceil().clamp(0.0, 1000.0) as usize;
        let mut private = self.private(robot);
        let jar = private.jar.get_or_insert_with(|| CookieJar::new(room));
        jar.store(request.server, &rare.cookies, unix, &self.recorder);
    }

    /// The robot's credentials, taken from the list when it needs them first.
    pub(crate) fn credentials(&self, robot: usize) -> RefMut<'_, RobotCredentials> {
        if self.private(robot).credentials.is_none() {
            self.private(robot).credentials = Some(Box::default());
            self.renew_credentials(robot);
        }
        RefMut::map(self.private(robot), |private| &mut **private.credentials.get_or_insert_default())
    }

    /// The next credentials of a random cycle (reference: models.md, section 21).
    pub(crate) fn renew_credentials(&self, robot: usize) {
        let (profile, cycle) = (self.profile(robot), &self.contexts[self.kind(robot)].credentials);
        let number = self.settings.first_robot + robot;
        let mut private = self.private(robot);
        let taken = private.credentials.as_ref().map_or(0, |credentials| credentials.renewals);
        let Some(at) = cycle.pick(number, taken) else { return };
        // The first are taken when a reply asks for them: the robot's own stream must not depend on that.
        let mut rng = Draw::new(self.settings.seed.derive("credentials", number as u64) ^ mix(taken));
        let credentials = private.credentials.get_or_insert_default();
        credentials.renew(&profile.credentials[at], rng.event(profile.auth_error));
    }

    pub(crate) fn was_spoiled(&self, robot: usize) -> bool {
        !self.profile(robot).credentials.is_empty() && self.credentials(robot).spoiled
    }
}

/// Counts how the object of a request was chosen, and its ranges.
fn count_choice(block: &mut Block, request: &Request) {
    let chosen = &mut block.oid_gen;
    let which = match (request.foreign.is_some(), request.repeat) {
        (true, false) => &mut chosen.new_foreign,
        (true, true) => &mut chosen.repeat_foreign,
        (false, false) => &mut chosen.new,
        (false, true) => &mut chosen.repeat,
    };
    *which += 1;
    if request.foreign.is_none() {
        *(if request.repeat_wanted { &mut chosen.need_repeat } else { &mut chosen.need_new }) += 1;
        chosen.lack_repeat += u64::from(request.repeat_wanted && !request.repeat);
    }
    if let Some(set) = request.ranges.as_deref() {
        count_ranges(block, set);
    }
}

fn count_ranges(block: &mut Block, set: &RangeSet) {
    let made = &mut block.range_gen;
    let mut all = 0;
    for spec in &set.specs {
        let (first, end) = spec.within(set.size);
        all += end.saturating_sub(first);
        made.spec_size.record(end.saturating_sub(first));
        made.spec_overflow += u64::from(spec.overflows(set.size));
    }
    made.set_size.record(all);
    made.specs_per_set.record(set.specs.len() as u64);
    made.first_last_swap += u64::from(set.swapped);
    made.set_overflow += u64::from(set.cut);
}
