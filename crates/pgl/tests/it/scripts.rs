//! Phase scripts in a test that is only made up.

use std::sync::Arc;

use polygraph_pgl::script::{FactorChange, Interpreter, ScriptRun, ScriptTarget, StatsWindow};
use polygraph_pgl::types::{Goal, ScriptId, stat_completions};
use polygraph_pgl::value::Statistics;
use polygraph_pgl::{MemoryLoader, Options, Workload, compile};

/// The mean response time is known, the error ratio is 4 %, and there was nothing else.
#[derive(Debug)]
struct Sample(Option<f64>);

impl Statistics for Sample {
    fn member(&self, path: &str) -> Option<f64> {
        match path {
            "rep.rptm.mean" => self.0,
            "rep.size.sum" => Some(3e9),
            "rep.rptm.std_dev" => Some(0.2),
            "err_xact.ratio" => Some(0.04),
            "xact.started" => Some(5e9),
            "baseline.rep.rate" => Some(12.5),
            "conn.use.mean" => Some(2.5),
            _ => None,
        }
    }
}

/// Writes down what scripts do.
#[derive(Debug, Default)]
struct World {
    mean: Option<f64>,
    load: f64,
    log: Vec<String>,
}

impl ScriptTarget for World {
    fn statistics(&mut self, asked: StatsWindow) -> Arc<dyn Statistics> {
        self.log.push(format!("{asked:?}"));
        Arc::new(Sample(self.mean))
    }

    fn load_factor(&self) -> f64 {
        self.load
    }

    fn populus_factor(&self) -> f64 {
        0.25
    }

    fn change(&mut self, change: FactorChange) {
        if let FactorChange::LoadTo(load) = change {
            self.load = load;
        }
        self.log.push(format!("{change:?}"));
    }

    fn set_sampling_goal(&mut self, goal: Goal) {
        self.log.push(format!("goal {:?}", goal.xactions));
    }

    fn print(&mut self, level: u8, line: String) {
        self.log.push(format!("{level}: {line}"));
    }

    fn reached_positive_goal(&mut self, reason: Option<String>) {
        self.log.push(format!("reached {reason:?}"));
    }
}

/// A workload with these declarations, and a phase with this script.
fn workload(globals: &str, script: &str) -> Workload {
    let agents = "Robot R; R.addresses = ['127.0.0.1']; R.origins = ['127.0.0.1:80']; \
        Content c = { size = const(1KB); }; \
        Server S = { addresses = ['127.0.0.1:80']; contents = [c]; direct_access = contents; }; use(S, R);";
    let text = format!("{globals}\n{agents}\nPhase p = {{ script = {{\n{script}\n}}; }};\nschedule(p);\n");
    let loader = MemoryLoader::default().with("s.pg", text);
    let compilation = compile("s.pg", &loader, &Options::default());
    assert!(!compilation.has_errors(), "{}", crate::findings(&compilation));
    compilation.workload.unwrap()
}

/// What the script does, and what came of it.
fn run(globals: &str, script: &str, world: &mut World) -> ScriptRun {
    let workload = workload(globals, script);
    Interpreter::new(&workload.scripts).begin(ScriptId(0), world)
}

#[test]
fn scripts_see_the_test_and_change_it() {
    let read = "StatSample s = currentPhase(); ";
    // Script, and what is seen of it.
    let rows: [(&str, &[&str]); 19] = [
        ("print(\"x\", 1.5sec, 3%);", &["5: x1.5sec0.03"]),
        ("printV(2, \"a\", 1);", &["2: a1"]),
        ("printV(-1, \"a\");", &["0: a"]),
        ("print(currentLoadFactor(), \" \", currentPopulusFactor());", &["5: 0.5 0.25"]),
        ("setLoadFactorTo(20%); print(currentLoadFactor());", &["LoadTo(0.2)", "5: 0.2"]),
        ("setPopulusFactorTo(1);", &["PopulusTo(1.0)"]),
        ("changeLoadFactorBy(-10%);", &["LoadBy(-0.1)"]),
        ("changePopulusFactorBy(0.5);", &["PopulusBy(0.5)"]),
        ("reachedPositiveGoal();", &["reached None"]),
        ("reachedPositiveGoal(\"done\");", &["reached Some(\"done\")"]),
        ("if (s.rep.rptm.mean > 1.4sec) then { print(s.rep.rptm.mean); }", &["Phase", "5: 1.5sec"]),
        ("if (2900msec - s.rep.rptm.mean < 1.5sec) then { print(1); }", &["Phase", "5: 1"]),
        ("if (s.rep.rptm.std_dev < 250msec) then { print(s.rep.rptm.std_dev); }", &["Phase", "5: 200msec"]),
        ("if (s.err_xact.ratio > 3% && s.err_xact.ratio < 5%) then { print(1); }", &["Phase", "5: 1"]),
        ("print(s.rep.size.sum, \" \", s.rep.size.sum > 2GB);", &["Phase", "5: 2.79397GB true"]),
        ("print(s.xact.started, \" \", s.conn.use.mean);", &["Phase", "5: 2147483647 2.5"]),
        ("setLoadFactorTo(s.baseline.rep.rate / 25);", &["Phase", "LoadTo(0.5)"]),
        (
            "time t = 2 * s.fill.rptm.mean; print(t, t > 0sec, t <= 0sec, t == 0sec, min(t, 1sec));",
            &["Phase", "5: undefinedfalsefalsefalseundefined"],
        ),
        (
            "changeLoadFactorBy(1 - s.real.ratio.obj); if (s.real.ratio.obj < 1) then { print(1); } else { print(2); }",
            &["Phase", "6: changeLoadFactorBy(): no change, because the amount is unknown", "5: 2"],
        ),
    ];
    for (script, expected) in rows {
        let mut world = World { mean: Some(1.5), load: 0.5, ..World::default() };
        let text = if script.contains("s.") { format!("{read}{script}") } else { script.to_owned() };
        let ran = run("", &text, &mut world);
        assert_eq!(
            (world.log, ran.error),
            (expected.iter().map(|line| (*line).to_owned()).collect(), None),
            "{script}"
        );
    }
}

