//! Reads addresses and ranges: `[interface::]host[:port][/subnet]`.

use std::net::Ipv6Addr;
use std::ops::Range;
use std::str::FromStr;

use crate::number::{looks_like_ipv4, read_range, strip_brackets};
use crate::text::RangeSyntax;
use crate::{Addr, AddrRange, HostRange, NumberRange, ParseError, ParseProblem, TextRange};

impl AddrRange {
    /// Reads the notation of PGL and of the command line tools. One address is a range of one.
    ///
    /// # Errors
    /// If `text` is not in this notation.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        range(text)
    }

    /// Reads ranges separated by blanks, commas or semicolons.
    ///
    /// # Errors
    /// If one of the ranges cannot be read; the error is that of the first.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, ParseError> {
        let separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';');
        text.split(separator).filter(|part| !part.is_empty()).map(AddrRange::parse).collect()
    }
}

impl FromStr for AddrRange {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        AddrRange::parse(text)
    }
}

impl Addr {
    /// Reads one address.
    ///
    /// # Errors
    /// If `text` is not an address. A range is an error too, even a range of one; see [`AddrRange::parse`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let range = AddrRange::parse(text)?;
        range.as_single().ok_or_else(|| ParseError::new(text, 0..text.len(), ParseProblem::RangeForOne))
    }
}

impl FromStr for Addr {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Addr::parse(text)
    }
}

fn range(text: &str) -> Result<AddrRange, ParseError> {
    let fail = |span: Range<usize>, problem| Err(ParseError::new(text, span, problem));
    let mut at = 0..text.len();

    let mut interface = None;
    let bracket = text.find('[').unwrap_or(text.len());
    if let Some(len) = text[..bracket].find("::") {
        if text.parse::<Ipv6Addr>().is_ok() {
            return fail(at, ParseProblem::BareIpv6);
        }
        if len == 0 {
            return fail(0..2, ParseProblem::EmptyInterface);
        }
        if let Some((pos, c)) = text[..len].char_indices().find(|(_, c)| !is_interface_char(*c)) {
            return fail(pos..pos + c.len_utf8(), ParseProblem::InterfaceChar(c));
        }
        interface = Some(text[..len].into());
        at.start = len + 2;
    }

    let mut subnet_at = None;
    if let Some(slash) = text[at.clone()].rfind('/') {
        subnet_at = Some(at.start + slash + 1..at.end);
        at.end = at.start + slash;
    }

    let (host_at, port_at) = split_port(text, at.clone())?;
    if host_at.is_empty() {
        return fail(at, ParseProblem::EmptyHost);
    }
    let host = host_range(text, host_at)?;
    let port = port_at.map(|at| port_span(text, at)).transpose()?;

    let mut subnet = None;
    if let Some(at) = subnet_at {
        let widest = match host {
            HostRange::V4(_) => 32,
            HostRange::V6(_) => 128,
            HostRange::Name(_) => return fail(at, ParseProblem::SubnetOnName),
        };
        let digits = &text[at.clone()];
        match digits.parse::<u8>() {
            Ok(n) if is_digits(digits) && (1..=widest).contains(&n) => subnet = Some(n),
            _ => return fail(at, ParseProblem::BadSubnet(digits.to_owned())),
        }
    }
    Ok(AddrRange { interface, host, port, subnet })
}

/// The positions of the host and the port.
fn split_port(text: &str, at: Range<usize>) -> Result<(Range<usize>, Option<Range<usize>>), ParseError> {
    let fail = |span: Range<usize>, problem| Err(ParseError::new(text, span, problem));
    let body = &text[at.clone()];
    // A bracket with a colon inside is an IPv6 address; otherwise it is a number position of a name.
    if let Some(inner) = body.strip_prefix('[')
        && inner.contains(':')
    {
        let Some(close) = inner.find(']') else {
            return fail(at, ParseProblem::UnclosedIpv6);
        };
        if inner[..close].contains(':') {
            let end = at.start + close + 2;
            return match &text[end..at.end] {
                "" => Ok((at.start..end, None)),
                tail if tail.starts_with(':') => Ok((at.start..end, Some(end + 1..at.end))),
                tail => fail(end..at.end, ParseProblem::Trailing(tail.to_owned())),
            };
        }
    }
    Ok(match body.find(':') {
        Some(colon) => (at.start..at.start + colon, Some(at.start + colon + 1..at.end)),
        None => (at, None),
    })
}

