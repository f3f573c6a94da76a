//! Reads messages of the kernel: packets, and answers to requests.

use super::{ATTRIBUTE_HEADER, HEADER, QUEUE_HEADER, SUBSYSTEM, aligned, kind};

/// A message without content (`NLMSG_NOOP`).
const NOTHING: u16 = 1;
/// An answer to a request (`NLMSG_ERROR`).
const ANSWER: u16 = 2;

/// Attributes of packets (`NFQA_`).
mod attribute {
    pub const PACKET_HEADER: u16 = 1;
    pub const MARK: u16 = 3;
    pub const OUT_DEVICE: u16 = 6;
    pub const PAYLOAD: u16 = 10;
    pub const FULL_LENGTH: u16 = 13;
}

/// A bit of attribute types that says that the content consists of attributes.
const NESTED: u16 = 0x8000;

/// A message of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A packet that waits for a verdict.
    Packet(Packet<'a>),
    /// The answer to a request: 0, or the number of an error.
    Answer {
        /// The number that the request had.
        sequence: u32,
        /// The error as the system numbers it, positive.
        error: i32,
    },
    /// Something else, which does not concern us.
    Other,
}

/// A packet that waits for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The number of the packet in its queue, counted from 1.
    pub id: u32,
    /// The mark that rules of the firewall have given it.
    pub mark: u32,
    /// The index of the interface through which it would leave; 0 if none is known.
    pub out_device: u32,
    /// The length of the packet in bytes; 0 if the queue does not copy anything.
    pub length: u32,
    /// The packet, as far as the queue copies it.
    pub payload: &'a [u8],
}

/// Why bytes are not messages of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A header or its content ends too early.
    #[error("a message of the packet queue is cut off")]
    Short,
    /// A length says less than what has to be there.
    #[error("a message of the packet queue has a wrong length")]
    WrongLength,
    /// A packet comes without a number.
    #[error("a packet of the queue has no number")]
    NoNumber,
}

/// The messages in what one call has received.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// The messages in these bytes.
    pub fn new(bytes: &'a [u8]) -> Messages<'a> {
        Messages { rest: bytes }
    }

    fn take(&mut self) -> Result<Message<'a>, MessageError> {
        let bytes = self.rest;
        self.rest = &[];
        let length = native_u32(bytes, 0).ok_or(MessageError::Short)? as usize;
        if length < HEADER {
            return Err(MessageError::WrongLength);
        }
        let message = bytes.get(..length).ok_or(MessageError::Short)?;
        self.rest = bytes.get(aligned(length)..).unwrap_or_default();
        read(message)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, MessageError>;

    /// The next message. After an error that hides where the next one starts, there is none.
    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.take())
    }
}

/// Reads one whole message.
fn read(message: &[u8]) -> Result<Message<'_>, MessageError> {
    let kind = native_u16(message, 4).ok_or(MessageError::Short)?;
    let content = &message[HEADER..];
    match kind {
        NOTHING => Ok(Message::Other),
        ANSWER => {
            // The request follows. The kernel gives errors as negative numbers.
            let error = native_u32(content, 0).ok_or(MessageError::Short)? as i32;
            let sequence = native_u32(message, 8).ok_or(MessageError::Short)?;
            Ok(Message::Answer { sequence, error: error.checked_neg().unwrap_or(i32::MAX) })
        }
        kind if kind == SUBSYSTEM << 8 | kind::PACKET => {
            let attributes = content.get(QUEUE_HEADER..).ok_or(MessageError::Short)?;
            packet(attributes).map(Message::Packet)
        }
        _ => Ok(Message::Other),
    }
}

fn packet(attributes: &[u8]) -> Result<Packet<'_>, MessageError> {
    let mut id = None;
    let mut packet = Packet { id: 0, mark: 0, out_device: 0, length: 0, payload: &[] };
    let mut full_length = 0;
    let mut rest = attributes;
    while !rest.is_empty() {
        let length = usize::from(native_u16(rest, 0).ok_or(MessageError::Short)?);
        let kind = native_u16(rest, 2).ok_or(MessageError::Short)?;
        if length < ATTRIBUTE_HEADER {
            return Err(MessageError::WrongLength);
        }
        let value = rest.get(ATTRIBUTE_HEADER..length).ok_or(MessageError::Short)?;
        let number = || big_u32(value).ok_or(MessageError::Short);
        match kind & !NESTED {
            attribute::PACKET_HEADER => id = Some(number()?),
            attribute::MARK => packet.mark = number()?,
            attribute::OUT_DEVICE => packet.out_device = number()?,
            attribute::FULL_LENGTH => full_length = number()?,
            attribute::PAYLOAD => packet.payload = value,
            _ => {}
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    packet.id = id.ok_or(MessageError::NoNumber)?;
    packet.length = full_length.max(u32::try_from(packet.payload.len()).unwrap_or(u32::MAX));
    Ok(packet)
}

fn native_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn native_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn big_u32(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn message(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + content.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(5u32.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(content);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn packet_message(attributes: &[Vec<u8>]) -> Vec<u8> {
        message(0x300, &[vec![2, 0, 0, 9], attributes.concat()].concat())
    }

    #[test]
    fn packets_with_and_without_content() {
        let number = attribute(1, &[0, 0, 1, 2, 8, 0, 1]);
        let bytes = [
            packet_message(&[number.clone(), attribute(3, &[0, 0, 0, 7]), attribute(6, &[0, 0, 0, 3])]),
            packet_message(&[number, attribute(10, &[0x45]), attribute(13, &[0, 0, 5, 0xdc])]),
        ];
        let bytes = bytes.concat();
        let read: Vec<_> = Messages::new(&bytes).collect();
        let plain = Packet { id: 258, mark: 7, out_device: 3, length: 0, payload: &[] };
        let copied = Packet { id: 258, mark: 0, out_device: 0, length: 1500, payload: &[0x45] };
        assert_eq!(read, [Ok(Message::Packet(plain)), Ok(Message::Packet(copied))]);
    }

    #[test]
    fn answers_have_the_number_of_their_request() {
        let bytes = [message(2, &(-1i32).to_ne_bytes()), message(2, &[0; 20]), message(3, &[])].concat();
        let read: Vec<_> = Messages::new(&bytes).collect();
        let answer = |error| Ok(Message::Answer { sequence: 5, error });
        assert_eq!(read, [answer(1), answer(0), Ok(Message::Other)]);
        let worst = message(2, &i32::MIN.to_ne_bytes());
        assert_eq!(Messages::new(&worst).next(), Some(Ok(Message::Answer { sequence: 5, error: i32::MAX })));
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let number = attribute(1, &[0, 0, 1, 2, 8, 0, 1]);
        let whole = packet_message(&[number, attribute(10, &[0x45; 9])]);
        for end in 1..whole.len() - 3 {
            let read: Vec<_> = Messages::new(&whole[..end]).collect();
            assert_eq!(read, [Err(MessageError::Short)], "{end}");
        }
        let wrong = |bytes: Vec<u8>| Messages::new(&bytes).next().unwrap().unwrap_err();
        assert_eq!(wrong(vec![8, 0, 0, 0, 0, 3, 0, 0]), MessageError::WrongLength);
        assert_eq!(wrong(packet_message(&[])), MessageError::NoNumber);
        assert_eq!(wrong(packet_message(&[vec![3, 0, 1, 0]])), MessageError::WrongLength);
        assert_eq!(wrong(packet_message(&[attribute(1, &[1])])), MessageError::Short);
    }
}
