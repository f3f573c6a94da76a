//! The first visits to all servers, by which a client learns about every server process before the measurement
//! (`docs/reference/models.md`, "First contact").

use crate::settings::{Load, Settings};

/// Number of visits without a reply of the server itself after which the server is given up.
const TRIES: u8 = 2;
/// The count of a server that has answered.
const ANSWERED: u8 = u8::MAX;

/// The servers that robots still have to visit.
#[derive(Clone, Debug)]
pub struct FirstContact {
    /// By server: the number of failed visits, or [`ANSWERED`].
    visits: Vec<u8>,
    left: usize,
}

/// The consequence of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextVisit {
    /// Robots need not visit the server again.
    Nothing,
    /// A robot must visit the server again.
    Again,
}

impl FirstContact {
    /// The visits to the servers of all robots of this loop that have a load.
    pub fn of(settings: &Settings) -> FirstContact {
        let visitors = settings.profiles.iter().enumerate().filter(|(index, profile)| {
            let here = (settings.first_robot..settings.first_robot + settings.robots)
                .any(|position| settings.kind(position) == *index);
            settings.share_phases && here && profile.foreign < 1.0 && profile.load != Load::Passive
        });
        let servers = visitors.flat_map(|(_, profile)| profile.origins.items().iter().copied());
        FirstContact::new(settings.field.servers.len(), servers)
    }

    /// Visits to the servers `to_visit`, of `servers` in all.
    fn new(servers: usize, to_visit: impl Iterator<Item = usize>) -> FirstContact {
        let mut visits = vec![ANSWERED; servers];
        let mut left = 0;
        for server in to_visit {
            left += usize::from(visits[server] == ANSWERED);
            visits[server] = 0;
        }
        FirstContact { visits, left }
    }

    /// Counts a visit that ended with a reply of the server itself, or without.
    pub fn visited(&mut self, server: usize, first_hand: bool) -> NextVisit {
        let Some(visits) = self.visits.get_mut(server).filter(|visits| **visits < TRIES) else {
            return NextVisit::Nothing;
        };
        *visits = if first_hand { ANSWERED } else { *visits + 1 };
        if *visits >= TRIES {
            self.left -= 1;
            return NextVisit::Nothing;
        }
        NextVisit::Again
    }

    /// Number of servers that robots must still visit.
    pub fn left(&self) -> usize {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_or_is_tried_twice() {
        let mut visits = FirstContact::new(4, [0, 2, 2, 3].into_iter());
        assert_eq!(visits.left(), 3);
        // Server, whether it answered itself, what next, and how many are left then.
        for (server, first_hand, next, left) in [
            (1, false, NextVisit::Nothing, 3),
            (0, true, NextVisit::Nothing, 2),
            (0, false, NextVisit::Nothing, 2),
            (2, false, NextVisit::Again, 2),
            (3, false, NextVisit::Again, 2),
            (2, true, NextVisit::Nothing, 1),
            (3, false, NextVisit::Nothing, 0),
            (3, true, NextVisit::Nothing, 0),
            (9, true, NextVisit::Nothing, 0),
        ] {
            assert_eq!((visits.visited(server, first_hand), visits.left()), (next, left), "{server}");
        }
    }
}
