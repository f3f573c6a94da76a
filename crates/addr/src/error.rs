//! Errors in the text of an address: what is wrong, where, and how to correct it.

use std::ops::Range;

/// A text that is not an address range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} in '{text}'; {}", problem.help())]
pub struct ParseError {
    /// The whole text that was read.
    pub text: String,
    /// The bytes of `text` that are wrong.
    pub span: Range<usize>,
    /// What is wrong with them.
    pub problem: ParseProblem,
}

impl ParseError {
    pub(crate) fn new(text: &str, span: Range<usize>, problem: ParseProblem) -> Self {
        ParseError { text: text.to_owned(), span, problem }
    }
}

/// The kinds of mistakes. The display form says what is wrong; [`ParseProblem::help`] says what is right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseProblem {
    /// Nothing before `::`.
    #[error("the interface name before '::' is empty")]
    EmptyInterface,
    /// A character that no interface name has.
    #[error("'{0}' cannot be part of an interface name")]
    InterfaceChar(char),
    /// An address without a host.
    #[error("the host is missing")]
    EmptyHost,
    /// An IPv6 address outside brackets.
    #[error("an IPv6 address has no brackets")]
    BareIpv6,
    /// `[` of an IPv6 address without `]`.
    #[error("the bracket of the IPv6 address is not closed")]
    UnclosedIpv6,
    /// Not an IPv6 address or range.
    #[error("'{0}' is not an IPv6 address")]
    BadIpv6(String),
    /// An IPv4 address has another number of parts than four.
    #[error("an IPv4 address has four numbers, not {0}")]
    OctetCount(usize),
    /// A number out of range.
    #[error("the {what} {value} is above {max}")]
    TooBig {
        /// What kind of number this is: octet, port, group.
        what: &'static str,
        /// The number as written.
        value: String,
        /// The greatest number that fits.
        max: u32,
    },
    /// Something that is neither `n` nor `n-m`.
    #[error("'{0}' is neither a number nor a range of numbers")]
    NotASpan(String),
    /// A range whose end is below its start.
    #[error("the range {0} ends before it begins")]
    Backwards(String),
    /// A bracket group without `]`.
    #[error("the bracket is not closed")]
    UnclosedGroup,
    /// `\` as the last character.
    #[error("a backslash ends the text")]
    DanglingEscape,
    /// A character that no host name has.
    #[error("'{0}' cannot be part of a host name")]
    NameChar(char),
    /// `:` without a number.
    #[error("the port after ':' is missing")]
    EmptyPort,
    /// Not a port.
    #[error("'{0}' is not a port")]
    BadPort(String),
    /// Port 0.
    #[error("port 0 cannot be used")]
    PortZero,
    /// The part after `/` is not a usable prefix length.
    #[error("'{0}' is not a subnet")]
    BadSubnet(String),
    /// A subnet on a name.
    #[error("a name cannot have a subnet")]
    SubnetOnName,
    /// Text after the closing bracket of an IPv6 address.
    #[error("unexpected text '{0}' after the address")]
    Trailing(String),
    /// A range where one address is required.
    #[error("this is a range of addresses")]
    RangeForOne,
}

impl ParseProblem {
    /// What would be right, as the second half of a sentence.
    pub fn help(&self) -> &'static str {
        match self {
            ParseProblem::EmptyInterface => "write 'lo0::10.1.0.7', or no '::' at all",
            ParseProblem::InterfaceChar(_) => "write the name of an interface, such as lo0 or eth0.12",
            ParseProblem::EmptyHost => "write '10.1.0.7:80' or 'www.example.com:80'",
            ParseProblem::BareIpv6 | ParseProblem::UnclosedIpv6 => "write IPv6 addresses as '[fe80::1]:80'",
            ParseProblem::BadIpv6(_) => {
                "an IPv6 address is up to eight groups of hex digits, '[fe80::10-1f]'"
            }
            ParseProblem::OctetCount(_) => "write '10.1.0.7' or, as a range, '10.1.0-3.1-250'",
            ParseProblem::TooBig { .. } => "use a smaller number",
            ParseProblem::NotASpan(_) => "write 'n' or 'n-m'",
            ParseProblem::Backwards(_) => "put the smaller number first",
            ParseProblem::UnclosedGroup => "write '[n-m]'; a plain bracket is written '\\['",
            ParseProblem::DanglingEscape => "a backslash makes the next character literal",
            ParseProblem::NameChar(_) => "a host name has letters, digits and '-', '_', '.', '*'",
            ParseProblem::EmptyPort | ParseProblem::BadPort(_) => "write ':80' or, as a range, ':80-89'",
            ParseProblem::PortZero => "ports are 1 to 65535",
            ParseProblem::BadSubnet(_) => "the subnet is the last part: '/1' to '/32', with IPv6 to '/128'",
            ParseProblem::SubnetOnName => "leave the subnet out, or give an IP address",
            ParseProblem::Trailing(_) => "after ']' only ':port' and '/subnet' may follow",
            ParseProblem::RangeForOne => "give one address",
        }
    }
}
