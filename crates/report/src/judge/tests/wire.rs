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

/// A device that removes the marks of requests, or asks for objects by itself.
#[test]
fn requests_without_marks_are_told() {
    let told = |unmarked: u64| {
        let mut facts = fold(&Run::default().logs()).unwrap();
        let block = &mut facts.server.as_mut().unwrap().total.as_mut().unwrap().block;
        (block.xacts.entered, block.unmarked) = (2000, unmarked);
        let verdict = judge(&facts);
        assert_eq!(verdict.outcome, VerdictOutcome::Valid, "{verdict:#?}");
        verdict.findings.iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!((told(9), told(100)), (vec![], vec![]), "health checks");
    assert_eq!(told(101), ["unmarked"]);
}

/// Whoever made the certificate can mend it; the device did nothing wrong.
#[test]
fn certificates_of_authorities_are_a_fault_of_the_test() {
    let run = Run { error: Some((2, ErrorKind::AuthorityCertificate)), ..Run::default() };
    let (word, rule, meaning) = verdict(&[run.client(), Run::default().server()]);
    assert_eq!((&*word, rule), ("INVALID (test)", "errors"), "{meaning}");
    let mixed = Run { second_error: Some((5, ErrorKind::BadStatus)), ..run };
    assert_eq!(verdict(&[mixed.client(), Run::default().server()]).0, "FAILED (device)");
}
