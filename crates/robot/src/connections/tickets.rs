//! Tickets of Kerberos: what a robot gets from the KDC before it can answer a challenge of Negotiate (`docs/authentication.md`).

use std::cell::RefCell;
use std::future::pending as forever;
use std::rc::Rc;

use polygraph_kerberos::Fresh;
use polygraph_kerberos::login::{KeyRecipe, Login, LoginStep};
use polygraph_kerberos::ticket::KerberosTicket;
use polygraph_kerberos::{CipherKey, KdcError, Moment, Principal, code};
use polygraph_link::Link;
use polygraph_stats::ErrorKind;
use polygraph_traffic::rng::mix;
use polygraph_transport::kdc::{self, KdcAttempt, Kdcs, Silence};
use rustc_hash::FxHashMap;

use super::wait_queue::WaitQueue;
use crate::context::RobotContext;
use crate::failure::TransactionFailure;
use crate::request::auth::{AuthSource, RobotIdentity};
use crate::settings::Kerberos;

/// What the robots of a group share while they get tickets.
#[derive(Debug, Default)]
pub struct Tickets {
    /// The exchanges in progress, by robot.
    pending: RefCell<FxHashMap<usize, Rc<Pending>>>,
    /// Keys of passwords. To compute one takes milliseconds.
    keys: RefCell<FxHashMap<(KeyRecipe, String), CipherKey>>,
}

/// An exchange that other transactions of the robot wait for.
#[derive(Debug)]
struct Pending {
    source: AuthSource,
    waiting: WaitQueue,
    outcome: RefCell<Option<Result<(), TransactionFailure>>>,
}

/// Ends an exchange, also if its transaction is dropped.
struct Duty<'a>(&'a Tickets, usize);

impl Drop for Duty<'_> {
    fn drop(&mut self) {
        if let Some(pending) = self.0.pending.borrow_mut().remove(&self.1) {
            pending.waiting.cancel_all();
        }
    }
}

/// What makes a message of the robot different from all others; `number` counts them.
pub fn fresh<L: Link>(cx: RobotContext<'_, L>, number: u64) -> Fresh {
    let first = cx.settings.seed.derive("kerberos", cx.number() as u64) ^ mix(number);
    let random = u128::from(mix(first)) << 64 | u128::from(mix(first ^ 1));
    Fresh { random: random.to_be_bytes(), now: Moment::of_millis(cx.link.unix_millis(), number) }
}

impl Tickets {
    /// Gets the robot, which is `who`, the ticket for `source`, unless it has it. The robot logs in first, if it has to.
    ///
    /// # Errors
    /// If the KDC gives no ticket.
    pub async fn obtain<L: Link>(
        &self,
        cx: RobotContext<'_, L>,
        source: AuthSource,
        who: RobotIdentity<'_>,
    ) -> Result<(), TransactionFailure> {
        // One transaction of the robot asks, and the others share the outcome.
        loop {
            let Some(pending) = self.pending.borrow().get(&cx.robot).cloned() else { break };
            pending.waiting.wait(forever()).await;
            if pending.source == source
                && let Some(outcome) = pending.outcome.take()
            {
                *pending.outcome.borrow_mut() = Some(outcome.clone());
                return outcome;
            }
        }
        let now = cx.unix_seconds();
        if who().is_none_or(|credentials| credentials.ticket(source, now).is_some()) {
            return Ok(());
        }
        let (waiting, outcome) = (WaitQueue::default(), RefCell::default());
        let pending = Rc::new(Pending { source, waiting, outcome });
        self.pending.borrow_mut().insert(cx.robot, Rc::clone(&pending));
        let _duty = Duty(self, cx.robot);
        let outcome = self.ask(cx, source, who).await;
        *pending.outcome.borrow_mut() = Some(outcome.clone());
        outcome
    }