fn host_range(text: &str, at: Range<usize>) -> Result<HostRange, ParseError> {
    let host = &text[at.clone()];
    if host.starts_with('[') && host.contains(':') {
        return groups(text, at.start + 1..at.end - 1).map(HostRange::V6);
    }
    if looks_like_ipv4(host) {
        let parts: Vec<_> = split_at(text, at.clone(), '.').collect();
        let [a, b, c, d] = &parts[..] else {
            return Err(ParseError::new(text, at, ParseProblem::OctetCount(parts.len())));
        };
        let octet = |at: &Range<usize>| read_range(text, bare(text, at.clone()), 10, "octet", 255);
        return Ok(HostRange::V4([octet(a)?, octet(b)?, octet(c)?, octet(d)?]));
    }
    TextRange::parse_within(text, at, RangeSyntax::HostName).map(HostRange::Name)
}

/// The groups of an IPv6 address, its brackets already removed.
fn groups(text: &str, at: Range<usize>) -> Result<[NumberRange; 8], ParseError> {
    let inner = &text[at.clone()];
    let bad = || ParseError::new(text, at.clone(), ParseProblem::BadIpv6(inner.to_owned()));
    if let Ok(ip) = inner.parse::<Ipv6Addr>() {
        return Ok(ip.segments().map(|n| NumberRange::one(n.into())));
    }
    let read = |at: Range<usize>| -> Result<Vec<NumberRange>, ParseError> {
        match at.is_empty() {
            true => Ok(Vec::new()),
            false => split_at(text, at, ':').map(|at| read_range(text, at, 16, "group", 0xffff)).collect(),
        }
    };
    let spans = match inner.find("::") {
        None => read(at.clone())?,
        Some(gap) => {
            let mut spans = read(at.start..at.start + gap)?;
            let tail = read(at.start + gap + 2..at.end)?;
            if spans.len() + tail.len() > 7 {
                return Err(bad());
            }
            spans.resize(8 - tail.len(), NumberRange::one(0));
            spans.extend(tail);
            spans
        }
    };
    spans.try_into().map_err(|_| bad())
}

fn port_span(text: &str, at: Range<usize>) -> Result<NumberRange, ParseError> {
    let fail = |problem| Err(ParseError::new(text, at.clone(), problem));
    let port = &text[at.clone()];
    if port.is_empty() {
        return fail(ParseProblem::EmptyPort);
    }
    if !strip_brackets(port).bytes().all(|b| b.is_ascii_digit() || b == b'-') {
        return fail(ParseProblem::BadPort(port.to_owned()));
    }
    let span = read_range(text, bare(text, at.clone()), 10, "port", 0xffff)?;
    if span.lo == 0 { fail(ParseProblem::PortZero) } else { Ok(span) }
}

/// The pieces of a part of the text between separators.
fn split_at(text: &str, at: Range<usize>, separator: char) -> impl Iterator<Item = Range<usize>> {
    let mut start = at.start;
    text[at].split(separator).map(move |piece| {
        let piece_at = start..start + piece.len();
        start = piece_at.end + separator.len_utf8();
        piece_at
    })
}

/// The position inside `[` and `]`, if both are present.
fn bare(text: &str, at: Range<usize>) -> Range<usize> {
    match strip_brackets(&text[at.clone()]).len() == at.len() {
        true => at,
        false => at.start + 1..at.end - 1,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_interface_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@')
}
