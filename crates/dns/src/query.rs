//! The client's half of the protocol: queries, and the replies to them.

use std::net::IpAddr;

use domain::base::iana::{Class, Opcode, Rtype};
use domain::base::{Message, MessageBuilder, Question};
use domain::rdata::{A, Aaaa, Cname};

use crate::error::DnsError;
use crate::name::DomainName;

/// How many aliases of an answer are followed. Name servers have similar limits.
const MAX_ALIASES: usize = 16;

/// The type of address to look up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueryType {
    /// IPv4 addresses (RFC 1035).
    #[default]
    A,
    /// IPv6 addresses (RFC 3596).
    Aaaa,
}

impl QueryType {
    /// Reads `A` or `AAAA`.
    pub fn parse(text: &str) -> Option<QueryType> {
        match text {
            "A" => Some(QueryType::A),
            "AAAA" => Some(QueryType::Aaaa),
            _ => None,
        }
    }

    fn rtype(self) -> Rtype {
        match self {
            QueryType::A => Rtype::A,
            QueryType::Aaaa => Rtype::AAAA,
        }
    }
}

/// A query to one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    id: u16,
    name: DomainName,
    kind: QueryType,
}

impl Query {
    /// A query for the addresses of a name; `id` identifies the reply.
    pub fn new(id: u16, name: DomainName, kind: QueryType) -> Query {
        Query { id, name, kind }
    }

    /// The message to send, with recursion desired (RFC 1035, section 4.1).
    pub fn message(&self) -> Vec<u8> {
        let mut message = MessageBuilder::new_vec();
        message.header_mut().set_id(self.id);
        message.header_mut().set_rd(true);
        let mut question = message.question();
        question.push((self.name.wire(), self.kind.rtype())).expect("one question always fits");
        question.finish()
    }

    /// The addresses in the reply, at least one. Aliases (CNAME) are followed within the reply. From a truncated
    /// reply the addresses that it contains are used.
    ///
    /// # Errors
    /// The error in the reply. [`DnsError::Id`] and [`DnsError::Mismatch`] mean that the datagram is not a reply to
    /// this query, so that the reply may still come (RFC 5452, section 9).
    pub fn read(&self, datagram: &[u8]) -> Result<Vec<IpAddr>, DnsError> {
        if datagram.get(..2) != Some(&self.id.to_be_bytes()) {
            return Err(DnsError::Id);
        }
        let message = Message::from_slice(datagram).map_err(|_| DnsError::Format)?;
        let header = message.header();
        if !header.qr() || header.opcode() != Opcode::QUERY {
            return Err(DnsError::Mismatch);
        }
        let error = DnsError::of_rcode(header.rcode().to_int());
        match (message.header_counts().qdcount(), error) {
            // A server that cannot or will not read the question need not repeat it.
            (0, Some(error)) => return Err(error),
            (1, _) => {}
            _ => return Err(DnsError::Format),
        }
        let question = message.sole_question().map_err(|_| DnsError::Format)?;
        if question != Question::new(self.name.wire(), self.kind.rtype(), Class::IN) {
            return Err(DnsError::Mismatch);
        }
        match error {
            Some(error) => Err(error),
            None => self.addresses(message, question),
        }
    }

    fn addresses(
        &self,
        message: &Message<[u8]>,
        question: Question<domain::base::ParsedName<&[u8]>>,
    ) -> Result<Vec<IpAddr>, DnsError> {
        let malformed = |_| DnsError::Format;
        let answer = message.answer().map_err(malformed)?;
        let mut owner = question.into_qname();
        for _ in 0..=MAX_ALIASES {
            let mut addresses = Vec::new();
            let mut alias = None;
            for record in answer {
                let record = record.map_err(malformed)?;
                if record.class() != Class::IN || record.owner() != owner {
                    continue;
                }
                match (record.rtype(), self.kind) {
                    (Rtype::A, QueryType::A) => {
                        let record = record.to_record::<A>().map_err(malformed)?;
                        addresses.extend(record.map(|record| IpAddr::from(record.data().addr())));
                    }
                    (Rtype::AAAA, QueryType::Aaaa) => {
                        let record = record.to_record::<Aaaa>().map_err(malformed)?;
                        addresses.extend(record.map(|record| IpAddr::from(record.data().addr())));
                    }
                    (Rtype::CNAME, _) => {
                        let record = record.to_record::<Cname<_>>().map_err(malformed)?;
                        alias = record.map(|record| record.into_data().into_cname());
                    }
                    _ => {}
                }
            }
            if !addresses.is_empty() {
                return Ok(addresses);
            }
            match alias {
                Some(alias) => owner = alias,
                // A truncated reply may have lost the addresses, so nothing is known.
                None if message.header().tc() => return Err(DnsError::Format),
                None => return Err(DnsError::NoName),
            }
        }
        // The aliases form a loop.
        Err(DnsError::Format)
    }
}
