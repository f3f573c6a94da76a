//! Connections of robots: taken, given back, closed (reference: models.md, section 15).

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use polygraph_link::{Conn, IdleState, Link, Nanos};
use polygraph_stats::evidence::fact;
use polygraph_stats::{CloseKind, ErrorKind, Evidence};
use polygraph_traffic::Random;

use crate::connections::wait_queue::{WaitQueue, Waited};
use crate::exchange::{TransactionFailure, Unfinished};
use crate::group::RobotGroup;

/// A connection in the hands of a transaction or waiting in a robot's pool.
#[derive(Debug)]
pub struct PooledConnection<C> {
    /// The connection.
    pub conn: C,
    /// Requests sent on it so far.
    pub uses: u32,
    /// It is closed after so many requests.
    pub use_limit: u32,
    /// Its number among those of the loop, from 1.
    pub number: u64,
    /// Something could be sent on it, so it stands.
    pub(crate) stands: bool,
    opened: Nanos,
    /// When it became idle.
    idle_since: Nanos,
    /// Where it leads.
    hop: SocketAddr,
}

impl<L: Link> RobotGroup<L> {
    /// A connection for `robot` to `hop`: the idle one it used last, or a new one. Waits if the robot has as many
    /// as it may have; when its session becomes idle it does not want any more (reference: models.md, section 14.4).
    ///
    /// # Errors
    /// If no connection can be had before `deadline`.
    pub async fn lease(
        &self,
        robot: usize,
        hop: SocketAddr,
        deadline: Option<Nanos>,
    ) -> Result<Box<PooledConnection<L::Conn>>, Unfinished> {
        loop {
            if let Some(connection) = self.take_idle(robot, hop) {
                return Ok(connection);
            }
            if self.has_room(robot) {
                // Whoever waits next must not go on waiting for a place that this one could not use.
                let opened = self.open_new(robot, hop).inspect_err(|_| self.call_waiting(robot));
                return Ok(opened?);
            }
            if self.is_resting(robot) {
                return Err(Unfinished::Cancelled);
            }
            let queue = self.queue(robot)?;
            let now = self.now();
            self.recorder().with(|block| block.waiting.enter(now));
            let waited = match deadline {
                Some(at) => queue.wait(self.link().sleep_until(at)).await,
                None => queue.wait(std::future::pending()).await,
            };
            let now = self.now();
            self.recorder().with(|block| block.waiting.leave(now));
            match waited {
                Waited::Called => {}
                Waited::CalledOff => return Err(Unfinished::Cancelled),
                Waited::TimedOut => {
                    let fault = TransactionFailure::new(ErrorKind::Timeout, "while waiting for a connection");
                    return Err(fault.into());
                }
            }
        }
    }

    fn take_idle(&self, robot: usize, hop: SocketAddr) -> Option<Box<PooledConnection<L::Conn>>> {
        while let Some(mut connection) = self.pop_idle(robot, |other| other == hop) {
            if self.is_quiet(robot, &mut connection) {
                return Some(connection);
            }
            self.close_idle(robot, connection, CloseKind::IdleForeign);
        }
        let profile = self.profile(robot);
        if profile.minimize_new_conn > 0.0
            && self.connection_rng().event(profile.minimize_new_conn)
            && let Some(group) = self.settings().field.substitutes.iter().find(|group| group.contains(&hop))
        {
            while let Some(mut connection) = self.pop_idle(robot, |other| group.contains(&other)) {
                if self.is_quiet(robot, &mut connection) {
                    return Some(connection);
                }
                self.close_idle(robot, connection, CloseKind::IdleForeign);
            }
        }
        None
    }

    /// True if nothing has happened on an idle connection. Bytes belong behind a reply that was complete without them.
    fn is_quiet(&self, robot: usize, connection: &mut PooledConnection<L::Conn>) -> bool {
        match connection.conn.idle_state() {
            IdleState::Quiet => return true,
            IdleState::Closed => {}
            IdleState::Bytes(first) => {
                let now = self.now();
                self.recorder().error_with(ErrorKind::LateBytes, now, || {
                    let idle = (now - connection.idle_since) as f64 * 1e-6;
                    let (number, uses) = (connection.number, connection.uses);
                    let number_of_robot = self.settings().first_robot + robot;
                    let detail = format!(
                        "on connection {number} to {}, {idle:.1} ms after reply {uses}",
                        connection.hop
                    );
                    Evidence::new(detail)
                        .fact(fact::ROBOT, number_of_robot.to_string())
                        .expected("no byte", format!("`{}`", first.escape_ascii()))
                });
            }
        }
        false
    }

    /// True if the robot may open a connection; an idle one is closed if that makes room.
    fn has_room(&self, robot: usize) -> bool {
        let Some(limit) = self.profile(robot).open_limit else { return true };
        if self.robots()[robot].open < limit as u32 {
            return true;
        }
        let oldest = {
            let idle = &mut self.robots()[robot].idle;
            (!idle.is_empty()).then(|| idle.remove(0))
        };
        match oldest {
            Some(connection) => {
                self.close_idle(robot, connection, CloseKind::Other);
                true
            }
            None => false,
        }
    }

    /// The queue of the robot's transactions that wait for a connection.
    fn queue(&self, robot: usize) -> Result<Rc<WaitQueue>, TransactionFailure> {
        let queue = Rc::clone(self.queues().entry(robot).or_default());
        match self.profile(robot).wait_limit {
            Some(limit) if queue.len() >= limit => {
                let detail = format!("{} transactions of the robot wait for a connection", queue.len());
                Err(TransactionFailure::new(ErrorKind::TooManyOpen, detail))
            }
            _ => Ok(queue),
        }
    }

