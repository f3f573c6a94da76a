//! What happens to the packets of one direction, and the pipes that the reference names.

use std::fmt::{self, Display};
use std::str::FromStr;

use polygraph_traffic::Distr;
use serde::{Deserialize, Serialize};

/// Packets that may wait for transmission if nothing else is said, as in dummynet.
const DEFAULT_QUEUE: u32 = 50;

/// One direction of an emulated path: how long packets take, and how many get lost. What dummynet calls a pipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pipe {
    /// The time that each packet takes, in seconds.
    pub delay: Distr,
    /// Another time that is added, in seconds, drawn for each packet.
    pub jitter: Option<Distr>,
    /// The share of packets that are lost.
    pub loss: f64,
    /// Bits that are transmitted in one second; `None` for any number.
    pub bandwidth: Option<f64>,
    /// What may wait for transmission. It matters only if the bandwidth is limited.
    pub queue: QueueLimit,
    /// Whether packets may overtake those that were sent earlier and drew a longer delay.
    pub reorder: bool,
}

/// What may wait for transmission, including what is being transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueLimit {
    /// A number of packets.
    Packets(u32),
    /// A number of bytes.
    Bytes(u64),
}

impl Default for Pipe {
    fn default() -> Pipe {
        Pipe {
            delay: Distr::Const(0.0),
            jitter: None,
            loss: 0.0,
            bandwidth: None,
            queue: QueueLimit::Packets(DEFAULT_QUEUE),
            reorder: false,
        }
    }
}

impl Pipe {
    /// Whether packets spend time in the pipe.
    pub fn takes_time(&self) -> bool {
        self.bandwidth.is_some()
            || self.delay != Distr::Const(0.0)
            || self.jitter.as_ref().is_some_and(|jitter| *jitter != Distr::Const(0.0))
    }

    /// Whether the pipe does nothing.
    pub fn is_idle(&self) -> bool {
        !self.takes_time() && self.loss <= 0.0
    }

    /// Whether all packets take the same time, apart from waiting for transmission.
    pub fn has_constant_delay(&self) -> bool {
        let constant = |distr: &Distr| matches!(distr, Distr::Const(_));
        constant(&self.delay) && self.jitter.as_ref().is_none_or(constant)
    }
}

impl Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay {}", times(&self.delay))?;
        if let Some(jitter) = &self.jitter {
            write!(f, " + {}", times(jitter))?;
        }
        write!(f, ", loss {} %", round(self.loss * 100.0))?;
        if let Some(bandwidth) = self.bandwidth {
            let queue = match self.queue {
                QueueLimit::Packets(count) => format!("{count} packets"),
                QueueLimit::Bytes(count) => format!("{count} bytes"),
            };
            write!(f, ", bandwidth {} Mbit/s with a queue of {queue}", round(bandwidth / 1e6))?;
        }
        if self.reorder && !self.has_constant_delay() {
            f.write_str(", packets may overtake others")?;
        }
        Ok(())
    }
}

/// A distribution of times in milliseconds, as the options write it.
fn times(distr: &Distr) -> String {
    let ms = |seconds: f64| format!("{}ms", round(seconds * 1000.0));
    match distr {
        Distr::Const(value) => ms(*value),
        Distr::Unif { min, max } => format!("unif({}, {})", ms(*min), ms(*max)),
        Distr::Exp { mean } => format!("exp({})", ms(*mean)),
        Distr::Norm { mean, sd } => format!("norm({}, {})", ms(*mean), ms(*sd)),
        other => format!("{other:?}"),
    }
}

/// At most six decimals, without zeros at the end.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The network pipes of the PolyMix-2 workload (docs/reference/workloads.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedPipe {
    /// What comes in through a telephone modem.
    ModemIn,
    /// What goes out through a telephone modem.
    ModemOut,
    /// A local network of 100 Mbit/s.
    FastEthernet,
    /// The path to a server nearby.
    LocalServer,
    /// The path to a server in the same country.
    DomesticServer,
    /// The path to a server abroad.
    ForeignServer,
}

impl NamedPipe {
    /// All pipes with their names in workloads.
    pub const ALL: [(&'static str, NamedPipe); 6] = [
        ("56Kbps-in", NamedPipe::ModemIn),
        ("56Kbps-out", NamedPipe::ModemOut),
        ("100BaseTX", NamedPipe::FastEthernet),
        ("localSrv", NamedPipe::LocalServer),
        ("domesticSrv", NamedPipe::DomesticServer),
        ("foreignSrv", NamedPipe::ForeignServer),
    ];

    /// What the pipe does.
    pub fn pipe(self) -> Pipe {
        let norm = |mean, sd| Distr::Norm { mean, sd };
        let plain = Pipe::default();
        let modem = |bandwidth| Pipe {
            delay: norm(0.05, 0.005),
            loss: 0.001,
            bandwidth: Some(bandwidth),
            ..Pipe::default()
        };
        match self {
            NamedPipe::ModemIn => modem(55e3),
            NamedPipe::ModemOut => modem(19e3),
            NamedPipe::FastEthernet => Pipe { bandwidth: Some(94e6), ..plain },
            NamedPipe::LocalServer => Pipe { loss: 0.0001, ..plain },
            NamedPipe::DomesticServer => Pipe { delay: norm(0.1, 0.03), loss: 0.0005, ..plain },
            NamedPipe::ForeignServer => Pipe { delay: norm(0.25, 0.08), loss: 0.005, ..plain },
        }
    }
}

impl FromStr for NamedPipe {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedPipe, String> {
        let found = NamedPipe::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, pipe)| *pipe).ok_or_else(|| {
            let names: Vec<&str> = NamedPipe::ALL.iter().map(|(name, _)| *name).collect();
            format!("there is no pipe `{text}`: choose one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_describe_themselves() {
        let pipe = Pipe { delay: Distr::Const(0.04), loss: 0.0005, ..Pipe::default() };
        assert_eq!(pipe.to_string(), "delay 40ms, loss 0.05 %");
        let pipe: NamedPipe = "56kbps-in".parse().unwrap();
        assert_eq!(
            pipe.pipe().to_string(),
            "delay norm(50ms, 5ms), loss 0.1 %, bandwidth 0.055 Mbit/s with a queue of 50 packets"
        );
        assert!("56K".parse::<NamedPipe>().unwrap_err().contains("domesticSrv"));
    }

    #[test]
    fn idle_pipes_and_constant_delays() {
        assert!(Pipe::default().is_idle());
        assert!(!NamedPipe::LocalServer.pipe().is_idle() && !NamedPipe::LocalServer.pipe().takes_time());
        assert!(NamedPipe::FastEthernet.pipe().takes_time());
        assert!(NamedPipe::FastEthernet.pipe().has_constant_delay());
        assert!(!NamedPipe::ForeignServer.pipe().has_constant_delay());
    }
}
