//! A transaction, from its request to the requests that follow from its reply.
//!
//! The entry point is `RobotGroup::transact`. Read it from the top: the request is exchanged for a reply, and once more with
//! credentials for each side that demands them; the reply is judged; the outcome is recorded and remembered; embedded objects
//! and redirects become requests of their own (`RobotGroup::launch`).

mod alternative;
mod follow;
mod identity;
pub mod workers;

use std::future::pending;
use std::rc::Rc;

use polygraph_link::{Link, Nanos, yield_now};
use polygraph_stats::{AuthScheme, Class, ErrorKind};
use polygraph_traffic::{Method, WorldFacts};

use self::workers::{Job, MAX_RESTING};
use crate::connections::counts;
use crate::connections::hop::Hop;
use crate::connections::pool::PooledConnection;
use crate::connections::wait_queue::Waiter;
use crate::context::{RobotContext, keep};
use crate::exchange::reply::{Coding, ReplyMeta};
use crate::exchange::{AuthSteps, Completed, Exchange, InFlight, exchange};
use crate::failure::{Incomplete, TransactionFailure};
use crate::group::RobotGroup;
use crate::judge::certificate::{self, CertificateOutcome};
use crate::judge::history::Delivery;
use crate::judge::{Known, Verdict, is_first_hand, judge};
use crate::record::{self, Remembered};
use crate::request::auth::AuthSource;
use crate::request::page::Page;
use crate::request::universe::SharedWorld;
use crate::request::{Cause, Request};

/// Maximum number of challenges that a transaction answers: a proxy and a server may each demand a handshake, and once more if the
/// connection is lost.
const MAX_CHALLENGES: usize = 6;
/// Number of further connections on which a request is sent if peers close earlier ones before they answer.
const MAX_RETRIES: u32 = 10;

/// The end of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// When its reply was complete, or when it failed.
    pub at: Nanos,
    /// Whether it failed.
    pub failed: bool,
}

/// What became of a request that shared a connection with others.
enum InPipeline {
    /// It has a reply, or failed.
    Ended(Result<Completed, Incomplete>),
    /// The failure of another exchange ended the connection: the request is sent again on its own. It was first sent, or about to be,
    /// at `begun`; whoever waits for the reply has waited since then.
    Cancelled { begun: Nanos },
}

impl<L: Link> RobotGroup<L> {
    /// Carries out the transaction of `request` from its start at `now`.
    pub(crate) async fn transact(self: &Rc<Self>, robot: usize, request: &mut Request, now: Nanos) -> Ended {
        self.robot(robot).active += 1;
        if request.cause == Cause::Direct && request.planned > 0 {
            request.page = Some(Rc::new(Page::new(now)));
        }
        record::start(self.context.of(robot), request, now);
        let mut held = None;
        let first = self.exchange_alone(robot, request, &mut held, now, None).await;
        let outcome = self.authenticate(robot, request, first, held).await;
        let ended = self.conclude(robot, request, outcome);
        let skipped_in_vain = request.planned.saturating_sub(request.launched.get());
        if skipped_in_vain > 0 {
            self.robot(robot).unskip(skipped_in_vain);
        }
        self.finish_task(robot);
        ended
    }

    /// Carries out the first transaction in the robot's backlog that goes to `hop`, and as many more as can share a connection.
    async fn transact_pipelined(self: &Rc<Self>, robot: usize, hop: Hop) {
        // Another task may already have taken the request.
        let Some(request) = self.rare(robot).backlog.pop(hop) else { return };
        self.robot(robot).active += 1;
        let cx = self.context.of(robot);
        for (request, outcome) in self.exchange_pipelined(robot, request, hop).await {
            let mut held = None;
            let outcome = match outcome {
                InPipeline::Ended(Err(incomplete)) => Err(incomplete),
                // Challenges are answered one by one.
                InPipeline::Ended(completed) => self.authenticate(robot, &request, completed, held).await,
                InPipeline::Cancelled { begun } => {
                    record::retry(cx);
                    let now = cx.now();
                    let first = self.exchange_alone(robot, &request, &mut held, now, Some(begun)).await;
                    self.authenticate(robot, &request, first, held).await
                }
            };
            self.conclude(robot, &request, outcome);
        }
        self.finish_task(robot);
    }

