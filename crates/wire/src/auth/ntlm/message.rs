//! The three messages (MS-NLMP, sections 2.2.1 and 2.2.2). All numbers are little-endian; a variable part is described by its
//! length and its offset in the message.

use std::ops::Range;

use super::{NtlmError, flag};

/// The first bytes of each message.
pub(super) const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// The version of the software, with the revision of the protocol in its last byte (section 2.2.2.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub [u8; 8]);

impl Version {
    /// A version of Windows that all servers know, and revision 15 of the protocol, the only one.
    pub const THIS: Version = Version([10, 0, 0, 0, 0, 0, 0, 15]);
}

/// Reads fields at fixed places.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Fields<'a>, NtlmError> {
        match bytes.starts_with(SIGNATURE) {
            true => Ok(Fields(bytes)),
            false => Err(NtlmError::Malformed("signature")),
        }
    }

    /// The fields of the message number `kind`.
    fn of(bytes: &'a [u8], kind: u32) -> Result<Fields<'a>, NtlmError> {
        let fields = Fields::new(bytes)?;
        match fields.u32(8)? == kind {
            true => Ok(fields),
            false => Err(NtlmError::Malformed("another message")),
        }
    }

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], NtlmError> {
        let bytes = self.0.get(at..at + N).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or(NtlmError::Malformed("too short"))
    }

    pub(super) fn u32(self, at: usize) -> Result<u32, NtlmError> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// The variable part that is described at `at`.
    fn part(self, at: usize) -> Result<&'a [u8], NtlmError> {
        let len = usize::from(u16::from_le_bytes(self.array(at)?));
        let start = self.u32(at + 4)? as usize;
        let part = start.checked_add(len).and_then(|end| self.0.get(start..end));
        part.ok_or(NtlmError::Malformed("a part outside of the message"))
    }

    /// A text, in UTF-16 if the flags of the message say so.
    fn text(self, at: usize, flags: u32) -> Result<String, NtlmError> {
        let part = self.part(at)?;
        if flags & flag::UNICODE == 0 {
            return Ok(String::from_utf8_lossy(part).into_owned());
        }
        let (units, rest) = part.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(NtlmError::Malformed("half a character"));
        }
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
        Ok(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }
}

/// A text as UTF-16.
pub(super) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A text in the encoding of the message.
fn encoded(text: &str, flags: u32) -> Vec<u8> {
    if flags & flag::UNICODE == 0 { text.as_bytes().to_vec() } else { utf16(text) }
}

/// Writes a message whose variable parts follow after `head` bytes.
struct Writer {
    out: Vec<u8>,
    parts: Vec<u8>,
    head: usize,
}

impl Writer {
    fn new(kind: u32, head: usize) -> Writer {
        let out = [&SIGNATURE[..], &kind.to_le_bytes()].concat();
        Writer { out, parts: Vec::new(), head }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends the description of a part; it is cut at the length that the description allows.
    fn part(&mut self, part: &[u8]) {
        let part = &part[..part.len().min(usize::from(u16::MAX - 1))];
        let len = (part.len() as u16).to_le_bytes();
        let start = ((self.head + self.parts.len()) as u32).to_le_bytes();
        self.bytes(&[&len[..], &len, &start].concat());
        self.parts.extend_from_slice(part);
    }

    fn finish(self) -> Vec<u8> {
        debug_assert_eq!(self.out.len(), self.head);
        [self.out, self.parts].concat()
    }
}

/// The first message: what the client supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiate {
    /// Flags, see [`flag`].
    pub flags: u32,
}

impl Negotiate {
    /// Reads the message. Names of domain and workstation, which some clients send, have no meaning.
    ///
    /// # Errors
    /// If the bytes are not this message.
    pub fn read(bytes: &[u8]) -> Result<Negotiate, NtlmError> {
        Ok(Negotiate { flags: Fields::of(bytes, 1)?.u32(12)? })
    }

    /// The message.
    pub fn write(self) -> Vec<u8> {
        let mut writer = Writer::new(1, 40);
        writer.bytes(&self.flags.to_le_bytes());
        writer.part(&[]);
        writer.part(&[]);
        writer.bytes(&Version::THIS.0);
        writer.finish()
    }
}

