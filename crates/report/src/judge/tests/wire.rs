//! Messages that are right in what they carry, and wrong in how they say it.

use super::*;

/// A wrong digest of a right body is no wrong content.
#[test]
fn digests_of_other_codings_are_told() {
    let run = Run { error: Some((500, ErrorKind::WrongDigest)), ..Run::default() };
    check(&run, VerdictOutcome::Valid, &["(digests)"]);
    let text = |logs: &[crate::Log]| fold(logs).unwrap().verdict.findings[0].text.clone();
    let told = text(&run.logs());
    assert!(told.contains("the device changes the coding of bodies"), "{told}");
    let mut client = run.client();
    client.log.header.settings.push(("device".into(), "none".into()));
    let told = text(&[client, run.server()]);
    assert!(told.contains("the server changes") && !told.contains("device"), "{told}");
}

/// Each side tells of the messages that it received.
#[test]
fn messages_with_two_framings_are_told() {
    let replies = Run { error: Some((500, ErrorKind::LengthIgnored)), ..Run::default() };
    check_logs(&[replies.client(), Run::default().server()], VerdictOutcome::Valid, &["(framing)"]);
    check(&replies, VerdictOutcome::Valid, &["(framing)", "(framing)"]);
    let requests = Run { server_error: Some((1, ErrorKind::LengthIgnored)), ..Run::default() };
    let verdict = fold(&requests.logs()).unwrap().verdict;
    assert_eq!((verdict.outcome, verdict.findings.len()), (VerdictOutcome::Valid, 1), "{verdict:#?}");
    let told = &verdict.findings[0];
    assert!(told.rule == "framing" && told.text.contains("requests that servers received"), "{told:?}");
}