    /// Answers the challenges of a transaction whose first exchange has ended: exchanges request and reply once more with credentials
    /// for each side that demands them. All of that is one transaction (`docs/reference/models.md`, "Authentication"). `held` is the
    /// connection of a handshake, which must go on where it began.
    async fn authenticate(
        self: &Rc<Self>,
        robot: usize,
        request: &Request,
        mut outcome: Result<Completed, Incomplete>,
        mut held: Option<Box<PooledConnection<L::Conn>>>,
    ) -> Result<Completed, Incomplete> {
        let cx = self.context.of(robot);
        let (mut started, mut sent, mut scheme) = (None, 0, None);
        let mut challengers = Vec::new();
        loop {
            let mut completed = match outcome {
                Ok(completed) => completed,
                Err(Incomplete::Failed(failure)) => {
                    return self.expected_denial(robot, &failure).ok_or(Incomplete::Failed(failure));
                }
                Err(incomplete) => return Err(incomplete),
            };
            let exchange_started = completed.exchange.started;
            completed.exchange.started = *started.get_or_insert(exchange_started);
            sent += completed.exchange.sent;
            completed.exchange.sent = sent;
            completed.auth =
                AuthSteps { challenges: challengers.len() as u32, scheme, ..AuthSteps::default() };
            self.keep_cookies(robot, request, &completed.reply);
            let status = completed.reply.status;
            let answers = completed.exchange.answers;
            let source = match status {
                407 => AuthSource::Proxy,
                401 if request.foreign.is_none() => AuthSource::Origin(request.server),
                _ => {
                    completed.auth.refused = status == 403 && self.has_wrong_password(robot);
                    if status < 400 && self.has_wrong_password(robot) {
                        // A proxy demands credentials for all requests, an origin possibly for this object only.
                        let proxy = (answers.proxy.is_some() || answers.set_up.is_some())
                            .then_some(AuthSource::Proxy);
                        completed.auth.ignored_by = proxy.or(challengers.last().copied());
                    }
                    return Ok(completed);
                }
            };
            if cx.profile().credentials.is_empty() {
                return Ok(completed);
            }
            let answered = (source, answers.to(source));
            let answer = self.learn(robot, answered, &completed.reply, held.as_deref_mut());
            if !matches!(answer, Ok(Some(_))) || challengers.len() >= MAX_CHALLENGES {
                if let Some(connection) = held {
                    self.pool.release(cx, connection, true, cx.now());
                }
                answer?;
                // This is expected for a wrong password.
                completed.auth.refused = self.has_wrong_password(robot)
                    && (answers.to(source).is_some() || !challengers.is_empty());
                return Ok(completed);
            }
            challengers.push(source);
            scheme = answer?;
            completed.auth.scheme = scheme;
            let mut now = cx.now();
            record::challenge(cx, &completed, exchange_started, now);
            if scheme == Some(AuthScheme::Kerberos) {
                // Tickets are rare and the state of their exchange is large, so it is boxed.
                match Box::pin(self.obtain_ticket(robot, source)).await {
                    Ok(()) => now = cx.now(),
                    Err(failure) => {
                        let failure = TransactionFailure { started, ..failure };
                        return self.expected_denial(robot, &failure).ok_or_else(|| failure.into());
                    }
                }
            }
            // So are further exchanges.
            outcome = Box::pin(self.exchange_alone(robot, request, &mut held, now, None)).await;
        }
    }

