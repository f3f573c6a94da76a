//! Dumps of messages: requests and replies as they were sent over a connection, for people to read.

use serde::{Deserialize, Serialize};

/// The parts of a message to dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageParts {
    /// The head.
    pub head: bool,
    /// The body.
    pub body: bool,
}

impl MessageParts {
    /// The complete message.
    pub const ALL: MessageParts = MessageParts { head: true, body: true };

    /// The union of two sets of parts.
    #[must_use]
    pub fn or(self, other: MessageParts) -> MessageParts {
        MessageParts { head: self.head || other.head, body: self.body || other.body }
    }

    /// Whether any part is selected.
    pub fn any(self) -> bool {
        self.head || self.body
    }
}

/// What to dump of each transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpPlan {
    /// Parts of requests to dump.
    pub requests: MessageParts,
    /// Parts of replies to dump.
    pub replies: MessageParts,
    /// Parts of both messages to dump if the transaction fails.
    pub errors: MessageParts,
    /// Print a line for each successful transaction.
    pub summary: bool,
    /// Maximum number of bytes to dump of each message.
    pub size: usize,
}

impl DumpPlan {
    /// Whether messages have to be kept until their transaction has ended.
    pub fn needs_messages(&self) -> bool {
        self.requests.any() || self.replies.any() || self.errors.any()
    }

    /// The text to show about a transaction that `failed` or not, with `title` before each message; empty if nothing is
    /// to be shown.
    pub fn show(&self, title: &str, failed: bool, request: &[u8], reply: &[u8]) -> String {
        let of_error = if failed { self.errors } else { MessageParts::default() };
        let mut out = String::new();
        for (name, parts, message) in
            [("request", self.requests.or(of_error), request), ("reply", self.replies.or(of_error), reply)]
        {
            let shown = cut(part(message, parts), self.size);
            if parts.any() && !shown.is_empty() {
                out += &format!("dump: {name} of {title}\n{}\n", printable(shown));
            }
        }
        out
    }
}

/// The selected parts of a message; a message without the end of a head consists of the head only.
fn part(message: &[u8], parts: MessageParts) -> &[u8] {
    let end = message.windows(4).position(|four| four == b"\r\n\r\n").map_or(message.len(), |at| at + 4);
    match parts {
        MessageParts { head: true, body: true } => message,
        MessageParts { head: true, body: false } => &message[..end],
        MessageParts { head: false, body: true } => &message[end..],
        MessageParts { head: false, body: false } => &[],
    }
}

fn cut(message: &[u8], size: usize) -> &[u8] {
    &message[..message.len().min(size)]
}

/// Text as it is, without carriage returns; other bytes as dots.
fn printable(bytes: &[u8]) -> String {
    let shown = |&byte: &u8| match byte {
        b'\n' | b'\t' | 0x20..=0x7e => byte as char,
        _ => '.',
    };
    bytes.iter().filter(|byte| **byte != b'\r').map(shown).collect::<String>().trim_end().to_owned()
}

/// Maximum number of texts that are kept until they are taken.
const MOST: usize = 1000;

/// Dumped texts that wait to be printed.
#[derive(Debug, Default)]
pub struct Dumps {
    texts: Vec<String>,
    left_out: usize,
}

impl Dumps {
    /// Adds a text, unless there are too many.
    pub fn push(&mut self, text: String) {
        match self.texts.len() < MOST {
            true => self.texts.push(text),
            false => self.left_out += 1,
        }
    }

    /// Takes all texts since the last call; the last text says how many were omitted.
    pub fn hand_over(&mut self) -> Vec<String> {
        let Dumps { mut texts, left_out } = std::mem::take(self);
        if left_out > 0 {
            texts.push(format!("dump: {left_out} more are left out"));
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_messages_up_to_the_size() {
        let head = MessageParts { head: true, body: false };
        let body = MessageParts { head: false, body: true };
        let none = DumpPlan { size: 20, ..DumpPlan::default() };
        let (request, reply) =
            (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nbody\x01\xff of the reply");
        for (plan, failed, shown) in [
            (none, true, ""),
            (DumpPlan { requests: head, ..none }, false, "dump: request of x\nGET / HTTP/1.1\n"),
            (DumpPlan { requests: body, ..none }, false, ""),
            (DumpPlan { replies: body, ..none }, false, "dump: reply of x\nbody.. of the reply\n"),
            (
                DumpPlan { replies: MessageParts::ALL, ..none },
                false,
                "dump: reply of x\nHTTP/1.1 200 OK\n\nb\n",
            ),
            (DumpPlan { errors: body, ..none }, false, ""),
            (DumpPlan { errors: body, ..none }, true, "dump: reply of x\nbody.. of the reply\n"),
            (
                DumpPlan { errors: body, requests: head, ..none },
                true,
                "dump: request of x\nGET / HTTP/1.1\ndump: reply of x\nbody.. of the reply\n",
            ),
        ] {
            assert_eq!(plan.show("x", failed, request, reply), shown, "{plan:?}");
        }
    }

    #[test]
    fn dumps_are_bounded() {
        let mut dumps = Dumps::default();
        (0..MOST + 5).for_each(|_| dumps.push("x".into()));
        let texts = dumps.hand_over();
        assert_eq!((texts.len(), texts[MOST].as_str()), (MOST + 1, "dump: 5 more are left out"));
        assert!(dumps.hand_over().is_empty());
    }
}