/// The second message: the nonce of the server, and what the client has to include in its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Flags, see [`flag`].
    pub flags: u32,
    /// The nonce of the server.
    pub nonce: [u8; 8],
    /// The name of the server's domain or of the server, for people; empty if it is malformed.
    pub target: String,
    /// Names and time of the server: a list of attributes (section 2.2.2.1).
    pub info: Vec<u8>,
}

impl Challenge {
    /// Reads the message.
    ///
    /// # Errors
    /// If the bytes are not this message, or the list of attributes is malformed.
    pub fn read(bytes: &[u8]) -> Result<Challenge, NtlmError> {
        let fields = Fields::of(bytes, 2)?;
        let flags = fields.u32(20)?;
        let info = match flags & flag::TARGET_INFO {
            0 => &[0; 4],
            _ => fields.part(40)?,
        };
        if av::list(info).is_none() {
            return Err(NtlmError::Malformed("list of attributes"));
        }
        // Proofs do not depend on this name, so clients accept what they cannot read: Squid's `ntlm_fake_auth` describes a place outside
        // of the message.
        let target = fields.text(12, flags).unwrap_or_default();
        Ok(Challenge { flags, nonce: fields.array(24)?, target, info: info.to_vec() })
    }

    /// The message.
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new(2, 56);
        writer.part(&encoded(&self.target, self.flags));
        writer.bytes(&self.flags.to_le_bytes());
        writer.bytes(&self.nonce);
        writer.bytes(&[0; 8]);
        writer.part(if self.flags & flag::TARGET_INFO == 0 { &[] } else { &self.info });
        writer.bytes(&Version::THIS.0);
        writer.finish()
    }

    /// The time of the server in units of 100 ns since 1601, if it sends one.
    pub(super) fn time(&self) -> Option<u64> {
        let time = av::get(&self.info, av::TIME)?;
        time.try_into().ok().map(u64::from_le_bytes)
    }
}

/// The last message: the user and the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate {
    /// Flags, see [`flag`].
    pub flags: u32,
    /// Domain of the user, possibly empty.
    pub domain: String,
    /// Name of the user.
    pub user: String,
    /// Name of the client's host, possibly empty.
    pub workstation: String,
    /// The proof in its older form.
    pub lm: Vec<u8>,
    /// The proof, and what it is over.
    pub nt: Vec<u8>,
    /// The place for the integrity code of the handshake, if there is one.
    pub mic: Option<[u8; 16]>,
}

impl Authenticate {
    /// Where the integrity code is, in messages that have one.
    pub const MIC: Range<usize> = 72..88;

    /// Reads the message. Only the list of attributes in the proof tells whether the message has an integrity code, so this field
    /// is `None`.
    ///
    /// # Errors
    /// If the bytes are not this message.
    pub fn read(bytes: &[u8]) -> Result<Authenticate, NtlmError> {
        let fields = Fields::of(bytes, 3)?;
        let flags = fields.u32(60)?;
        Ok(Authenticate {
            flags,
            domain: fields.text(28, flags)?,
            user: fields.text(36, flags)?,
            workstation: fields.text(44, flags)?,
            lm: fields.part(12)?.to_vec(),
            nt: fields.part(20)?.to_vec(),
            mic: None,
        })
    }

    /// The message.
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new(3, if self.mic.is_some() { 88 } else { 72 });
        writer.part(&self.lm);
        writer.part(&self.nt);
        writer.part(&encoded(&self.domain, self.flags));
        writer.part(&encoded(&self.user, self.flags));
        writer.part(&encoded(&self.workstation, self.flags));
        writer.part(&[]);
        writer.bytes(&self.flags.to_le_bytes());
        writer.bytes(&Version::THIS.0);
        if let Some(mic) = self.mic {
            writer.bytes(&mic);
        }
        writer.finish()
    }
}

/// Lists of attributes: number, length, value, up to the attribute 0 (section 2.2.2.1).
pub(super) mod av {
    /// The end of the list.
    pub const END: u16 = 0;
    /// Name of the server.
    pub const COMPUTER: u16 = 1;
    /// Name of the server's domain.
    pub const DOMAIN: u16 = 2;
    /// Flags of the handshake.
    pub const FLAGS: u16 = 6;
    /// Time of the server.
    pub const TIME: u16 = 7;
    /// The flag of messages with an integrity code.
    pub const HAS_MIC: u32 = 2;