    /// Exchanges a request on its own connection, from `now` on: on the connection that is `held`, if there is one. Holds the
    /// connection if a handshake on it goes on. `begun` is when the first attempt began, if there was one before.
    async fn exchange_alone(
        self: &Rc<Self>,
        robot: usize,
        request: &Request,
        held: &mut Option<Box<PooledConnection<L::Conn>>>,
        now: Nanos,
        mut begun: Option<Nanos>,
    ) -> Result<Completed, Incomplete> {
        let cx = self.context.of(robot);
        let deadline = cx.draw_deadline(now);
        // The time, as long as nothing had to be waited for: the clock is read as rarely as possible.
        let mut at_once = Some(now);
        let mut hop = match held.as_ref().map(|connection| connection.hop) {
            Some(hop) => hop,
            None => {
                let hop = match self.resolvers.known_hop(cx, request) {
                    Some(hop) => hop,
                    None => {
                        at_once = None;
                        // A look-up is rare and its state is large, so it is boxed.
                        Box::pin(self.resolvers.look_up_hop(cx, request, deadline)).await?
                    }
                };
                self.alternative_to(robot, hop)
            }
        };
        let mut lines = Vec::new();
        let was_tried = begun.is_some();
        for attempt in 0..=MAX_RETRIES {
            let was_held = held.is_some();
            let (mut connection, started) = match held.take().or_else(|| self.pool.take_idle(cx, hop)) {
                Some(connection) => (connection, at_once.take().unwrap_or_else(|| cx.now())),
                None => {
                    at_once = None;
                    let who = || self.identity(robot);
                    match self.pool.open_or_wait(cx, hop, deadline, &who).await {
                        Ok(connection) => (connection, cx.now()),
                        Err(Incomplete::Failed(failure)) if alternative::is_unusable(hop, &failure) => {
                            hop = self.leave_alternative(robot, hop, &failure);
                            begun = begun.or(failure.started);
                            continue;
                        }
                        Err(incomplete) => return Err(incomplete),
                    }
                }
            };
            let (reused, may_race) = (connection.uses > 0, connection.may_race());
            // The set-up is a part of the first transaction on a connection.
            let set_up = connection.set_up.take();
            let started = set_up.map_or(started, |set_up| set_up.started);
            if reused {
                record::reuse(cx, started, connection.was_idle && !was_held);
            } else {
                // Connections are opened before requests are sent: when many transactions start at once, a peer that is
                // woken by the first request finds the others, and is not woken by each of them.
                yield_now().await;
            }
            lines.clear();
            let answers = self.write_identity(robot, request, &mut connection, true, &mut lines);
            let mut observed = self.observe(begun.unwrap_or(started), deadline, hop, connection.number);
            observed.answers = answers;
            observed.ready = set_up.map(|set_up| set_up.ended);
            observed.retried = was_tried || attempt > 0;
            let mut flight = InFlight::new(request, &lines, observed);
            let mut found_link = |container: &Request, hop, link: &[u8]| {
                self.request_embedded(robot, container, hop, link);
            };
            exchange(cx, &mut connection, std::slice::from_mut(&mut flight), &mut found_link).await;
            if set_up.is_some()
                && let Some(facts) = connection.take_handshake()
            {
                counts::handshake(cx, &facts, started);
            }
            if flight.lost_race(may_race) {
                // Whoever waits for the reply has waited since then.
                begun = begun.or(Some(started));
                if let Some(failure) = flight.unprocessed() {
                    self.pool.retire(&connection);
                    record::unprocessed(cx, failure);
                }
                self.pool.close(cx, connection, false);
                record::retry(cx);
                continue;
            }
            let is_stream = connection.is_stream();
            return match flight.complete() {
                // The peer wants the request on another connection (RFC 9110, section 15.5.20). If it says so again, that is its
                // reply.
                Some(Ok(completed)) if is_stream && completed.reply.status == 421 && attempt == 0 => {
                    self.pool.retire(&connection);
                    self.pool.release(cx, connection, false, completed.ended);
                    record::misdirected(cx, request);
                    if hop.alternative.is_some() {
                        hop = self.forget_alternative(robot, hop);
                    }
                    continue;
                }
                Some(Ok(completed)) => {
                    self.learn_alternative(robot, hop, &completed.reply);
                    let keep_alive = completed.reply.keep_alive;
                    let asked_again =
                        connection.auth.is_some() && matches!(completed.reply.status, 401 | 407);
                    match completed.exchange.aborted {
                        true => self.pool.close(cx, connection, false),
                        false if keep_alive && asked_again => *held = Some(connection),
                        false => self.pool.release(cx, connection, keep_alive, completed.ended),
                    }
                    Ok(completed)
                }
                Some(Err(failure)) => {
                    self.pool.close(cx, connection, false);
                    self.note_failure(robot, hop, &failure);
                    Err(failure.into())
                }
                None => Err(Incomplete::Cancelled),
            };
        }
        let detail = format!("closed {MAX_RETRIES} times before any reply");
        Err(TransactionFailure::new(ErrorKind::TooManyRetries, detail).into())
    }

