//! The accounts that robots of a workload log in with, in the formats of proxies, servers and directories.

use std::collections::HashMap;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polygraph_pgl::Workload;
use polygraph_stats::record::settings::NO_ACCOUNTS;
use polygraph_traffic::Seed;
use polygraph_wire::auth::stored::{apr1, salt, smd5};

/// The worker number of robots: robots of all worker processes belong to one worker, as in the calls of the
/// language.
pub(crate) const WORKER: &str = "0";

/// A user with a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user name.
    pub user: String,
    /// The password in clear.
    pub password: String,
}

/// The accounts of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Each user once, in the order of the robots.
    pub list: Vec<Account>,
    /// Users that have a different password elsewhere in the workload.
    pub contradictory: Vec<String>,
}

/// The formats of account lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountFormat<'a> {
    /// Lines of `htpasswd`: `user:$apr1$...`.
    Htpasswd,
    /// Entries of a directory below this name, with passwords as `{SMD5}` or in clear.
    Ldif {
        /// The name of the directory entry above the accounts.
        base: &'a str,
        /// Write passwords in clear, for directories that hash passwords themselves.
        clear: bool,
    },
    /// Lines `user:password` in clear, or user names only.
    Plain {
        /// Write passwords.
        clear: bool,
    },
}

impl Accounts {
    /// The accounts of all robots of a workload.
    pub fn of(workload: &Workload) -> Accounts {
        Accounts::listed(workload.robots.iter().flat_map(|robot| &robot.credentials))
    }

    /// The accounts in lists of `credentials`.
    pub fn listed<'a>(entries: impl IntoIterator<Item = &'a String>) -> Accounts {
        let mut accounts = Accounts::default();
        let mut known: HashMap<String, String> = HashMap::new();
        for entry in entries {
            let entry = entry.replace("${worker}", WORKER);
            let (user, password) = entry.split_once(':').unwrap_or((&entry, ""));
            match known.get(user) {
                Some(before) if before != password => accounts.contradictory.push(user.to_owned()),
                Some(_) => {}
                None => {
                    known.insert(user.to_owned(), password.to_owned());
                    let (user, password) = (user.to_owned(), password.to_owned());
                    accounts.list.push(Account { user, password });
                }
            }
        }
        accounts
    }

    /// A short mark that differs from that of other accounts. It tells nobody a password that is hard to guess.
    pub fn mark(&self) -> String {
        if self.list.is_empty() {
            return NO_ACCOUNTS.to_owned();
        }
        let mut all: Vec<String> =
            self.list.iter().map(|account| format!("{}:{}\n", account.user, account.password)).collect();
        all.sort_unstable();
        format!("{:016x}", Seed(all.len() as u64).derive(&all.concat(), 0))
    }

    /// One account as text of one or more lines.
    pub fn text(account: &Account, form: AccountFormat<'_>) -> String {
        let Account { user, password } = account;
        let salt = || salt(format!("{user}:{password}").as_bytes());
        match form {
            AccountFormat::Plain { clear: false } => format!("{user}\n"),
            AccountFormat::Plain { clear: true } => format!("{user}:{password}\n"),
            AccountFormat::Htpasswd => format!("{user}:{}\n", apr1(password.as_bytes(), &salt())),
            AccountFormat::Ldif { base, clear } => {
                let stored = if clear { password.clone() } else { smd5(password.as_bytes(), &salt()) };
                let mut text = String::new();
                let lines = [
                    ("dn", &*format!("uid={},{base}", in_name(user))),
                    ("objectClass", "inetOrgPerson"),
                    ("uid", user),
                    ("cn", user),
                    ("sn", user),
                    ("userPassword", &stored),
                ];
                lines.iter().for_each(|(name, value)| line(&mut text, name, value));
                text.push('\n');
                text
            }
        }
    }
}

/// A value as a part of a directory name (RFC 4514, section 2.4).
fn in_name(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    let mut name = String::new();
    for (at, c) in value.chars().enumerate() {
        let special = matches!(c, '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=');
        if special || (c == ' ' && (at == 0 || at == last)) || (c == '#' && at == 0) {
            name.push('\\');
        }
        name.push(c);
    }
    name
}

/// A line of LDIF; a value that is not plain text is in base64 (RFC 2849).
fn line(text: &mut String, name: &str, value: &str) {
    let plain = value.bytes().all(|c| (32..127).contains(&c))
        && !value.starts_with([' ', ':', '<'])
        && !value.ends_with(' ');
    // Writing to a string cannot fail.
    let _ = match plain {
        true => writeln!(text, "{name}: {value}"),
        false => writeln!(text, "{name}:: {}", STANDARD.encode(value)),
    };
}

#[cfg(test)]
mod tests {
    use polygraph_pgl::{MemoryLoader, Options, compile};

    use super::*;

    fn accounts(credentials: &str) -> Accounts {
        let text = format!(
            "Content C = {{ size = exp(1KB); }};\nServer S = {{ contents = [ C ]; addresses = ['127.0.0.1:9090']; }};\n\
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1']; req_rate = 1/sec; credentials = {credentials}; }};\n\
             use(S, R);"
        );
        let loader = MemoryLoader::default().with("test.pg", text);
        Accounts::of(&compile("test.pg", &loader, &Options::default()).workload.expect("a workload"))
    }

    fn account(user: &str, password: &str) -> Account {
        Account { user: user.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn each_user_is_listed_once() {
        let found = accounts(
            "[ \"joe:a\", \"joe:a\", \"ann:b:c\", \"joe:x\", \"w${worker}:\", \"u\\[1]:p\", \"u[1-2]:p\" ]",
        );
        let users: Vec<_> = found.list.iter().map(|account| (&*account.user, &*account.password)).collect();
        assert_eq!(
            users,
            [("joe", "a"), ("ann", "b:c"), ("w0", ""), ("u[1]", "p"), ("u1", "p"), ("u2", "p")]
        );
        assert_eq!(found.contradictory, ["joe"]);
    }

    #[test]
    fn passwords_are_told_only_when_asked_for() {
        let joe = account("joe", "secret");
        let base = "ou=people,dc=x";
        for form in [
            AccountFormat::Htpasswd,
            AccountFormat::Ldif { base, clear: false },
            AccountFormat::Plain { clear: false },
        ] {
            let text = Accounts::text(&joe, form);
            assert!(text.contains("joe") && !text.contains("secret"), "{text}");
        }
        assert_eq!(Accounts::text(&joe, AccountFormat::Plain { clear: true }), "joe:secret\n");
        assert_eq!(
            Accounts::text(&joe, AccountFormat::Ldif { base, clear: true }),
            "dn: uid=joe,ou=people,dc=x\nobjectClass: inetOrgPerson\nuid: joe\ncn: joe\nsn: joe\nuserPassword: secret\n\n"
        );
    }

    #[test]
    fn odd_names_are_quoted_in_directories() {
        let odd = account(" a,b=c", "é");
        let text = Accounts::text(&odd, AccountFormat::Ldif { base: "dc=x", clear: true });
        assert!(text.starts_with("dn: uid=\\ a\\,b\\=c,dc=x\n"), "{text}");
        assert!(text.contains("\nuid:: IGEsYj1j\n") && text.contains("\nuserPassword:: w6k=\n"), "{text}");
    }
}