    async fn ask<L: Link>(
        &self,
        cx: RobotContext<'_, L>,
        source: AuthSource,
        who: RobotIdentity<'_>,
    ) -> Result<(), TransactionFailure> {
        let missing = || TransactionFailure::new(ErrorKind::Other, "the robot has no `kerberos_wrap`");
        let settings = cx.profile().kerberos.as_ref().ok_or_else(missing)?;
        let Some((name, password, renewals)) = who().map(|credentials| {
            let (name, password) = credentials.account();
            (name.to_owned(), password.to_owned(), credentials.renewals)
        }) else {
            return Ok(());
        };
        let asked = Exchanges { cx, settings, who, name };
        let known = who().and_then(|credentials| credentials.granting_ticket(cx.unix_seconds()));
        let granting = match known {
            Some(granting) => granting,
            None => {
                let started = cx.now();
                let granting = self.log_in(&asked, &password).await.inspect_err(|_| asked.count_failure())?;
                let took_us = (cx.now() - started).as_micros();
                cx.recorder.with(|block| block.kerberos.login_us.record(took_us));
                Rc::new(granting)
            }
        };
        let started = cx.now();
        let service = cx.service(source);
        let ticket = asked.ticket(&granting, &service).await.inspect_err(|_| asked.count_failure())?;
        let took_us = (cx.now() - started).as_micros();
        cx.recorder.with(|block| block.kerberos.ticket_us.record(took_us));
        // If the robot has changed its user meanwhile, the ticket is worthless, and the next challenge leads here again.
        if let Some(mut credentials) = who().filter(|credentials| credentials.renewals == renewals) {
            credentials.keep_tickets(granting, (source, Rc::new(ticket)));
        }
        Ok(())
    }

    async fn log_in<L: Link>(
        &self,
        asked: &Exchanges<'_, '_, L>,
        password: &str,
    ) -> Result<KerberosTicket, TransactionFailure> {
        let realm = &asked.settings.realm;
        let user = Principal::user(user_name(&asked.name, realm));
        let (mut login, message) = Login::begin(user, realm, asked.fresh());
        let what = format!("login of {}@{realm}", user_name(&asked.name, realm));
        let mut reply = asked.send(&what, &message).await?;
        loop {
            match login.read(&reply).map_err(|e| failed(&what, &e))? {
                LoginStep::Prove(recipe) => {
                    let key = self.key(recipe, password).map_err(|e| failed(&what, &e))?;
                    let message = login.prove(&key, asked.fresh()).map_err(|e| failed(&what, &e))?;
                    reply = asked.send(&what, &message).await?;
                }
                LoginStep::Granted(recipe) => {
                    let key = self.key(recipe, password).map_err(|e| failed(&what, &e))?;
                    return login.finish(&reply, &key).map_err(|e| failed(&what, &e));
                }
            }
        }
    }

    /// The key of a password.
    fn key(&self, recipe: KeyRecipe, password: &str) -> Result<CipherKey, KdcError> {
        let index = (recipe, password.to_owned());
        if let Some(key) = self.keys.borrow().get(&index) {
            return Ok(key.clone());
        }
        let key = index.0.key(password)?;
        self.keys.borrow_mut().insert(index, key.clone());
        Ok(key)
    }
}

/// The exchanges of one robot with the KDCs.
struct Exchanges<'a, 'w, L: Link> {
    cx: RobotContext<'a, L>,
    settings: &'a Kerberos,
    who: RobotIdentity<'w>,
    name: String,
}

impl<L: Link> Exchanges<'_, '_, L> {
    fn fresh(&self) -> Fresh {
        let number = (self.who)().map_or(0, |mut credentials| credentials.next_number());
        fresh(self.cx, number)
    }

    fn count_failure(&self) {
        self.cx.recorder.with(|block| block.kerberos.failed += 1);
    }

    async fn ticket(
        &self,
        granting: &KerberosTicket,
        service: &str,
    ) -> Result<KerberosTicket, TransactionFailure> {
        let what = format!("ticket of {} for {service}", user_name(&self.name, &self.settings.realm));
        let wanted = Principal::service(service);
        let (request, message) = granting.request(&wanted, self.fresh()).map_err(|e| failed(&what, &e))?;
        let reply = self.send(&what, &message).await?;
        request.finish(&reply, granting).map_err(|e| failed(&what, &e))
    }

    async fn send(&self, what: &str, message: &[u8]) -> Result<Vec<u8>, TransactionFailure> {
        let Kerberos { udp, tcp, timeout, .. } = self.settings;
        let kdcs = Kdcs { udp, tcp, timeout: *timeout };
        let reply = kdc::ask(&self.cx.link, self.cx.address(), kdcs, message).await;
        match reply {
            Ok(reply) => {
                self.cx.recorder.with(|block| block.kerberos.too_big += u64::from(reply.too_big));
                Ok(reply.bytes)
            }
            Err(attempts) => Err(unanswered(what, &attempts)),
        }
    }
}