    /// Exchanges `first`, and as many more requests of the robot's backlog as the connection and the pipeline depth allow, on one
    /// connection. Without a connection only `first` is taken, and fails (`docs/reference/models.md`, "Pipelining").
    async fn exchange_pipelined(
        self: &Rc<Self>,
        robot: usize,
        first: Request,
        hop: Hop,
    ) -> Vec<(Request, InPipeline)> {
        let cx = self.context.of(robot);
        let deadline = cx.draw_deadline(cx.now());
        let mut requests = vec![first];
        let who = || self.identity(robot);
        let mut connection = match self.pool.acquire(cx, hop, deadline, &who).await {
            Ok(connection) => connection,
            Err(incomplete) => {
                let mut first = requests.remove(0);
                record::start(cx, &mut first, cx.now());
                return vec![(first, InPipeline::Ended(Err(incomplete)))];
            }
        };
        let (reused, may_race) = (connection.uses > 0, connection.may_race());
        let room = (connection.use_limit - connection.uses).min(cx.draw_pipeline_depth()) as usize;
        while requests.len() < room
            && let Some(request) = self.rare(robot).backlog.pop(hop)
        {
            requests.push(request);
        }
        let set_up = connection.set_up.take();
        let now = set_up.map_or_else(|| cx.now(), |set_up| set_up.started);
        requests.iter_mut().for_each(|request| record::start(cx, request, now));
        if reused {
            record::reuse(cx, now, connection.was_idle);
        }
        record::pipeline_depth(cx, requests.len());
        let mut lines = Vec::new();
        let identities: Vec<_> = requests
            .iter()
            .map(|request| {
                let start = lines.len();
                // Handshakes need the connection for themselves.
                let answers = self.write_identity(robot, request, &mut connection, false, &mut lines);
                (start..lines.len(), answers)
            })
            .collect();
        let mut flights: Vec<InFlight<'_>> = requests
            .iter()
            .zip(identities)
            .map(|(request, (range, answers))| {
                let mut observed = self.observe(now, deadline, hop, connection.number);
                observed.answers = answers;
                observed.ready = set_up.map(|set_up| set_up.ended);
                InFlight::new(request, &lines[range], observed)
            })
            .collect();
        let mut found_link =
            |container: &Request, hop, link: &[u8]| self.request_embedded(robot, container, hop, link);
        exchange(cx, &mut connection, &mut flights, &mut found_link).await;
        let raced = flights[0].lost_race(may_race);
        let begun: Vec<Nanos> = flights.iter().map(|flight| flight.exchange.started).collect();
        let mut results: Vec<_> = flights.into_iter().map(InFlight::complete).collect();
        if raced {
            results[0] = None;
        }
        let is_usable = |result: &Option<Result<Completed, _>>| matches!(result, Some(Ok(completed)) if completed.reply.keep_alive && !completed.exchange.aborted);
        match results.last().is_some_and(is_usable) {
            true => self.pool.release(cx, connection, true, cx.now()),
            false => {
                let good = results.iter().all(|result| matches!(result, Some(Ok(_))));
                self.pool.close(cx, connection, good);
            }
        }
        for (request, result) in requests.iter().zip(&results).skip(usize::from(raced)) {
            if result.is_none() {
                record::pipeline_cancelled(cx, request);
            }
        }
        let ends = results.into_iter().zip(begun).map(|(result, begun)| match result {
            Some(result) => InPipeline::Ended(result.map_err(Incomplete::from)),
            None => InPipeline::Cancelled { begun },
        });
        requests.into_iter().zip(ends).collect()
    }

    /// An exchange that starts now. It is large and passed on often, so it is boxed, in the memory of an earlier one if there is one.
    fn observe(&self, started: Nanos, deadline: Option<Nanos>, hop: Hop, connection: u64) -> Box<Exchange> {
        match self.spare_exchanges.borrow_mut().pop() {
            Some(mut spare) => {
                spare.restart(started, deadline, hop, connection);
                spare
            }
            None => Box::new(Exchange::new(started, deadline, hop, connection)),
        }
    }

