//! The list of the hosts of a fleet without NATS, as a TOML file (docs/fleet.md).

use polygraph_addr::AddrRange;
use serde::Deserialize;

use crate::names::AgentName;

/// The hosts of a fleet, and how their agents are started.
#[derive(Clone, Debug, PartialEq)]
pub struct HostList {
    /// The hosts in the order of the file.
    pub hosts: Vec<ListedHost>,
    /// The program on all hosts.
    program: String,
    /// The directory for logs on all hosts; each agent has one of its own in it.
    logs: String,
    /// Further options of ssh.
    ssh_options: Vec<String>,
}

/// A host of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedHost {
    /// The name of its agent.
    pub name: AgentName,
    /// Where ssh finds the host, for example `bench@10.0.0.7`.
    ssh: String,
    /// Options of its agent.
    agent_options: Vec<String>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default = "program")]
    program: String,
    #[serde(default = "logs")]
    logs: String,
    #[serde(default)]
    ssh_options: Vec<String>,
    host: Vec<HostText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostText {
    name: AgentName,
    ssh: Option<String>,
    roles: Vec<Role>,
    #[serde(default)]
    addrs: Vec<String>,
    weight: Option<f64>,
    #[serde(default)]
    allow_exec: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Client,
    Server,
}

fn program() -> String {
    "polygraph".to_owned()
}

fn logs() -> String {
    "polygraph-agent".to_owned()
}

impl HostList {
    /// Reads a list of hosts.
    ///
    /// # Errors
    /// A message for the user, without the name of the file.
    pub fn parse(text: &str) -> Result<HostList, String> {
        let Text { program, logs, ssh_options, host } =
            toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        let hosts = host.into_iter().map(HostText::host).collect::<Result<Vec<ListedHost>, String>>()?;
        if hosts.is_empty() {
            return Err("it has no hosts: add [[host]] with name and roles".to_owned());
        }
        let mut names: Vec<&AgentName> = hosts.iter().map(|host| &host.name).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two hosts have the name {}: names must differ", pair[0]));
        }
        Ok(HostList { hosts, program, logs, ssh_options })
    }

    /// The arguments of the ssh command that starts the agent of a host.
    pub fn ssh_arguments(&self, host: &ListedHost) -> Vec<String> {
        let fixed = ["agent", "--stdio", "--name", host.name.as_str(), "--logs"].map(str::to_owned);
        let logs = format!("{}/{}", self.logs, host.name);
        let words = std::iter::once(self.program.clone()).chain(fixed).chain([logs]);
        let command: Vec<String> =
            words.chain(host.agent_options.iter().cloned()).map(|word| quoted(&word)).collect();
        let mut arguments = self.ssh_options.clone();
        arguments.extend([host.ssh.clone(), command.join(" ")]);
        arguments
    }
}

/// A word that a shell reads as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl HostText {
    fn host(self) -> Result<ListedHost, String> {
        let wrong = |why: String| format!("host {}: {why}", self.name);
        let ssh = self.ssh.unwrap_or_else(|| self.name.to_string());
        if ssh.is_empty() || ssh.starts_with('-') {
            return Err(wrong(format!("`{ssh}` is not a destination of ssh")));
        }
        let has = |role: fn(&Role) -> bool| self.roles.iter().any(role);
        let roles = match (has(|role| matches!(role, Role::Client)), has(|role| matches!(role, Role::Server)))
        {
            (true, true) => "client,server",
            (true, false) => "client",
            (false, true) => "server",
            (false, false) => {
                return Err(wrong("it has no roles: write \"client\", \"server\" or both".to_owned()));
            }
        };
        let mut agent_options = vec!["--roles".to_owned(), roles.to_owned()];
        if let Some(weight) = self.weight {
            if !(weight.is_finite() && weight > 0.0) {
                return Err(wrong(format!("its weight is {weight}: write a positive number")));
            }
            agent_options.extend(["--weight".to_owned(), weight.to_string()]);
        }
        for range in &self.addrs {
            AddrRange::parse(range).map_err(|error| wrong(format!("`{range}`: {error}")))?;
            agent_options.extend(["--addrs".to_owned(), range.clone()]);
        }
        if self.allow_exec {
            agent_options.push("--allow_exec".to_owned());
        }
        Ok(ListedHost { name: self.name, ssh, agent_options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_become_commands_of_ssh() {
        let list = HostList::parse(
            "program = \"/opt/poly graph\"\nssh_options = [\"-F\", \"config\"]\n\
             [[host]]\nname = \"clt1\"\nssh = \"bench@10.0.0.7\"\nroles = [\"client\"]\nweight = 2.0\naddrs = [\"10.1.0.1-9\"]\n\
             [[host]]\nname = \"srv1\"\nroles = [\"server\", \"client\"]\n",
        )
        .unwrap();
        assert_eq!(
            list.ssh_arguments(&list.hosts[0]),
            [
                "-F",
                "config",
                "bench@10.0.0.7",
                "'/opt/poly graph' 'agent' '--stdio' '--name' 'clt1' '--logs' 'polygraph-agent/clt1' '--roles' 'client' '--weight' '2' \
                 '--addrs' '10.1.0.1-9'"
            ]
        );
        let second = list.ssh_arguments(&list.hosts[1]);
        assert!(second[2] == "srv1" && second[3].ends_with("'--roles' 'client,server'"), "{second:?}");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn lists_that_cannot_be_used_say_why() {
        let host = |more: &str| format!("[[host]]\nname = \"a\"\n{more}\n");
        for (text, part) in [
            (String::new(), "missing field `host`"),
            ("host = []".to_owned(), "it has no hosts"),
            (host("roles = []"), "host a: it has no roles"),
            (host("roles = [\"client\"]\nssh = \"-oProxyCommand=x\""), "is not a destination of ssh"),
            (host("roles = [\"client\"]\nweight = -1.0"), "its weight is -1"),
            (host("roles = [\"client\"]\naddrs = [\"x y\"]"), "`x y`"),
            (host("roles = [\"client\"]\nspeed = 1"), "unknown field `speed`"),
            (host("roles = [\"client\"]").repeat(2), "two hosts have the name a"),
            ("[[host]]\nname = \"a/b\"\nroles = [\"client\"]".to_owned(), "is not the name of an agent"),
        ] {
            let error = HostList::parse(&text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
