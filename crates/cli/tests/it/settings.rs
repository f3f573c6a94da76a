//! Settings of files and variables, as users meet them.

use serde_json::Value;

use crate::sandbox::Sandbox;

#[test]
fn settings_reach_commands_and_say_where_they_come_from() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "polygraph.toml",
        "[check]\nno_simulation = true\nset = [\"ReqRate=7/sec\"]\n[lx]\njson = true\n",
    );
    let done = sandbox.polygraph("check polymix-1");
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(done.err.contains("--no_simulation (polygraph.toml:2)"), "{done:?}");
    assert!(!done.out.contains("offered hit ratio"), "{done:?}");
    let without = sandbox.polygraph("check polymix-1 --set ReqRate=7/sec --no_simulation");
    assert_eq!(done.out, without.out);
    // The command line replaces the list of the file.
    let other = sandbox.polygraph("check polymix-1 --set ReqRate=9/sec");
    assert!(other.code() == Some(0) && other.out != done.out, "{other:?}");
    let quiet = sandbox.polygraph("check polymix-1 --quiet");
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), (done.out.as_str(), ""));

    let shown = sandbox.polygraph("config --json");
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(shown["schema"], 1);
    let set = shown["settings"].as_array().unwrap().iter().find(|row| row["option"] == "set").unwrap();
    assert_eq!((&set["values"][0], &set["origin"]), (&"ReqRate=7/sec".into(), &"polygraph.toml:3".into()));
    assert_eq!(set["variable"], "POLYGRAPH_DEFAULT_CHECK_SET");
    let all = sandbox.polygraph("config check").out;
    assert!(
        all.contains("check.scale") && all.contains("not set") && all.contains("polygraph.toml:2"),
        "{all}"
    );
}

#[test]
fn wrong_settings_name_their_place() {
    let sandbox = Sandbox::new();
    for (text, problem) in [
        (
            "[run]\nreq_rte = '5/sec'\n",
            "polygraph.toml:2: `polygraph run` has no option `req_rte`; did you mean req_rate?",
        ),
        ("[chekc]\n", "did you mean [check]?"),
    ] {
        sandbox.write("polygraph.toml", text);
        for words in ["config", "run --no_proxy", "lx x.log"] {
            let done = sandbox.polygraph(words);
            assert!(done.code() == Some(2) && done.err.contains(problem), "{words}: {done:?}");
        }
    }
    sandbox.write("polygraph.toml", "[run]\nreq_rate = 'fast'\n");
    let done = sandbox.polygraph("run --no_proxy");
    assert!(
        done.code() == Some(2) && done.err.contains("--req_rate comes from polygraph.toml:2"),
        "{done:?}"
    );
    let done = sandbox.polygraph("config");
    assert!(done.code() == Some(2) && done.err.contains("polygraph.toml:2: "), "{done:?}");
    // Options that the command line replaces are no concern of it.
    assert_eq!(sandbox.polygraph("run --no_proxy --req_rate 5/sec --config nofile.pg").code(), Some(2));
}
