//! The first visits to all servers, with which a client learns of everybody before anything is measured (reference:
//! models.md, section 19).

/// A server is given up after so many visits without a reply of its own.
const TRIES: u8 = 2;
/// A server that has answered.
const ANSWERED: u8 = u8::MAX;

/// Which servers have been visited.
#[derive(Clone, Debug)]
pub struct FirstContact {
    /// By server: failed visits, or [`ANSWERED`].
    visits: Vec<u8>,
    left: usize,
}

/// What a visit leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing more.
    Nothing,
    /// One more visit.
    Again,
}

impl FirstContact {
    /// Visits to these servers, of `servers` in all.
    pub fn new(servers: usize, to_visit: impl Iterator<Item = usize>) -> FirstContact {
        let mut visits = vec![ANSWERED; servers];
        let mut left = 0;
        for server in to_visit {
            left += usize::from(visits[server] == ANSWERED);
            visits[server] = 0;
        }
        FirstContact { visits, left }
    }

    /// A visit to a server has ended, with a first-hand reply or without.
    pub fn visited(&mut self, server: usize, first_hand: bool) -> Next {
        let Some(visits) = self.visits.get_mut(server).filter(|visits| **visits < TRIES) else {
            return Next::Nothing;
        };
        *visits = if first_hand { ANSWERED } else { *visits + 1 };
        if *visits >= TRIES {
            self.left -= 1;
            return Next::Nothing;
        }
        Next::Again
    }

    /// Servers that must still be visited.
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
            (1, false, Next::Nothing, 3),
            (0, true, Next::Nothing, 2),
            (0, false, Next::Nothing, 2),
            (2, false, Next::Again, 2),
            (3, false, Next::Again, 2),
            (2, true, Next::Nothing, 1),
            (3, false, Next::Nothing, 0),
            (3, true, Next::Nothing, 0),
            (9, true, Next::Nothing, 0),
        ] {
            assert_eq!((visits.visited(server, first_hand), visits.left()), (next, left), "{server}");
        }
    }
}
