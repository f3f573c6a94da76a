//! A KDC of MIT Kerberos, which `devices/install.sh` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::wait_for_listener;
use crate::sandbox::{Running, Sandbox, free_port};

/// Its realm.
pub const REALM: &str = "BENCH.TEST";

/// A KDC (MIT) of its own, with a user `joe` (`secret`) and the service `HTTP/127.0.0.1`.
pub struct Kdc {
    dir: PathBuf,
    port: u16,
    running: Running,
}

impl Kdc {
    /// Starts a KDC. Datagrams are limited to `datagram` bytes.
    pub fn start(sandbox: &Sandbox, datagram: u32) -> Kdc {
        Kdc::make(sandbox, datagram, "")
    }

    /// Starts a KDC whose clock differs from that of this host, by `+1h` for example.
    pub fn with_clock(sandbox: &Sandbox, difference: &str) -> Kdc {
        // The loader replaces `$LIB` by the directory of libraries.
        Kdc::make(
            sandbox,
            4096,
            &format!("LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1 FAKETIME={difference}"),
        )
    }

    fn make(sandbox: &Sandbox, datagram: u32, clock: &str) -> Kdc {
        let (port, dir) = (free_port(), sandbox.path().to_owned());
        let at = |name: &str| dir.join(name).display().to_string();
        sandbox.write(
            "krb5.conf",
            &format!(
                "[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n\
                 [realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
            ),
        );
        sandbox.write(
            "kdc.conf",
            &format!(
                "[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n kdc_max_dgram_reply_size = {datagram}\n\
                 [realms]\n {REALM} = {{\n  database_name = {}\n  key_stash_file = {}\n  acl_file = {}\n  default_principal_flags = +preauth\n }}\n\
                 [logging]\n kdc = FILE:{}\n",
                at("principal"),
                at("stash"),
                at("acl"),
                at("kdc.log"),
            ),
        );
        run_tool(&dir, "kdb5_util", &["create", "-s", "-P", "master"]);
        for query in [
            "addprinc -pw secret joe",
            "addprinc -pw other -e aes256-cts-hmac-sha384-192:normal ann",
            "addprinc -randkey HTTP/127.0.0.1",
            &format!("ktadd -k {} HTTP/127.0.0.1", at("web.keytab")),
            "addprinc -randkey HTTP/changed.test",
        ] {
            run_tool(&dir, "kadmin.local", &["-q", query]);
        }
        let env = format!("{clock} KRB5_CONFIG={} KRB5_KDC_PROFILE={}", at("krb5.conf"), at("kdc.conf"));
        let running = sandbox.start_program("env", &format!("{env} krb5kdc -n -r {REALM}"));
        wait_for_listener(port);
        Kdc { dir, port, running }
    }

    /// Changes the accounts.
    pub fn administer(&self, query: &str) {
        run_tool(&self.dir, "kadmin.local", &["-q", query]);
    }

    /// The running program.
    pub fn program(&self) -> &Running {
        &self.running
    }

    /// A file of the KDC; its directory, if the name is empty.
    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// The declaration of `K`, with this KDC in the field `servers`.
    pub fn wrap(&self, servers: &str, more: &str) -> String {
        wrap(self.port, servers, more)
    }
}

/// The declaration of `K`, with a KDC at this port in the field `servers`.
pub fn wrap(port: u16, servers: &str, more: &str) -> String {
    let timeout = if more.contains("timeout") { "" } else { "timeout = 5sec;" };
    format!(
        "KerberosWrap K = {{ realm = \"{REALM}\"; {servers} = [ '127.0.0.1:{port}' ]; {timeout} {more} }};"
    )
}

fn run_tool(dir: &Path, program: &str, words: &[&str]) {
    let mut command = Command::new(program);
    command
        .args(["-r", REALM])
        .args(words)
        .env("KRB5_CONFIG", dir.join("krb5.conf"))
        .env("KRB5_KDC_PROFILE", dir.join("kdc.conf"));
    let output =
        command.output().unwrap_or_else(|e| panic!("{program}: {e}; devices/install.sh installs it"));
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
