//! The robots of one event loop: their state, and the commands of the engine.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use polygraph_link::{Link, Nanos};
use polygraph_stats::Recorder;
use polygraph_traffic::groups::{PeerStatus, PhaseStatus};
use polygraph_traffic::store::{Fill, RestoredShare, SavedShare};
use polygraph_traffic::{Catalog, Content, IdSource};
use rustc_hash::FxHashMap;

use crate::connections::pool::ConnectionPool;
use crate::connections::resolving::Resolvers;
use crate::connections::wait_queue::WaitQueue;
use crate::context::GroupContext;
use crate::exchange::Exchange;
use crate::judge::history::History;
use crate::load::pace::Pace;
use crate::peers::KnownPeers;
use crate::peers::first_contact::FirstContact;
use crate::record::popularity::PopularityCounts;
use crate::robot::{RareState, Robot};
use crate::settings::{Profile, Settings};
use crate::transaction::workers::Workers;

/// The robots of one event loop. `load` decides when they send requests, `transaction` carries these out.
#[derive(Debug)]
pub struct RobotGroup<L: Link> {
    pub(crate) context: GroupContext<L>,
    pub(crate) robots: RefCell<Vec<Robot>>,
    pub(crate) pool: ConnectionPool<L::Conn>,
    pub(crate) resolvers: Resolvers<L>,
    /// The history of objects.
    pub(crate) history: RefCell<History>,
    pub(crate) popularity: RefCell<PopularityCounts>,
    /// Whether robots request anything repeatedly, so that the past of objects matters.
    pub(crate) repeats: bool,
    /// It is large and read often, so it is not copied.
    pub(crate) pace: RefCell<Pace>,
    /// Share (0..1) of the robots that were active when they were counted last.
    active_share: Cell<f64>,
    /// Launches that are due at or after this time wait for the pace that is then in force.
    pub(crate) pace_end: Cell<Nanos>,
    /// The working set freezes for requests that are due from then on.
    freeze_at: Cell<Nanos>,
    pub(crate) workers: Workers,
    /// What was observed in judged exchanges, whose memory the next exchanges use.
    #[expect(clippy::vec_box, reason = "boxes are taken out and passed on")]
    pub(crate) spare_exchanges: RefCell<Vec<Box<Exchange>>>,
    /// Closed-loop robots that wait for the end of all their transactions.
    pub(crate) completions: RefCell<FxHashMap<usize, Rc<WaitQueue>>>,
    pub(crate) peers: RefCell<KnownPeers>,
    pub(crate) first_contact: RefCell<FirstContact>,
}

impl<L: Link> RobotGroup<L> {
    /// Robots that are ready to start.
    pub fn new(link: L, settings: Settings, recorder: Recorder, ids: IdSource) -> Rc<RobotGroup<L>> {
        let positions = settings.first_robot..settings.first_robot + settings.robots;
        let robots = positions.map(|position| Robot::new(&settings, position)).collect();
        let first_contact = FirstContact::of(&settings);
        let context = GroupContext::new(link.separate(), recorder, settings, ids);
        Rc::new(RobotGroup {
            robots: RefCell::new(robots),
            pool: ConnectionPool::new(context.settings.robots),
            history: RefCell::default(),
            spare_exchanges: RefCell::default(),
            popularity: RefCell::default(),
            repeats: context
                .settings
                .profiles
                .iter()
                .any(|profile| repeats(profile, &context.settings.field.catalog)),
            pace: RefCell::new(Pace::FULL),
            active_share: Cell::new(0.0),
            pace_end: Cell::new(Nanos::MAX),
            freeze_at: Cell::new(Nanos::MAX),
            workers: Workers::default(),
            completions: RefCell::default(),
            peers: RefCell::default(),
            first_contact: RefCell::new(first_contact),
            resolvers: Resolvers::new(&context),
            context,
        })
    }

