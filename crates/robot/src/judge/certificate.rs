//! Servers that show a bad certificate on purpose: was it refused (`docs/tls.md`, "Bad certificates")?

use polygraph_link::Nanos;
use polygraph_stats::ErrorKind;

use crate::exchange::Completed;
use crate::exchange::reply::ReplyMeta;
use crate::failure::{Incomplete, TransactionFailure};
use crate::settings::BadCertificate;
use crate::violation::Violation;

/// What became of a request to a server with a bad certificate.
#[derive(Debug)]
pub enum CertificateOutcome {
    /// The device, or the robot itself, refused the certificate, as it must.
    Refused(CertificateRefusal),
    /// Content of the server arrived.
    Accepted(Box<TransactionFailure>),
    /// Something else happened, which is judged as that of any other request.
    Neither,
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateRefusal {
    /// The status of the device's reply; 0 without a reply.
    pub status: u16,
    /// The size of the reply, in bytes.
    pub size: u64,
    /// When the exchange started, if there was one.
    pub started: Option<Nanos>,
}

/// Decides what became of a request to a server with this certificate. `has_redirects`: servers send redirects themselves.
pub fn met(
    bad: BadCertificate,
    has_redirects: bool,
    outcome: &Result<Completed, Incomplete>,
) -> CertificateOutcome {
    match outcome {
        // The robot has cut the reply before it knew whose it is.
        Ok(completed) if completed.exchange.aborted => CertificateOutcome::Neither,
        Ok(completed) => {
            let (exchange, reply) = (&completed.exchange, &*completed.reply);
            let verified = exchange.verified;
            let is_page = verified.foreign || (reply.is_redirect() && !has_redirects);
            if reply.is_marked() || (reply.status < 400 && verified.is_whole() && !verified.foreign) {
                let mut failure = accepted(bad, reply);
                failure.started = Some(exchange.started);
                CertificateOutcome::Accepted(failure)
            } else if is_page || is_error_page(reply) {
                let started = Some(exchange.started);
                CertificateOutcome::Refused(CertificateRefusal {
                    status: reply.status,
                    size: reply.size(),
                    started,
                })
            } else {
                CertificateOutcome::Neither
            }
        }
        Err(Incomplete::Failed(failure)) => match failure.reply.as_deref() {
            Some(reply) if reply.is_marked() => {
                let mut accepted = accepted(bad, reply);
                accepted.started = failure.started;
                CertificateOutcome::Accepted(accepted)
            }
            _ if breaks_off(bad, failure.violation.kind) => CertificateOutcome::Refused(CertificateRefusal {
                status: 0,
                size: 0,
                started: failure.started,
            }),
            _ => CertificateOutcome::Neither,
        },
        Err(Incomplete::Cancelled) => CertificateOutcome::Neither,
    }
}

/// Whether the device says in this reply, which is not of a server, that it has no content. A demand for credentials says nothing about
/// certificates.
fn is_error_page(reply: &ReplyMeta) -> bool {
    reply.status >= 400 && !matches!(reply.status, 401 | 407)
}

/// Whether a failure without a reply is a refusal: the device gives no tunnel or ends the connection, or the robot finds the fault in the
/// certificate that it gets. A device that intercepts TLS may pass the fault on like this.
fn breaks_off(bad: BadCertificate, kind: ErrorKind) -> bool {
    use ErrorKind as K;
    let by_robot = !bad.is_hidden && kind == bad.fault.refusal();
    by_robot
        || matches!(
            kind,
            K::TunnelRefused
                | K::TunnelBroken
                | K::TlsRefused
                | K::TlsClosed
                | K::TlsNothingInCommon
                | K::NoReply
                | K::Reset
                | K::StreamReset
                | K::ConnectionError
                | K::TooManyRetries
        )
}

fn accepted(bad: BadCertificate, reply: &ReplyMeta) -> Box<TransactionFailure> {
    let detail = format!("the certificate of the server {}, and its content arrived", bad.fault.text());
    let violation = Violation::new(ErrorKind::BadCertificateAccepted, detail);
    let violation = violation.expected("a refusal", format!("status {}", reply.status));
    Box::new(TransactionFailure::of_reply(violation, reply))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_tls::settings::CertificateFault;

    #[test]
    fn a_robot_expects_the_fault_of_the_server_and_no_other() {
        let bad = |fault, is_hidden| BadCertificate { fault, is_hidden };
        use CertificateFault as F;
        use ErrorKind as K;
        for (bad, kind, refused) in [
            (bad(F::Expired, false), K::CertificateDates, true),
            (bad(F::NotYetValid, false), K::CertificateDates, true),
            (bad(F::Expired, false), K::CertificateIssuer, false),
            (bad(F::WrongName, false), K::CertificateName, true),
            (bad(F::UnknownAuthority, false), K::CertificateIssuer, true),
            (bad(F::SelfSigned, false), K::CertificateIssuer, true),
            // It is the certificate of the device that the robot does not accept.
            (bad(F::Expired, true), K::CertificateDates, false),
            (bad(F::Expired, true), K::TlsRefused, true),
            (bad(F::Expired, true), K::NoReply, true),
            (bad(F::Expired, false), K::TunnelRefused, true),
            (bad(F::Expired, false), K::Timeout, false),
            (bad(F::Expired, false), K::ConnectFailed, false),
        ] {
            let outcome = Err(TransactionFailure::new(kind, "").into());
            let found = matches!(
                met(bad, false, &outcome),
                CertificateOutcome::Refused(CertificateRefusal { status: 0, .. })
            );
            assert_eq!(found, refused, "{bad:?} {kind:?}");
        }
    }
}