#[test]
fn every_member_can_be_read_in_its_own_unit() {
    let members = stat_completions();
    assert!(members.len() > 400);
    let script: String = members.iter().map(|path| format!("print(s.{path});\n")).collect();
    let mut world = World::default();
    let ran = run("", &format!("StatSample s = currentPhase();\n{script}"), &mut world);
    assert_eq!((ran.error, world.log.len()), (None, members.len() + 1));
}

#[test]
fn watchdogs_have_samples_of_their_own_and_globals_stay() {
    let globals =
        "Goal often = { xactions = 10; }; Goal seldom = { xactions = 1000; }; int n = 0; time limit = 2sec;";
    let script = "int own = 7;
        every often do {
            StatSample s = currentSample();
            n = n + 1;
            print(n);
            if (s.rep.rptm.mean > limit) then { setSamplingGoalTo(seldom); limit = 3sec; }
            if (n == 2) then { every seldom do { print(\"inner \", n); } }
        }";
    let workload = workload(globals, script);
    let mut interpreter = Interpreter::new(&workload.scripts);
    let mut world = World { mean: Some(2.5), ..World::default() };
    let begun = interpreter.begin(ScriptId(0), &mut world);
    let [often] = &begun.watchdogs[..] else { panic!("{begun:?}") };
    assert_eq!((often.goal.xactions, often.place.as_str()), (Some(10), "s.pg:5:9"));
    assert!(interpreter.fire(often, &mut world).watchdogs.is_empty());
    let second = interpreter.fire(often, &mut world);
    assert!(interpreter.fire(&second.watchdogs[0], &mut world).error.is_none());
    assert_eq!(world.log, ["Sample", "5: 1", "goal Some(1000)", "Sample", "5: 2", "5: inner 2"]);
    // Another test begins with what the program said.
    world.log.clear();
    Interpreter::new(&workload.scripts).fire(often, &mut world);
    assert_eq!(world.log, ["Sample", "5: 1", "goal Some(1000)"]);
}

#[test]
fn a_script_breaks_off_where_it_is_wrong() {
    // Globals, script, and what the error says; the script prints 1 before and 2 after.
    let rows = [
        ("", "print(1 / int(\"0\"));", "s.pg:5:11: division by zero"),
        ("time unset;", "print(unset);", "s.pg:5:7: `unset` is undefined"),
        ("Goal g;", "every g do { }", "this sampling goal is empty"),
        ("Goal g = { duration = -1sec; };", "every g do { }", "not positive"),
        ("", "StatSample s; print(s.rep.rptm.mean);", "`s` has no statistics"),
        ("", "int_distr d = table(\"x\");", "scripts cannot read files"),
    ];
    for (globals, script, expected) in rows {
        let mut world = World::default();
        let ran = run(globals, &format!("print(1);\n{script}\nprint(2);"), &mut world);
        let error = ran.error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected), "{script}: {error}");
        assert_eq!(world.log, ["5: 1"], "{script}");
    }
}

#[test]
fn a_share_that_is_compared_with_percents_is_pointed_out() {
    for (script, code) in [
        ("s.err_xact.ratio > 3", Some("W0807")),
        ("5.5 < s.real.ratio.obj", Some("W0807")),
        ("s.rep.rptm.rel_dev >= 20", Some("W0807")),
        ("s.err_xact.ratio > 3%", None),
        ("s.err_xact.count > 3", None),
        ("s.xact.started > 3", None),
    ] {
        let text =
            format!("Phase p = {{ script = {{ StatSample s = currentPhase(); bool b = {script}; }}; }};");
        let compilation = compile("s.pg", &MemoryLoader::default().with("s.pg", text), &Options::default());
        let codes: Vec<&str> = compilation.diagnostics.iter().map(|finding| finding.code.id()).collect();
        let found = codes.iter().copied().find(|id| id.starts_with("W08"));
        assert_eq!(found, code, "{script}: {codes:?}");
    }
}

#[test]
fn the_examples_in_the_documentation_run() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripts.md");
    let text = std::fs::read_to_string(path).unwrap();
    let examples: Vec<&str> = text.split("```\n").skip(1).step_by(2).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        // Of a search that ends at once all watchdogs run once.
        let workload = workload(example, "");
        let mut interpreter = Interpreter::new(&workload.scripts);
        let mut world = World { mean: Some(2.5), load: 0.5, ..World::default() };
        for script in 0..workload.scripts.count() as u32 {
            let ran = interpreter.begin(ScriptId(script), &mut world);
            assert_eq!(ran.error, None, "{example}");
            for watchdog in &ran.watchdogs {
                assert_eq!(interpreter.fire(watchdog, &mut world).error, None, "{example}");
            }
        }
        assert!(!world.log.is_empty(), "{example}");
    }
}