    fn open_new(
        &self,
        robot: usize,
        hop: SocketAddr,
    ) -> Result<Box<PooledConnection<L::Conn>>, TransactionFailure> {
        if self.open_connections() >= self.settings().open_limit {
            let open = self.open_connections();
            return Err(match self.settings().limited_by_host {
                // More connections are what the test asks for, so the device is not to blame.
                true => {
                    let detail =
                        format!("{open} connections are open, as many as the file descriptors allow");
                    TransactionFailure::new(ErrorKind::NoDescriptor, detail)
                }
                false => {
                    TransactionFailure::new(ErrorKind::TooManyOpen, format!("{open} connections are open"))
                }
            });
        }
        let drawn = self.profile(robot).requests_per_connection.sample(&mut *self.connection_rng());
        let opened = self.now();
        let conn = self.link().connect(self.address(robot), hop)?;
        self.robots()[robot].open += 1;
        self.set_open_connections(self.open_connections() + 1);
        self.recorder().with(|block| block.conns.enter(opened));
        let use_limit = drawn.trunc().clamp(1.0, f64::from(u32::MAX)) as u32;
        let number = self.number_connection();
        let connection = PooledConnection {
            conn,
            uses: 0,
            use_limit,
            number,
            stands: false,
            opened,
            idle_since: opened,
            hop,
        };
        Ok(Box::new(connection))
    }

    fn pop_idle(
        &self,
        robot: usize,
        fits: impl Fn(SocketAddr) -> bool,
    ) -> Option<Box<PooledConnection<L::Conn>>> {
        let idle = &mut self.robots()[robot].idle;
        let at = idle.iter().rposition(|connection| fits(connection.hop))?;
        Some(idle.remove(at))
    }

    /// The robot's own address, if it has one.
    pub fn address(&self, robot: usize) -> Option<IpAddr> {
        let addresses = &self.profile(robot).addresses;
        let number = self.robots()[robot].number as usize;
        (!addresses.is_empty()).then(|| addresses[number % addresses.len()])
    }

    /// Keeps the connection from `now` on for the robot's next request, or closes it if that is not possible.
    pub fn give_back(
        &self,
        robot: usize,
        mut connection: Box<PooledConnection<L::Conn>>,
        keep_alive: bool,
        now: Nanos,
    ) {
        if keep_alive && connection.uses < connection.use_limit && !self.is_resting(robot) {
            connection.idle_since = now;
            self.recorder().with(|block| block.idle.enter(connection.idle_since));
            self.robots()[robot].idle.push(connection);
            self.call_waiting(robot);
        } else {
            self.close(robot, connection, true);
        }
    }

    /// Closes a connection in use; only those that did nothing wrong count in the statistics of lifetimes and
    /// uses.
    pub fn close(&self, robot: usize, connection: Box<PooledConnection<L::Conn>>, good: bool) {
        self.forget(robot, &connection, good.then_some(CloseKind::Busy), self.now());
    }

    fn close_idle(&self, robot: usize, connection: Box<PooledConnection<L::Conn>>, kind: CloseKind) {
        let now = self.now();
        self.recorder().with(|block| block.idle.leave(now));
        self.forget(robot, &connection, Some(kind), now);
    }

    /// Something could be sent on a connection at `now`; `stands` says whether that is known already.
    pub(crate) fn note_established(&self, stands: &mut bool, now: Nanos) {
        if !std::mem::replace(stands, true) {
            self.recorder().with(|block| block.established.enter(now));
        }
    }

    fn forget(
        &self,
        robot: usize,
        connection: &PooledConnection<L::Conn>,
        kind: Option<CloseKind>,
        now: Nanos,
    ) {
        self.set_open_connections(self.open_connections() - 1);
        self.robots()[robot].open -= 1;
        self.recorder().with(|block| {
            block.conns.leave(now);
            if connection.stands {
                block.established.leave(now);
            }
            if let Some(kind) = kind {
                block.close_connection(kind, (now - connection.opened) / 1000, u64::from(connection.uses));
            }
        });
        self.call_waiting(robot);
    }

    /// The robot's transactions that wait for a connection do not get any.
    pub(crate) fn cancel_waiting(&self, robot: usize) {
        let queue = self.queues().get(&robot).cloned();
        if let Some(queue) = queue {
            queue.call_off();
        }
    }

    fn call_waiting(&self, robot: usize) {
        let queue = self.queues().get(&robot).cloned();
        if let Some(queue) = queue {
            queue.call();
        }
    }

    /// Closes all idle connections of a robot.
    pub fn close_all_idle(&self, robot: usize) {
        let idle = std::mem::take(&mut self.robots()[robot].idle);
        idle.into_iter().for_each(|connection| self.close_idle(robot, connection, CloseKind::Other));
    }

    /// Closes idle connections that nobody would notice before their next use: those that the peer has closed,
    /// those that have been idle for too long, and those of robots that are not active any more.
    pub fn reap(&self) {
        let now = self.now();
        for robot in 0..self.settings().robots {
            if self.robots()[robot].idle.is_empty() {
                continue;
            }
            if !self.is_active(robot, now) {
                self.close_all_idle(robot);
                continue;
            }
            let timeout = self.profile(robot).idle_timeout;
            let mut kept = std::mem::take(&mut self.robots()[robot].idle);
            let mut at = 0;
            while at < kept.len() {
                let connection = &mut kept[at];
                let kind = if !self.is_quiet(robot, connection) {
                    CloseKind::IdleForeign
                } else if timeout.is_some_and(|timeout| now > connection.idle_since + timeout) {
                    CloseKind::IdleLocal
                } else {
                    at += 1;
                    continue;
                };
                let connection = kept.remove(at);
                self.close_idle(robot, connection, kind);
            }
            self.robots()[robot].idle = kept;
        }
    }
}