    /// Judges the outcome of a transaction, records it, updates the history, and launches the requests that follow from it.
    fn conclude(&self, robot: usize, request: &Request, outcome: Result<Completed, Incomplete>) -> Ended {
        let cx = self.context.of(robot);
        let now = outcome.as_ref().map_or_else(|_| cx.now(), |completed| completed.ended);
        cx.recorder.end(request.handle, now);
        let server = cx.settings.field.servers.get(request.server).filter(|_| request.foreign.is_none());
        if let Some(bad) = server.and_then(|server| server.bad_certificate) {
            let has_redirects = cx.settings.field.redirects || cx.settings.tolerance.foreign_replies;
            match certificate::met(bad, has_redirects, &outcome) {
                CertificateOutcome::Refused(refusal) => {
                    record::refusal(cx, request, bad.fault, refusal, now);
                    self.leave_without(robot, request, Coding::Identity);
                    return Ended { at: now, failed: false };
                }
                CertificateOutcome::Accepted(failure) => {
                    record::acceptance(cx, bad.fault);
                    self.fail(robot, request, &failure, now);
                    return Ended { at: now, failed: true };
                }
                CertificateOutcome::Neither => {}
            }
        }
        let mut completed = match outcome {
            Ok(completed) => completed,
            Err(Incomplete::Failed(failure)) => {
                self.fail(robot, request, &failure, now);
                return Ended { at: now, failed: true };
            }
            Err(Incomplete::Cancelled) => {
                self.interrupted(request, Coding::Identity);
                self.give_up(robot, request);
                return Ended { at: now, failed: false };
            }
        };
        let verdict = self.judge(cx, request, &mut completed);
        let class = match &verdict.class {
            Ok(class) => *class,
            Err(failure) => {
                verdict.violations.iter().for_each(|found| record::violation(cx, request, &completed, found));
                self.fail(robot, request, failure, now);
                return Ended { at: now, failed: true };
            }
        };
        let remembered = self.remember(robot, request, &completed, class, &verdict);
        record::success(cx, request, &completed, class, &verdict, &remembered);
        verdict.violations.iter().for_each(|found| record::violation(cx, request, &completed, found));
        self.learn_from_server(robot, request, &completed.reply);
        if let Some(page) = &request.page
            && let Some(bytes) = page.leave(Some(completed.reply.size()))
        {
            record::page(cx, page, bytes, now);
        }
        if class == Class::RepToRedir {
            self.follow_redirect(robot, request, &completed.reply);
        }
        keep(&cx.spare_replies, completed.reply);
        keep(&self.spare_exchanges, completed.exchange);
        Ended { at: now, failed: false }
    }

    fn judge(&self, cx: RobotContext<'_, L>, request: &Request, completed: &mut Completed) -> Verdict {
        let known = Known {
            settings: &cx.settings,
            profile: cx.profile(),
            robot: cx.robot,
            history: &self.history.borrow(),
            generator: &cx.generator.borrow(),
            unix_s: cx.link.unix_seconds(),
        };
        judge(&known, request, completed)
    }

    /// Records a transaction that failed at `now`, and updates the history.
    fn fail(&self, robot: usize, request: &Request, failure: &TransactionFailure, now: Nanos) {
        let cx = self.context.of(robot);
        record::failure(cx, request, failure, now);
        let coding = failure.reply.as_deref().map_or(Coding::Identity, |reply| reply.coding);
        self.leave_without(robot, request, coding);
    }

    /// Updates the history after a transaction that ended without the object.
    fn leave_without(&self, robot: usize, request: &Request, coding: Coding) {
        let rank = self.count_popularity(request);
        record::rank(self.context.of(robot), &Remembered { rank, since_transfer_ms: None });
        self.interrupted(request, coding);
        self.keep_embedded(robot, request, false);
        self.count_session(robot, 0);
        self.give_up(robot, request);
    }

    /// Remembers a transaction without a complete reply. The server may have received an upload all the same.
    fn interrupted(&self, request: &Request, coding: Coding) {
        let mut history = self.history.borrow_mut();
        match request.method.has_body() {
            true => history.invalidated(&request.oid),
            false => history.cut(&request.oid, coding),
        }
    }

    /// Records that the object will not arrive.
    fn give_up(&self, robot: usize, request: &Request) {
        self.note_visit(robot, request, None);
        if let Some(page) = &request.page {
            page.leave(None);
        }
    }

    /// Stores what later transactions need to know about this one. Data about an object is rarely in the processor's
    /// caches, so all look-ups are done together.
    fn remember(
        &self,
        robot: usize,
        request: &Request,
        completed: &Completed,
        class: Class,
        verdict: &Verdict,
    ) -> Remembered {
        let reply = &*completed.reply;
        self.count_session(robot, if class == Class::Miss { reply.size() } else { 0 });
        let mut remembered = Remembered { rank: self.count_popularity(request), since_transfer_ms: None };
        if request.foreign.is_some() {
            return remembered;
        }
        let mut history = self.history.borrow_mut();
        let whole = reply.status == 200 && request.method == Method::Get && request.kind.fills();
        if !verdict.object_cachable {
            history.keep_requester(request.xact, robot);
        } else if request.method.has_body() {
            history.invalidated(&request.oid);
        } else if class == Class::Abort {
            history.cut(&request.oid, reply.coding);
        } else if whole && self.repeats {
            let at_ms = completed.ended.as_millis();
            let hit = class == Class::Hit;
            let delivery = Delivery { at_ms, kind: request.kind, hit, expires: reply.expires };
            remembered.since_transfer_ms = history.delivered(&request.oid, reply.coding, delivery);
        }
        drop(history);
        self.keep_embedded(robot, request, whole && verdict.object_cachable && class.is_basic());
        remembered
    }

