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