    /// Sets the pace from now on, and counts the robots that are active at it.
    pub fn set_pace(&self, pace: Pace) {
        *self.pace.borrow_mut() = pace;
        let now = self.context.now();
        let share = if pace.stopped { 0.0 } else { pace.populus.at(now) };
        if self.active_share.replace(share) != share {
            let active = self.robots.borrow().iter().filter(|robot| f64::from(robot.rank) < share).count();
            self.context.recorder.with(|block| block.populus.set(now, active as u64));
        }
    }

    /// The pace is in force for launches that are due before `end`. Later ones wait for the next pace even if all launches are
    /// late, so that the clock alone does not decide which pace is theirs.
    pub fn set_pace_end(&self, end: Nanos) {
        self.pace_end.set(end);
    }

    /// From `at` on, repeated requests choose among as many of the newest objects as there are then
    /// (`docs/reference/models.md`, "Working set limits"). Only the earliest `at` counts.
    pub fn freeze_working_set(&self, at: Nanos) {
        self.freeze_at.set(self.freeze_at.get().min(at));
    }

    /// Freezes the working set if it is frozen for a request that is due at `due`.
    pub(crate) fn freeze_by(&self, due: Nanos) {
        if due >= self.freeze_at.get() {
            self.context.generator.borrow_mut().freeze();
        }
    }

    /// The data that a later test needs to continue with the objects of this one.
    pub fn working_set(&self) -> SavedShare {
        self.freeze_by(self.context.now());
        let totals = self.context.recorder.totals();
        let (ids, galaxies) = self.context.generator.borrow().own_galaxies(&self.context.settings.field);
        let fill = Fill { count: totals.fills, bytes: totals.fill_bytes };
        SavedShare { ids, galaxies, fill }
    }

    /// Continues with the objects of an earlier test. Returns the number of galaxies whose servers this test does not have.
    pub fn resume_from(&self, legacy: RestoredShare) -> usize {
        self.context.generator.borrow_mut().resume_from(&self.context.settings.field, legacy)
    }

    /// Sets the phase status that requests carry from now on.
    pub fn set_phase_status(&self, status: PhaseStatus) {
        self.context.phase_status.set(status);
    }

    /// The phase statuses of servers.
    pub fn server_statuses(&self) -> Vec<PeerStatus> {
        self.peers.borrow().statuses().to_vec()
    }

    /// Number of servers that have neither answered nor failed twice (`docs/reference/models.md`, "First contact").
    pub fn unvisited_servers(&self) -> usize {
        self.first_contact.borrow().left()
    }

    /// Closes idle connections that have timed out, that the peer has closed, or whose robots are not active any more.
    pub fn reap(&self) {
        let now = self.context.now();
        let all_active = self.pace.borrow().populus.at(now) >= 1.0;
        self.pool.reap(&self.context, all_active, |robot| self.is_active(robot, now));
    }

    /// Whether the populus factor lets the robot be active at `at`.
    pub(crate) fn is_active(&self, robot: usize, at: Nanos) -> bool {
        f64::from(self.robots.borrow()[robot].rank) < self.pace.borrow().populus.at(at)
    }

    /// The state of a robot.
    pub(crate) fn robot(&self, robot: usize) -> RefMut<'_, Robot> {
        RefMut::map(self.robots.borrow_mut(), |robots| &mut robots[robot])
    }

    /// The state of a robot that only some robots have; it is created if it does not exist.
    pub(crate) fn rare(&self, robot: usize) -> RefMut<'_, RareState> {
        RefMut::map(self.robots.borrow_mut(), |robots| robots[robot].rare())
    }
}

/// Whether robots with this profile request anything repeatedly.
fn repeats(profile: &Profile, catalog: &Catalog) -> bool {
    let overridden = |content: &Content| content.behavior.as_ref().and_then(|behavior| behavior.recurrence);
    profile.behavior.recurrence > 0.0
        || catalog.contents.iter().filter_map(overridden).any(|recurrence| recurrence > 0.0)
}
