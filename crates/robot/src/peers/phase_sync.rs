//! Keeping in step with the other processes of a test: what is told and heard of phases, the first visits to all
//! servers, and signs of life where the load gives none.

use std::rc::Rc;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_traffic::groups::{PeerStatus, PhaseStatus};

use crate::exchange::reply::ReplyMeta;
use crate::group::RobotGroup;
use crate::peers::Way;
use crate::peers::first_contact::{FirstContact, Next};
use crate::request::generator::Request;
use crate::settings::{Load, Settings};

/// How often is looked who has to be asked for a sign.
const LOOK: Nanos = SECOND / 20;

/// The servers that robots with a load of their own visit first.
pub(crate) fn first_visits(settings: &Settings) -> FirstContact {
    let visitors = settings.profiles.iter().enumerate().filter(|(kind, profile)| {
        let here = (settings.first_robot..settings.first_robot + settings.robots)
            .any(|number| settings.member(number).0 == *kind);
        settings.share_phases && here && profile.foreign < 1.0 && profile.load != Load::Passive
    });
    let servers = visitors.flat_map(|(_, profile)| profile.origins.items().iter().copied());
    FirstContact::new(settings.field.servers.len(), servers)
}

impl<L: Link> RobotGroup<L> {
    /// From now on this is told of phases.
    pub fn set_phase_status(&self, standing: PhaseStatus) {
        self.standing.set(standing);
    }

    /// What is told of phases, if anything is.
    pub(crate) fn position(&self) -> Option<(u64, bool)> {
        let standing = self.standing.get();
        self.settings.share_phases.then_some((standing.position, standing.waits))
    }

    /// What servers have told of phases.
    pub fn server_statuses(&self) -> Vec<PeerStatus> {
        self.peers.borrow().words().to_vec()
    }

    /// Servers that have neither answered yet nor failed to do so twice (reference: models.md, section 19).
    pub fn unvisited_servers(&self) -> usize {
        self.visits.borrow().left()
    }

    /// A transaction with a server of ours has ended; the facts are those of a first-hand reply.
    pub fn note_visit(&self, robot: usize, request: &Request, first_hand: Option<&ReplyMeta>) {
        if !self.settings.share_phases || request.foreign.is_some() {
            return;
        }
        if self.visits.borrow_mut().visited(request.server, first_hand.is_some()) == Next::Again {
            self.generator.borrow_mut().visit_again(&self.settings, request.server);
        }
        let Some(marks) = first_hand.map(|facts| facts.marks) else { return };
        if let (Some(xact), Some(position)) = (marks.xact, marks.sync_position) {
            let (group, gone) = (xact.group, marks.gone);
            let word = PeerStatus { group, position, waits: false, at: self.now(), gone };
            self.peers.borrow_mut().hear(word, robot, request.server);
        }
    }

    /// Asks every server process for a sign that has given none for a while: at low loads, and while all replies
    /// come out of a cache, neither side would hear of the other. All of them hear at once where this one is.
    pub(crate) async fn keep_in_touch(self: Rc<Self>) {
        let mut told = self.position();
        loop {
            self.link.sleep_until(self.now() + LOOK).await;
            if self.pace.get().stopped {
                return;
            }
            if told != self.position() {
                told = self.position();
                self.peers.borrow_mut().ask_all();
            }
            let quiet = self.peers.borrow_mut().to_ask(self.now(), self.standing.get().waits);
            for Way { robot, server, .. } in quiet {
                let now = self.now();
                let request = self.generator.borrow_mut().question(&self.settings.field, server, now);
                self.begin(robot, request);
            }
        }
    }
}
