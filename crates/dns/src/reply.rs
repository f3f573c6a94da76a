//! The server's half of the protocol: makes a reply to any bytes.

use std::net::IpAddr;

use domain::base::iana::{Class, Opcode, OptRcode, Rcode, Rtype};
use domain::base::message_builder::{AdditionalBuilder, AnswerBuilder, PushError};
use domain::base::opt::{Opt, OptRecord};
use domain::base::wire::ParseError;
use domain::base::{Message, MessageBuilder, Name, ParsedName, Question, Serial, StaticCompressor, Ttl};
use domain::rdata::{A, Aaaa, Soa};

use crate::name::DomainName;
use crate::query::QueryType;
use crate::zone::{Zone, ZoneAnswer};

/// Octets of a datagram to a client that does not announce its limit (RFC 1035, section 2.3.4).
pub const PLAIN_LIMIT: usize = 512;
/// Octets of a datagram to any other client: the most that passes without fragmentation (RFC 9715).
pub const LARGEST_DATAGRAM: usize = 1232;
/// Octets of a message over TCP (RFC 7766, section 8).
pub const STREAM_LIMIT: usize = u16::MAX as usize;

/// Octets of an OPT record without options (RFC 6891, section 6.1.2).
const OPT_OCTETS: usize = 11;
/// The serial number of all zones.
const SERIAL: u32 = 1;

/// The transport of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In a datagram.
    Udp,
    /// Over a connection.
    Tcp,
}

/// The kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsOutcome {
    /// Addresses, or the SOA record of the zone.
    Answered,
    /// The name exists, but has no record of the requested type.
    NoData,
    /// NXDOMAIN: the name does not exist.
    NoName,
    /// REFUSED: a foreign zone or class, or a zone transfer.
    Refused,
    /// FORMERR: the request is malformed.
    BadFormat,
    /// NOTIMP: the operation is not supported; BADVERS: the version of EDNS is unknown.
    NotImplemented,
}

/// A reply to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsReply {
    /// The message.
    pub message: Vec<u8>,
    /// The kind of the reply.
    pub outcome: DnsOutcome,
    /// Whether addresses were omitted for lack of room (TC is set), so that the client may ask again over TCP.
    pub truncated: bool,
}

/// Answers a request from the tables. `ttl` is the time to live in seconds of positive and negative answers. `None`
/// if the bytes are not a request: a reply to a reply could go back and forth between two servers for ever.
pub fn reply(zone: &Zone, ttl: u32, request: &[u8], transport: Transport) -> Option<DnsReply> {
    let request = Message::from_slice(request).ok().filter(|request| !request.header().qr())?;
    let mut builder =
        MessageBuilder::from_target(StaticCompressor::new(Vec::with_capacity(PLAIN_LIMIT))).ok()?;
    let asked = request.header();
    let header = builder.header_mut();
    header.set_qr(true);
    header.set_id(asked.id());
    header.set_opcode(asked.opcode());
    header.set_rd(asked.rd());
    // Other operations have other sections, so nothing more is read.
    if asked.opcode() != Opcode::QUERY {
        return Some(short(builder, Rcode::NOTIMP, DnsOutcome::NotImplemented));
    }
    let (Ok(question), Ok(edns)) = (request.sole_question(), edns(request)) else {
        return Some(short(builder, Rcode::FORMERR, DnsOutcome::BadFormat));
    };
    let limit = match (transport, &edns) {
        (Transport::Tcp, _) => STREAM_LIMIT,
        (Transport::Udp, None) => PLAIN_LIMIT,
        (Transport::Udp, Some(edns)) => {
            usize::from(edns.udp_payload_size()).clamp(PLAIN_LIMIT, LARGEST_DATAGRAM)
        }
    };
    let reserved = edns.as_ref().map_or(0, |_| OPT_OCTETS);
    // The limit of the library is the first length that does not fit.
    builder.set_push_limit(limit - reserved + 1);
    let bad_version = edns.as_ref().is_some_and(|edns| edns.version() != 0);
    let content = if bad_version { AnswerContent::BadVersion } else { content(zone, &question) };
    let mut builder = builder.question();
    builder.push(question).ok()?;
    let (mut end, truncated) =
        content.write(builder.answer(), *question.qname(), Ttl::from_secs(ttl)).ok()?;
    if edns.is_some() {
        end.set_push_limit(limit + 1);
        end.opt(|opt| {
            opt.set_udp_payload_size(LARGEST_DATAGRAM as u16);
            if bad_version {
                opt.set_rcode(OptRcode::BADVERS);
            }
            Ok(())
        })
        .ok()?;
    }
    Some(DnsReply { message: end.finish().into_target(), outcome: content.outcome(), truncated })
}

type Target = StaticCompressor<Vec<u8>>;
type AskedName<'a> = ParsedName<&'a [u8]>;

/// A reply that consists of a header only.
fn short(mut builder: MessageBuilder<Target>, rcode: Rcode, outcome: DnsOutcome) -> DnsReply {
    builder.header_mut().set_rcode(rcode);
    DnsReply { message: builder.finish().into_target(), outcome, truncated: false }
}