    /// All attributes before the end; `None` if the list is malformed.
    pub fn list(mut bytes: &[u8]) -> Option<Vec<(u16, &[u8])>> {
        let mut found = Vec::new();
        loop {
            let ([id, len], rest) = {
                let (head, rest) = bytes.split_first_chunk::<4>()?;
                ([u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]])], rest)
            };
            if id == END {
                return Some(found);
            }
            let (value, rest) = rest.split_at_checked(usize::from(len))?;
            found.push((id, value));
            bytes = rest;
        }
    }

    /// The value of an attribute.
    pub fn get(bytes: &[u8], id: u16) -> Option<&[u8]> {
        list(bytes)?.into_iter().find(|(other, _)| *other == id).map(|(_, value)| value)
    }

    /// Appends an attribute.
    pub fn push(out: &mut Vec<u8>, id: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&(value.len() as u16).to_le_bytes());
        out.extend_from_slice(value);
    }

    fn flags(bytes: &[u8]) -> u32 {
        get(bytes, FLAGS).and_then(|value| value.try_into().ok()).map_or(0, u32::from_le_bytes)
    }

    /// Whether the list has a flag.
    pub fn has_flag(bytes: &[u8], flag: u32) -> bool {
        flags(bytes) & flag != 0
    }

    /// Adds a flag to a list.
    pub fn set_flag(bytes: &mut Vec<u8>, flag: u32) {
        let all = flags(bytes) | flag;
        let mut out = Vec::new();
        for (id, value) in list(bytes).unwrap_or_default() {
            if id != FLAGS {
                push(&mut out, id, value);
            }
        }
        push(&mut out, FLAGS, &all.to_le_bytes());
        push(&mut out, END, &[]);
        *bytes = out;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_round_trip(
            flags: u32, nonce: [u8; 8], words in prop::array::uniform3("[ -~é]{0,20}"),
            lm in prop::collection::vec(any::<u8>(), 0..30), nt in prop::collection::vec(any::<u8>(), 0..90), mic: bool,
            attributes in prop::collection::vec((1..20_u16, prop::collection::vec(any::<u8>(), 0..20)), 0..5),
        ) {
            prop_assert_eq!(Negotiate::read(&Negotiate { flags }.write()), Ok(Negotiate { flags }));
            let mut info = Vec::new();
            attributes.iter().for_each(|(id, value)| av::push(&mut info, *id, value));
            av::push(&mut info, av::END, &[]);
            let shown: Vec<_> = attributes.iter().map(|(id, value)| (*id, &**value)).collect();
            prop_assert_eq!(av::list(&info), Some(shown));
            let [target, user, workstation] = words;
            let flags = flags | flag::TARGET_INFO;
            let asked = Challenge { flags, nonce, target: target.clone(), info };
            prop_assert_eq!(Challenge::read(&asked.write()), Ok(asked));
            let answer = Authenticate {
                flags, domain: target, user, workstation, lm, nt, mic: mic.then_some([7; 16]),
            };
            prop_assert_eq!(Authenticate::read(&answer.write()), Ok(Authenticate { mic: None, ..answer }));
        }
    }

    /// The challenge of `ntlm_fake_auth`, a helper of Squid 5.
    #[test]
    fn a_name_outside_of_the_message_is_left_out() {
        let parts: [&[u8]; 5] = [
            b"NTLMSSP\0\x02\0\0\0\x09\0\x09\0\xae\xaa\xaa\xaa\x06\x82\x08\0",
            &[7; 8],
            &[0; 6],
            &[0x3a, 0],
            b"WORKGROUP",
        ];
        let bytes = parts.concat();
        let wanted = Challenge { flags: 0x8_8206, nonce: [7; 8], target: String::new(), info: vec![0; 4] };
        assert_eq!(Challenge::read(&bytes), Ok(wanted));
        assert_eq!(Challenge::read(&bytes[..30]), Err(NtlmError::Malformed("too short")));
    }

    #[test]
    fn flags_of_attributes_are_added() {
        let mut info = Vec::new();
        av::push(&mut info, av::FLAGS, &1_u32.to_le_bytes());
        av::push(&mut info, av::TIME, &[3; 8]);
        av::push(&mut info, av::END, &[]);
        av::set_flag(&mut info, av::HAS_MIC);
        assert_eq!(av::get(&info, av::FLAGS), Some(&[3, 0, 0, 0][..]));
        assert_eq!(av::get(&info, av::TIME), Some(&[3; 8][..]));
        assert_eq!(av::list(&info[..info.len() - 4]), None);
    }
}
