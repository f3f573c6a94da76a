//! Host names made from IP addresses, as `ipsToNames()` of PGL makes them.

use std::net::IpAddr;

use crate::{Addr, AddrRange, HostRange, NumberRange, ParseProblem, TextPart, TextRange, merge_all};

/// How to make a name from an IP address.
///
/// A plain domain gives `w1007.h1000o1001s1010.DOMAIN` for 10.1.0.7 and keeps the port. In a template, macros
/// are replaced: `${dashed_ip}` is 10-1-0-7, `${port}` is the port, `${worker}` is the number of the process.
/// The port appears only where the template has it, as in `h${dashed_ip}.org:${port}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate {
    pieces: Vec<TemplatePart>,
    plain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    DashedIp,
    Port,
    Worker,
}

/// Why there is no name for an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// `${` without `}`, or a `$` without `{`.
    #[error("'$' begins a macro; macros are ${{dashed_ip}}, ${{port}} and ${{worker}}")]
    BadMacro,
    /// An unknown macro.
    #[error("there is no macro ${{{0}}}; macros are ${{dashed_ip}}, ${{port}} and ${{worker}}")]
    UnknownMacro(String),
    /// Text that cannot be part of a name.
    #[error("{0} in the template '{1}'; {help}", help = .0.help())]
    BadText(ParseProblem, String),
    /// A name where an IP address is required.
    #[error("{0} is already a name; names are made from IP addresses")]
    NotAnIp(String),
    /// `${port}` for an address without a port.
    #[error("the template contains the port, but {0} has none")]
    NoPort(String),
}

impl NameTemplate {
    /// Reads a domain or a template.
    ///
    /// # Errors
    /// If a macro is malformed or unknown, or the text cannot be part of a name.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            pieces.push(TemplatePart::Text(rest[..dollar].to_owned()));
            let body = rest[dollar + 1..].strip_prefix('{').ok_or(NameError::BadMacro)?;
            let (name, tail) = body.split_once('}').ok_or(NameError::BadMacro)?;
            pieces.push(match name {
                "dashed_ip" => TemplatePart::DashedIp,
                "port" => TemplatePart::Port,
                "worker" => TemplatePart::Worker,
                _ => return Err(NameError::UnknownMacro(name.to_owned())),
            });
            rest = tail;
        }
        pieces.push(TemplatePart::Text(rest.to_owned()));
        let template = NameTemplate { plain: pieces.len() == 1, pieces };
        // Macros yield valid characters only, so one address shows whether the text between them is valid.
        let sample = template.text(&Addr::from(IpAddr::from([10, 1, 0, 7])).with_port(Some(80)), 0)?;
        match AddrRange::parse(&sample.to_string()) {
            Ok(_) => Ok(template),
            Err(error) => Err(NameError::BadText(error.problem, text.to_owned())),
        }
    }

    /// Names for these addresses in their order, neighbours merged into ranges. `worker` is the number of the
    /// process.
    ///
    /// # Errors
    /// If an address is a name, or has no port where the template needs one.
    pub fn names(
        &self,
        addrs: impl IntoIterator<Item = Addr>,
        worker: u32,
    ) -> Result<Vec<AddrRange>, NameError> {
        let names = addrs.into_iter().map(|addr| self.name(&addr, worker)).collect::<Result<Vec<_>, _>>()?;
        Ok(merge_all(names))
    }

    /// The name for one address. Each number that comes from the address is a number position.
    fn name(&self, addr: &Addr, worker: u32) -> Result<AddrRange, NameError> {
        let mut name = self.text(addr, worker)?;
        let mut port = addr.port.filter(|_| self.plain).map(|port| NumberRange::one(port.into()));
        if let Some((host, written)) = split_port(&name) {
            name = host;
            port = Some(written);
        }
        Ok(AddrRange { interface: None, host: HostRange::Name(name), port, subnet: None })
    }

    fn text(&self, addr: &Addr, worker: u32) -> Result<TextRange, NameError> {
        let ip = addr.host.ip().ok_or_else(|| NameError::NotAnIp(addr.host.to_string()))?;
        let mut parts = Vec::new();
        if self.plain {
            parts.extend(plain_parts(ip));
            parts.push(TextPart::Lit(".".to_owned()));
        }
        for piece in &self.pieces {
            match piece {
                TemplatePart::Text(text) => parts.push(TextPart::Lit(text.clone())),
                TemplatePart::DashedIp => parts.extend(dashed_parts(ip)),
                TemplatePart::Worker => parts.push(number(worker)),
                TemplatePart::Port => {
                    let port = addr.port.ok_or_else(|| NameError::NoPort(addr.to_string()))?;
                    parts.push(number(port.into()));
                }
            }
        }
        Ok(TextRange::from_parts(parts))
    }
}

fn number(n: u32) -> TextPart {
    TextPart::Range(NumberRange::one(n))
}

fn plain_parts(ip: IpAddr) -> Vec<TextPart> {
    let lit = |text: &str| TextPart::Lit(text.to_owned());
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets().map(|octet| number(1000 + u32::from(octet)));
            vec![lit("w"), d, lit(".h"), c, lit("o"), b, lit("s"), a]
        }
        IpAddr::V6(_) => [vec![lit("w-")], dashed_parts(ip)].concat(),
    }
}

fn dashed_parts(ip: IpAddr) -> Vec<TextPart> {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets().map(|octet| number(octet.into()));
            let dash = || TextPart::Lit("-".to_owned());
            vec![a, dash(), b, dash(), c, dash(), d]
        }
        // Number positions are decimal, so groups of hex digits stay text.
        IpAddr::V6(ip) => vec![TextPart::Lit(ip.segments().map(|group| format!("{group:x}")).join("-"))],
    }
}

/// Splits `name:port`, where the port is one number position or plain digits.
fn split_port(text: &TextRange) -> Option<(TextRange, NumberRange)> {
    let mut parts = text.parts.clone();
    let (colon, port) = match (parts.pop()?, parts.last()) {
        (TextPart::Range(port), Some(TextPart::Lit(before))) if before.ends_with(':') => {
            (before.len() - 1, port)
        }
        (TextPart::Lit(last), _) => {
            let (before, digits) = last.rsplit_once(':')?;
            let port = digits.parse().ok()?;
            parts.push(TextPart::Lit(last.clone()));
            (before.len(), NumberRange::one(port))
        }
        _ => return None,
    };
    if let Some(TextPart::Lit(before)) = parts.last_mut() {
        before.truncate(colon);
    }
    Some((TextRange::from_parts(parts), port))
}