/// The OPT record of a request, which may have one at most (RFC 6891, section 6.1.1).
fn edns(request: &Message<[u8]>) -> Result<Option<OptRecord<&[u8]>>, ParseError> {
    let mut found = None;
    for record in request.additional()? {
        let Some(record) = record?.into_record::<Opt<_>>()? else { continue };
        if found.replace(OptRecord::from(record)).is_some() {
            return Err(ParseError::form_error("two OPT records"));
        }
    }
    Ok(found)
}

/// The answer to a question.
enum AnswerContent {
    Addresses(Vec<IpAddr>),
    /// The SOA record of the zone.
    Soa(DomainName),
    /// No data; the SOA record of this zone says for how long that is valid (RFC 2308, section 3).
    NoData(DomainName),
    NoName(DomainName),
    Refused,
    BadVersion,
}

fn content(zone: &Zone, question: &Question<AskedName<'_>>) -> AnswerContent {
    let rtype = question.qtype();
    let transfer = matches!(rtype, Rtype::AXFR | Rtype::IXFR);
    if transfer || !matches!(question.qclass(), Class::IN | Class::ANY) {
        return AnswerContent::Refused;
    }
    let kinds: &[Option<QueryType>] = match rtype {
        Rtype::A => &[Some(QueryType::A)],
        Rtype::AAAA => &[Some(QueryType::Aaaa)],
        Rtype::ANY => &[Some(QueryType::A), Some(QueryType::Aaaa)],
        _ => &[None],
    };
    let name = DomainName::from_message(*question.qname());
    let mut all = Vec::new();
    let mut content = AnswerContent::Refused;
    for &kind in kinds {
        content = match zone.lookup(&name, kind) {
            ZoneAnswer::Addresses(addresses) => {
                all.extend(addresses);
                continue;
            }
            ZoneAnswer::NoData(zone) if zone == name && matches!(rtype, Rtype::SOA | Rtype::ANY) => {
                AnswerContent::Soa(zone)
            }
            ZoneAnswer::NoData(zone) => AnswerContent::NoData(zone),
            ZoneAnswer::NoName(zone) => AnswerContent::NoName(zone),
            ZoneAnswer::Foreign => AnswerContent::Refused,
        };
    }
    if all.is_empty() { content } else { AnswerContent::Addresses(all) }
}

impl AnswerContent {
    fn outcome(&self) -> DnsOutcome {
        match self {
            AnswerContent::Addresses(_) | AnswerContent::Soa(_) => DnsOutcome::Answered,
            AnswerContent::NoData(_) => DnsOutcome::NoData,
            AnswerContent::NoName(_) => DnsOutcome::NoName,
            AnswerContent::Refused => DnsOutcome::Refused,
            AnswerContent::BadVersion => DnsOutcome::NotImplemented,
        }
    }

    /// Writes the answer and authority sections; true if addresses were omitted for lack of room. An error means that
    /// not even the SOA record fits, which the limits on names exclude.
    fn write(
        &self,
        mut answer: AnswerBuilder<Target>,
        asked: AskedName<'_>,
        ttl: Ttl,
    ) -> Result<(AdditionalBuilder<Target>, bool), PushError> {
        let mut truncated = false;
        let header = answer.header_mut();
        header.set_aa(!matches!(self, AnswerContent::Refused | AnswerContent::BadVersion));
        match self {
            AnswerContent::Addresses(addresses) => {
                for address in addresses {
                    let pushed = match *address {
                        IpAddr::V4(address) => answer.push((asked, Class::IN, ttl, A::new(address))),
                        IpAddr::V6(address) => answer.push((asked, Class::IN, ttl, Aaaa::new(address))),
                    };
                    if pushed.is_err() {
                        truncated = true;
                        break;
                    }
                }
                answer.header_mut().set_tc(truncated);
            }
            AnswerContent::Soa(zone) => answer.push((zone.wire(), Class::IN, ttl, soa(zone, ttl)))?,
            AnswerContent::NoData(zone) | AnswerContent::NoName(zone) => {
                if matches!(self, AnswerContent::NoName(_)) {
                    header.set_rcode(Rcode::NXDOMAIN);
                }
                let mut authority = answer.authority();
                authority.push((zone.wire(), Class::IN, ttl, soa(zone, ttl)))?;
                return Ok((authority.additional(), false));
            }
            AnswerContent::Refused => header.set_rcode(Rcode::REFUSED),
            AnswerContent::BadVersion => {}
        }
        Ok((answer.additional(), truncated))
    }
}

/// The SOA record of a zone (RFC 1035, section 3.3.13). There is no secondary server and no mail contact, so names
/// and times are the simplest valid values.
fn soa(zone: &DomainName, ttl: Ttl) -> Soa<&Name<[u8]>> {
    Soa::new(zone.wire(), Name::root_slice(), Serial(SERIAL), ttl, ttl, ttl, ttl)
}