/// The name of a user in the realm: a domain in front of it, as NTLM has, and the realm behind it are left out.
fn user_name<'a>(name: &'a str, realm: &str) -> &'a str {
    let name = name.split_once('\\').map_or(name, |(_, name)| name);
    name.strip_suffix(realm).and_then(|name| name.strip_suffix('@')).unwrap_or(name)
}

fn unanswered(what: &str, attempts: &[KdcAttempt]) -> TransactionFailure {
    let kind = match attempts {
        all if !all.is_empty() && all.iter().all(|attempt| attempt.failure == Silence::Timeout) => {
            ErrorKind::KdcTimeout
        }
        [only] => match only.failure {
            Silence::Timeout => ErrorKind::KdcTimeout,
            Silence::Closed => ErrorKind::KdcClosed,
            Silence::Length(_) => ErrorKind::KdcReply,
            Silence::TooBig => ErrorKind::KdcRefused,
            Silence::Socket(_) => ErrorKind::KdcAllFailed,
        },
        _ => ErrorKind::KdcAllFailed,
    };
    let shown: Vec<String> = attempts.iter().map(KdcAttempt::to_string).collect();
    TransactionFailure::new(kind, format!("{what}: {}", shown.join(", ")))
}

fn failed(what: &str, error: &KdcError) -> TransactionFailure {
    let kind = match error {
        KdcError::Refused { code, .. } => match *code {
            code::WRONG_PASSWORD => ErrorKind::KerberosPassword,
            code::UNKNOWN_USER => ErrorKind::KerberosUser,
            code::UNKNOWN_SERVICE => ErrorKind::KerberosService,
            code::CLOCK => ErrorKind::KerberosClock,
            _ => ErrorKind::KdcRefused,
        },
        KdcError::Password => ErrorKind::KerberosPassword,
        KdcError::NothingInCommon => ErrorKind::KdcRefused,
        KdcError::Malformed(_) | KdcError::Cipher(_) => ErrorKind::KdcReply,
    };
    TransactionFailure::new(kind, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_without_domain_and_realm() {
        for (name, user) in [
            ("joe", "joe"),
            ("DOM\\joe", "joe"),
            ("joe@EXAMPLE.COM", "joe"),
            ("joe@OTHER.COM", "joe@OTHER.COM"),
            ("joe/admin", "joe/admin"),
        ] {
            assert_eq!(user_name(name, "EXAMPLE.COM"), user);
        }
    }

    #[test]
    fn silent_kdcs_have_classes() {
        let attempt = |failure| KdcAttempt { server: "10.0.0.1:88".parse().unwrap(), tcp: false, failure };
        let kind = |failures: &[Silence]| {
            let attempts: Vec<KdcAttempt> = failures.iter().map(|failure| attempt(*failure)).collect();
            unanswered("x", &attempts).violation.kind
        };
        let refused = Silence::Socket(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(kind(&[Silence::Timeout]), ErrorKind::KdcTimeout);
        assert_eq!(kind(&[Silence::Timeout, Silence::Timeout]), ErrorKind::KdcTimeout);
        assert_eq!(kind(&[refused]), ErrorKind::KdcAllFailed);
        assert_eq!(kind(&[Silence::Timeout, refused]), ErrorKind::KdcAllFailed);
        assert_eq!(kind(&[Silence::Closed]), ErrorKind::KdcClosed);
        assert_eq!(kind(&[]), ErrorKind::KdcAllFailed);
    }

    #[test]
    fn refusals_have_classes() {
        for (code, kind) in [
            (6, ErrorKind::KerberosUser),
            (7, ErrorKind::KerberosService),
            (18, ErrorKind::KdcRefused),
            (24, ErrorKind::KerberosPassword),
            (37, ErrorKind::KerberosClock),
        ] {
            let failure = failed("x", &KdcError::Refused { code, text: None });
            assert_eq!(failure.violation.kind, kind, "{code}");
        }
    }
}
