//! Who in this process receives messages of which subjects.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::BusMessage;

/// The receivers of messages.
#[derive(Debug, Default)]
pub struct Subscriptions(Vec<(String, UnboundedSender<BusMessage>)>);

impl Subscriptions {
    /// Adds a receiver of the messages of a subject.
    pub fn add(&mut self, subject: String) -> UnboundedReceiver<BusMessage> {
        let (to_receiver, messages) = unbounded_channel();
        self.0.push((subject, to_receiver));
        messages
    }

    /// Gives a message to all that want it. Receivers that are gone are forgotten.
    pub fn deliver(&mut self, message: &BusMessage) {
        self.0.retain(|(pattern, to_receiver)| match matches(pattern, &message.subject) {
            true => to_receiver.send(message.clone()).is_ok(),
            false => !to_receiver.is_closed(),
        });
    }

    /// Ends all.
    pub fn close(&mut self) {
        self.0.clear();
    }
}

/// Whether a subject is one of those that a pattern stands for: `*` is any one part between dots.
pub fn matches(pattern: &str, subject: &str) -> bool {
    let (mut wanted, mut parts) = (pattern.split('.'), subject.split('.'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(part)) if wanted == part => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_match_patterns_part_by_part() {
        for (pattern, subject, fits) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.*", "a", false),
            ("*.b", "a.c", false),
            ("a.b", "a.b.c", false),
        ] {
            assert_eq!(matches(pattern, subject), fits, "{pattern} {subject}");
        }
    }

    #[test]
    fn messages_reach_those_who_want_them() {
        let mut all = Subscriptions::default();
        let (mut one, two) = (all.add("a.*".to_owned()), all.add("b".to_owned()));
        let message =
            BusMessage { subject: "a.x".to_owned(), reply: None, is_undelivered: false, bytes: vec![1] };
        all.deliver(&message);
        assert_eq!(one.try_recv().unwrap(), message);
        drop(two);
        all.deliver(&message);
        assert_eq!(all.0.len(), 1);
        all.close();
        assert!(one.try_recv().is_ok() && one.try_recv().is_err());
    }
}
