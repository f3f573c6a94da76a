//! The Unix user that a device runs as.

use std::io;
use std::net::SocketAddr;

use rustix::process::{Gid, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnixUser {
    /// User id.
    pub uid: u32,
    /// The id of the user's primary group.
    pub gid: u32,
    /// Whether the process may listen on ports below 1024.
    pub low_ports: bool,
}

impl UnixUser {
    /// Finds the user in `/etc/passwd`.
    pub fn find(user: &str, listen: SocketAddr) -> Option<UnixUser> {
        let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
        let (uid, gid) = passwd.lines().find_map(|line| ids(line, user))?;
        Some(UnixUser { uid, gid, low_ports: needs_privilege(listen.port()) })
    }

    /// Changes the calling thread to this user, permanently. The function is meant for the time between fork and
    /// exec: it only makes system calls and allocates no memory.
    ///
    /// Programs do not change the user themselves, because that would clear the signal that the kernel sends when
    /// their parent ends (`PR_SET_PDEATHSIG`).
    pub fn assume(self) -> io::Result<()> {
        thread::set_thread_groups(&[])?;
        thread::set_thread_gid(Gid::from_raw(self.gid))?;
        if self.low_ports {
            thread::set_keep_capabilities(true)?;
        }
        thread::set_thread_uid(Uid::from_raw(self.uid))?;
        if self.low_ports {
            let only = CapabilitySet::NET_BIND_SERVICE;
            thread::set_capabilities(
                None,
                CapabilitySets { effective: only, permitted: only, inheritable: only },
            )?;
            // An ordinary program keeps an ambient capability when it is executed.
            thread::configure_capability_in_ambient_set(only, true)?;
        }
        Ok(())
    }
}

/// The user and group id in a line of passwd(5), if it is that of `user`.
fn ids(line: &str, user: &str) -> Option<(u32, u32)> {
    let mut fields = line.split(':');
    (fields.next()? == user).then_some(())?;
    Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn needs_privilege(port: u16) -> bool {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    port < first.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_passwd() {
        for (line, expected) in [
            ("proxy:x:13:14:proxy:/bin:/usr/sbin/nologin", Some((13, 14))),
            ("proxy2:x:13:14:proxy:/bin:/usr/sbin/nologin", None),
            ("proxy:x:many:14", None),
            ("proxy:x:13", None),
            ("", None),
        ] {
            assert_eq!(ids(line, "proxy"), expected, "{line}");
        }
    }

    #[test]
    fn root_is_everywhere() {
        let root = UnixUser::find("root", SocketAddr::from(([127, 0, 0, 1], 65_535))).unwrap();
        assert_eq!((root.uid, root.gid, root.low_ports), (0, 0, false));
        assert_eq!(UnixUser::find("no such user", SocketAddr::from(([127, 0, 0, 1], 80))), None);
    }
}
