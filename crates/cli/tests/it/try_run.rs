//! The first command of the README.

use crate::sandbox::{Sandbox, quiet, valid};

#[test]
fn try_ends_valid_with_a_report_that_knows_its_device() {
    let _quiet = quiet();
    let (sandbox, done) = valid(|| {
        let sandbox = Sandbox::new();
        let done = sandbox.polygraph("try");
        (sandbox, done)
    });
    assert!(done.out.contains("polygraph run --proxy"), "{}", done.out);
    let result = sandbox.result();
    let report = std::fs::read_to_string(result.join("report.html")).unwrap();
    assert!(report.contains("VALID") && report.contains("PolyMix-1") && report.contains("</html>"));
    // The proxy's own count and its use of the processor.
    assert!(done.out.contains("\ndevice "), "{}", done.out);
    assert!(!report.contains("not started by polygraph"));
    // Offline: the page loads nothing from anywhere.
    assert!(!report.contains("src=\"http") && !report.contains("<link"), "the report loads things");
    let (meas, _) = sandbox.lx("--phase meas", result.join("client.log"));
    let dhr = meas["rep_dhr"];
    assert!((dhr - 55.0).abs() < 1.5, "document hit ratio {dhr} %");
    let manifest = std::fs::read_to_string(result.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"kernel\"") && manifest.contains("global seed"), "{manifest}");
}
