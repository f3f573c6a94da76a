use super::*;
use crate::fold::fold;
use crate::testlog::Run;

fn parsed(text: &str) -> Result<(String, Option<String>, Op, Bound), String> {
    let condition: Condition = text.parse().map_err(|e: ConditionError| e.to_string())?;
    Ok((condition.figure.name.clone(), condition.phase, condition.op, condition.bound))
}

#[test]
fn conditions_are_read() {
    use Bound::{By, Percent, Value};
    for (text, name, phase, op, bound) in [
        ("dhr>=54%", "hit.ratio.obj", None, Op::GreaterOrEqual, Value(54.0)),
        ("rptm.p95 < 2s", "baseline.rptm.p95", None, Op::Less, Value(2000.0)),
        ("rptm.p95@top2<=250", "baseline.rptm.p95", Some("top2"), Op::LessOrEqual, Value(250.0)),
        ("rptm.p95>+5%", "baseline.rptm.p95", None, Op::Greater, Percent(5.0)),
        ("hit.rptm.mean>+0.5ms", "hit.rptm.mean", None, Op::Greater, By(0.5)),
        ("dhr < -2pt", "hit.ratio.obj", None, Op::Less, By(-2.0)),
        ("dhr<-5rel%", "hit.ratio.obj", None, Op::Less, Percent(-5.0)),
        ("rep.rate<-3%", "baseline.rep.rate", None, Op::Less, Percent(-3.0)),
        ("errors.timeout.count != 0", "errors.timeout.count", None, Op::NotEqual, Value(0.0)),
        ("err_pct==0", "err_pct", None, Op::Equal, Value(0.0)),
        ("rep.size.mean > 10KB", "rep.size.mean", None, Op::Greater, Value(10_240.0)),
        ("rep_rate>=99.5/s", "rep_rate", None, Op::GreaterOrEqual, Value(99.5)),
        ("cpu.xact.time<=1ms", "cpu.xact.time", None, Op::LessOrEqual, Value(1000.0)),
        ("rptm.p95 < 500 usec", "baseline.rptm.p95", None, Op::Less, Value(0.5)),
        ("rep.rate >= 120/min", "baseline.rep.rate", None, Op::GreaterOrEqual, Value(2.0)),
        ("rep.bwidth>1.5Gbps", "rep.bwidth", None, Op::Greater, Value(1500.0)),
        ("rep.size.mean>1kib", "rep.size.mean", None, Op::Greater, Value(1024.0)),
    ] {
        let want = (name.to_owned(), phase.map(str::to_owned), op, bound);
        assert_eq!(parsed(text), Ok(want), "{text}");
    }
}

/// Nobody need look up what they have just read.
#[test]
fn figures_are_read_as_they_are_printed() {
    for figure in crate::figures::all() {
        let text = format!("{}<2{}", figure.name, figure.unit.symbol());
        assert_eq!(parsed(&text).unwrap().3, Bound::Value(2.0), "{text}");
    }
}

#[test]
fn mistakes_are_explained() {
    for (text, part) in [
        ("dhr", "is not a condition"),
        (">=5", "is not a condition"),
        ("dhr=5", "is not a condition"),
        ("dhrr>=5", "did you mean dhr"),
        ("dhr>=", "`` is not a bound"),
        ("dhr>=many", "`many` is not a bound"),
        ("dhr>=54ms", "`ms` does not fit hit.ratio.obj, which is measured in %: write % or p"),
        ("xact.level.mean>3ms", "is measured in plain numbers: leave out the unit"),
        ("rep.rate>5ms", "is measured in /s: write /s, /min or /hr"),
        ("dhr@>=54%", "name of the phase is missing"),
        ("dhr<-2%", "write pt for percentage points"),
        ("rptm>1.2.3ms", "is not a bound"),
        ("rptm>+", "is not a bound"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn phases_that_a_test_lacks_are_named() {
    let phases = ["warm", "top1", "top2"].map(str::to_owned);
    let check =
        |text: &str| text.parse::<Condition>().unwrap().check_phase(&phases).map_err(|e| e.to_string());
    assert_eq!(check("dhr>=54%"), Ok(()));
    assert_eq!(check("dhr@top2>=54%"), Ok(()));
    let unknown =
        "in `dhr@WARM>=54%`: there is no phase `WARM`: did you mean warm?; the phases are warm, top1, top2";
    assert_eq!(check("dhr@WARM>=54%").unwrap_err(), unknown);
    let unknown = "in `dhr@measure>=54%`: there is no phase `measure`; the phases are warm, top1, top2";
    assert_eq!(check("dhr@measure>=54%").unwrap_err(), unknown);
}

#[test]
fn a_run_is_held_against_values() {
    let facts = fold(&Run::default().logs()).unwrap();
    let check = |text: &str| check_run(&facts, &[text.parse().unwrap()]).remove(0);
    for (text, holds) in [
        ("dhr>=50%", true),
        ("dhr>=60%", false),
        ("rptm<2s", true),
        ("rptm@warm<2s", true),
        ("rptm@nothing<2s", false),
        ("err_pct==0", true),
        // Undefined, whichever way.
        ("page.rptm.mean<1s", false),
        ("page.rptm.mean>1s", false),
        // There is nothing to compare with.
        ("rptm<+5%", false),
    ] {
        assert_eq!(check(text).holds, Some(holds), "{text}: {:?}", check(text));
    }
    let rich = fold(&Run { rich: true, ..Run::default() }.logs()).unwrap();
    for (text, holds, found) in [
        // The device sends three quarters of the requests to one of two servers.
        ("servers.share.min>=20%", true, "24."),
        ("servers.share.max<60%", false, "75."),
        ("servers.share.max@meas<60%", false, "75."),
        ("servers.share.max@nothing<60%", false, "phase nothing was not measured by servers"),
    ] {
        let checked = check_run(&rich, &[text.parse().unwrap()]).remove(0);
        assert!(checked.holds == Some(holds) && checked.found.starts_with(found), "{text}: {checked:?}");
    }
    let robots = fold(&[Run { rich: true, ..Run::default() }.client()]).unwrap();
    let share = check_run(&robots, &["servers.share.max<60%".parse().unwrap()]).remove(0);
    assert_eq!(share.found, "undefined, because only servers count it, and their logs are missing");
    assert_eq!(check("servers.share.max<60%").found, "undefined, because there is only one server");
    assert_eq!(check("rptm@nothing<2s").found, "phase nothing was not measured");
    assert_eq!(check("page.rptm.mean<1s").found, "undefined");
}
