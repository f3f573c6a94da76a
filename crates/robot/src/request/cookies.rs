//! Cookies that a robot keeps (`docs/reference/models.md`, "Cookies").

use polygraph_stats::Recorder;
use polygraph_wire::cookie::{self, Lifetime, SetCookie};
use rustc_hash::FxHashMap;

/// A kept cookie.
#[derive(Debug)]
struct Kept {
    name: Vec<u8>,
    value: Vec<u8>,
    lifetime: Lifetime,
}

/// The cookies of one robot, by visible server.
#[derive(Debug)]
pub struct CookieJar {
    /// Maximum number of cookies kept for each server.
    room: usize,
    cookies: FxHashMap<usize, Vec<Kept>>,
}

impl CookieJar {
    /// An empty jar with room for this many cookies of each server.
    pub fn new(room: usize) -> CookieJar {
        CookieJar { room, cookies: FxHashMap::default() }
    }

    /// Stores the cookies in the `Set-Cookie` fields of a reply of `server` at `now` (seconds since 1970).
    pub fn store(&mut self, server: usize, fields: &[Vec<u8>], now: u64, recorder: &Recorder) {
        let (mut received, mut updated, mut purged) = (0, 0, 0);
        let kept = self.cookies.entry(server).or_default();
        for set in fields.iter().filter_map(|field| SetCookie::parse(field, now)) {
            received += 1;
            let known = kept.iter().position(|cookie| cookie.name == set.name);
            if let Some(at) = known {
                kept.remove(at);
                updated += 1;
            }
            if self.room == 0 || is_over(set.lifetime, now) {
                continue;
            }
            if kept.len() >= self.room {
                kept.remove(0);
                purged += 1;
            }
            let (name, value) = (set.name.to_vec(), set.value.to_vec());
            kept.push(Kept { name, value, lifetime: set.lifetime });
        }
        if received > 0 {
            recorder.with(|block| {
                block.cookies.received.record(received);
                block.cookies.updated += updated;
                block.cookies.purged_fresh += purged;
            });
        }
    }

    /// Appends the header line with the cookies for `server`.
    pub fn write(&mut self, server: usize, now: u64, out: &mut Vec<u8>, recorder: &Recorder) {
        let Some(kept) = self.cookies.get_mut(&server) else { return };
        let before = kept.len();
        kept.retain(|cookie| !is_over(cookie.lifetime, now));
        let (stale, sent) = ((before - kept.len()) as u64, kept.len() as u64);
        cookie::write_line(kept.iter().map(|cookie| (&cookie.name[..], &cookie.value[..])), out);
        recorder.with(|block| {
            block.cookies.purged_stale += stale;
            if sent > 0 {
                block.cookies.sent.record(sent);
            }
        });
    }

    /// Drops the cookies of the session.
    pub fn end_session(&mut self) {
        for kept in self.cookies.values_mut() {
            kept.retain(|cookie| cookie.lifetime != Lifetime::Session);
        }
    }
}

fn is_over(lifetime: Lifetime, now: u64) -> bool {
    matches!(lifetime, Lifetime::Until(moment) if moment <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_kept_replaced_purged_and_forgotten() {
        let recorder = Recorder::new();
        let mut jar = CookieJar::new(2);
        let set = |text: &str| vec![text.as_bytes().to_vec()];
        let sent = |jar: &mut CookieJar, server, now| {
            let mut out = Vec::new();
            jar.write(server, now, &mut out, &recorder);
            String::from_utf8(out).unwrap()
        };
        for text in ["a=1", "b=2; Max-Age=10", "a=3"] {
            jar.store(7, &set(text), 1000, &recorder);
        }
        assert_eq!(sent(&mut jar, 7, 1001), "Cookie: b=2; a=3\r\n");
        assert_eq!(sent(&mut jar, 8, 1001), "");
        assert_eq!(sent(&mut jar, 7, 1011), "Cookie: a=3\r\n");
        jar.store(7, &set("c=4"), 1012, &recorder);
        jar.store(7, &set("d=5; Max-Age=99"), 1012, &recorder);
        assert_eq!(sent(&mut jar, 7, 1013), "Cookie: c=4; d=5\r\n");
        jar.end_session();
        assert_eq!(sent(&mut jar, 7, 1013), "Cookie: d=5\r\n");
        recorder.with(|block| {
            assert_eq!((block.cookies.updated, block.cookies.purged_fresh), (1, 1));
            assert_eq!((block.cookies.purged_stale, block.cookies.received.count()), (1, 5));
        });
    }
}