    /// The rank of the object of a request that may be repeated.
    fn count_popularity(&self, request: &Request) -> Option<(u32, u32)> {
        if request.foreign.is_some() || !self.repeats {
            return None;
        }
        self.popularity.borrow_mut().count(&request.oid)
    }

    /// Adds the object of a request to the robot's private cache, or removes it.
    fn keep_embedded(&self, robot: usize, request: &Request, keep: bool) {
        let capacity = self.context.of(robot).profile().private_cache;
        if capacity == 0 {
            return;
        }
        let received = &mut self.rare(robot).received;
        received.retain(|other| *other != request.oid);
        if keep {
            if received.len() >= capacity {
                received.pop_front();
            }
            received.push_back(request.oid);
        }
    }

    /// Counts a transaction that filled a cache with `fill` bytes for the robot's session.
    fn count_session(&self, robot: usize, fill: u64) {
        let mut robot = self.robot(robot);
        if let Some(session) = robot.rare.as_mut().and_then(|rare| rare.session.as_mut()) {
            session.count(fill);
        }
    }

    /// Processes the facts about worlds and phases that a server of the test has sent. The fields of a stored reply are
    /// outdated.
    fn learn_from_server(&self, robot: usize, request: &Request, reply: &ReplyMeta) {
        if request.foreign.is_some() {
            return;
        }
        let first_hand = is_first_hand(request, reply);
        self.note_visit(robot, request, first_hand.then_some(reply));
        let field = &self.context.settings.field;
        if field.share_worlds
            && first_hand
            && let Some(mark) = reply.marks.remote_world
        {
            let facts = WorldFacts { size: mark.size, window: mark.window, hot_end: mark.hot };
            let world = SharedWorld { id: mark.id, kind: mark.kind, facts };
            self.context.generator.borrow_mut().learn(field, request.server, world);
        }
    }

    /// Gives a transaction to a worker, which carries it out beside all others. It counts as running from now on.
    pub(crate) fn launch(&self, robot: usize, request: Request) {
        self.robot(robot).active += 1;
        let job = match request.hop {
            Some(hop) if hop.alternative.is_none() && self.context.of(robot).pipelines() => {
                self.rare(robot).backlog.push(request);
                Job::Pipelined(robot, hop)
            }
            _ => Job::Alone(robot, request),
        };
        self.workers.assign(job);
    }

    /// Spawns workers if there are not enough.
    pub(crate) async fn spawn_workers(self: Rc<Self>) {
        loop {
            for _ in 0..self.workers.missing.take() {
                self.context.link.spawn(Rc::clone(&self).work());
            }
            self.workers.spawner.wait(pending()).await;
        }
    }

    /// Carries out transactions that were launched, until no more are launched for a while. `launch` has counted each of them.
    async fn work(self: Rc<Self>) {
        let waiter = Waiter::default();
        loop {
            let Some(job) = self.workers.next() else { return };
            let robot = match job {
                Job::Alone(robot, mut request) => {
                    let now = self.context.now();
                    self.transact(robot, &mut request, now).await;
                    robot
                }
                Job::Pipelined(robot, hop) => {
                    self.transact_pipelined(robot, hop).await;
                    robot
                }
            };
            self.finish_task(robot);
            if self.workers.resting.len() >= MAX_RESTING {
                return;
            }
            self.workers.resting.wait_with(&waiter, pending()).await;
        }
    }

    /// Counts a task of the robot that has ended. After the last one, wakes the task that waits for the end of all of
    /// them.
    fn finish_task(&self, robot: usize) {
        let active = {
            let mut robot = self.robot(robot);
            robot.active -= 1;
            robot.active
        };
        if active == 0 {
            let queue = self.completions.borrow().get(&robot).cloned();
            if let Some(queue) = queue {
                queue.wake_first();
            }
        }
    }
}
