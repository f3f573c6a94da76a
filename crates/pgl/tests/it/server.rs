//! A scripted session with the language server.

use std::io::Cursor;

use polygraph_pgl::DiskLoader;
use polygraph_pgl::lsp::serve;
use serde_json::{Value, json};

/// Sends messages and returns everything the server says.
fn session(messages: &[Value]) -> Vec<Value> {
    exchange(&messages.iter().map(Value::to_string).collect::<Vec<_>>())
}

/// Sends texts as messages and returns everything the server says.
fn exchange(messages: &[String]) -> Vec<Value> {
    let framed = messages.iter().map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let input: Vec<u8> = framed.collect::<String>().into_bytes();
    let mut output = Vec::new();
    let clean = serve(Cursor::new(input), &mut output, &DiskLoader, Vec::new()).expect("no broken stream");
    assert!(clean, "the session ended in order");
    let text = String::from_utf8(output).expect("text");
    let bodies =
        text.split("Content-Length: ").skip(1).map(|part| part.split_once("\r\n\r\n").expect("a body").1);
    bodies.map(|body| serde_json::from_str(body).expect("JSON")).collect()
}

fn request(id: u32, method: &str, line: usize, character: usize) -> Value {
    let params = json!({
        "textDocument": { "uri": "file:///w/test.pg" }, "position": { "line": line, "character": character },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": format!("textDocument/{method}"), "params": params })
}

const TEXT: &str = "\
rate PeakRate = 5/sec; // a
Robot R = {
    req_rate = PeakRate;
    pop_model.
};
Robot Bad = { recurence = 5%; };
";

#[test]
fn a_session_with_all_features() {
    // The document has a syntax error (line 4) at first and only a wrong name after the change.
    let fixed = TEXT.replace("    pop_model.\n", "    pop_model.hot_set_frac = 1%;\n");
    let replies = session(&[
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {
            "textDocument": { "uri": "file:///w/test.pg", "languageId": "pgl", "version": 1, "text": TEXT } } }),
        request(2, "completion", 3, 14),
        request(3, "hover", 2, 6),
        request(4, "definition", 2, 18),
        json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
            "textDocument": { "uri": "file:///w/test.pg", "version": 2 }, "contentChanges": [{ "text": fixed }] } }),
        request(5, "completion", 2, 4),
        request(6, "hover", 1, 2),
        request(7, "formatting", 0, 0),
        request(8, "foldingRange", 0, 0),
        json!({ "jsonrpc": "2.0", "id": 9, "method": "shutdown" }),
        json!({ "jsonrpc": "2.0", "method": "exit" }),
    ]);
    let reply =
        |id: u32| replies.iter().find(|reply| reply["id"] == id).unwrap_or_else(|| panic!("no reply {id}"));
    assert_eq!(reply(1)["result"]["capabilities"]["hoverProvider"], true);
    let published: Vec<&Value> =
        replies.iter().filter(|reply| reply["method"] == "textDocument/publishDiagnostics").collect();
    assert_eq!(published.len(), 2);
    assert_eq!(published[0]["params"]["diagnostics"][0]["code"], "E0201");
    let second = &published[1]["params"]["diagnostics"];
    assert_eq!(second[0]["code"], "E0403", "{second}");
    assert_eq!(second[0]["range"]["start"], json!({ "line": 5, "character": 14 }));
    assert!(second[0]["message"].as_str().expect("text").contains("did you mean `recurrence`?"));

    let labels = |id: u32| {
        let items = reply(id)["result"].as_array().expect("a list");
        items.iter().map(|item| item["label"].as_str().expect("a label").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(labels(2), ["pop_distr", "hot_set_frac", "hot_set_prob", "bhr_discrimination"]);
    for wanted in ["recurrence", "PeakRate", "robotAddrs", "every"] {
        assert!(labels(5).contains(&wanted.to_owned()), "{wanted} is offered");
    }
    let hover = reply(3)["result"]["contents"]["value"].as_str().expect("text");
    assert!(hover.contains("rate Robot.req_rate") && hover.contains("Poisson"), "{hover}");
    let hover = reply(6)["result"]["contents"]["value"].as_str().expect("text");
    assert!(hover.contains("Robot") && hover.contains("A client."), "{hover}");
    assert_eq!(reply(4)["result"]["range"]["start"], json!({ "line": 0, "character": 5 }));
    assert_eq!(reply(4)["result"]["uri"], "file:///w/test.pg");
    assert_eq!(reply(8)["error"]["code"], -32601);
}

/// A session about one document: the replies to requests, by their identifiers from 1 on.
fn about(uri: &str, text: &str, requests: &[Value]) -> Vec<Value> {
    let mut messages = vec![json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {
        "textDocument": { "uri": uri, "languageId": "pgl", "version": 1, "text": text } } })];
    for (id, request) in requests.iter().enumerate() {
        let mut request = request.clone();
        (request["jsonrpc"], request["id"]) = (json!("2.0"), json!(id + 1));
        request["params"]["textDocument"]["uri"] = json!(uri);
        messages.push(request);
    }
    messages.push(json!({ "jsonrpc": "2.0", "id": 0, "method": "shutdown" }));
    messages.push(json!({ "jsonrpc": "2.0", "method": "exit" }));
    let replies = session(&messages);
    let reply = |id: usize| replies.iter().find(|reply| reply["id"] == id).expect("a reply").clone();
    (1..=requests.len()).map(reply).collect()
}

fn at(method: &str, line: usize, character: usize, more: Value) -> Value {
    let mut params = json!({ "position": { "line": line, "character": character } });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    json!({ "method": format!("textDocument/{method}"), "params": params })
}

fn labels(reply: &Value) -> Vec<&str> {
    reply["result"].as_array().expect("a list").iter().filter_map(|item| item["label"].as_str()).collect()
}

#[test]
fn completion_knows_what_may_stand_there() {
    let text = "rate Fast = 5/sec;\nRobot R = {\n    req_types = [ \"Ims304\": 5%, \"B\n    req_methods = [\n    req_rate = \n};\n";
    let replies = about(
        "file:///w/test.pg",
        text,
        &[
            at("completion", 2, 34, json!({})),
            at("completion", 3, 19, json!({})),
            at("completion", 4, 15, json!({})),
        ],
    );
    assert_eq!(labels(&replies[0]), ["Basic", "Ims200", "Ims304", "Reload", "Range", "Upload"]);
    assert_eq!(labels(&replies[1])[..4], ["\"GET\"", "\"HEAD\"", "\"POST\"", "\"PUT\""]);
    let items = replies[2]["result"].as_array().expect("a list");
    let fast = items.iter().find(|item| item["label"] == "Fast").expect("the variable");
    assert_eq!(fast["sortText"], "0Fast", "a rate is wanted");
}

#[test]
fn completion_of_included_files() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("include/deep")).expect("writable");
    for name in ["other.pg", "notes.txt", "include/parts.pg", "include/deep/more.pg"] {
        std::fs::write(dir.path().join(name), "").expect("writable");
    }
    let uri = format!("file://{}/test.pg", dir.path().display());
    let text = "#include \"\n#include \"deep/m\n#include \"done.pg\" // \n";
    let requests = [
        at("completion", 0, 10, json!({})),
        at("completion", 1, 16, json!({})),
        at("completion", 2, 22, json!({})),
    ];
    let replies = about(&uri, text, &requests);
    assert_eq!(labels(&replies[0]), ["deep/", "include/", "other.pg", "parts.pg"]);
    assert_eq!(labels(&replies[1]), ["more.pg"]);
    assert!(!labels(&replies[2]).contains(&"other.pg"));
}

const NAMES: &str = "\
rate Peak = 5/sec;
Robot R = {
    rate half = Peak / 2;
    req_rate = half;
};
if (Peak > 3/sec) then { int n = 1; } else { int n = 2; }
print(Peak, n);
";

#[test]
fn outline_uses_and_other_names() {
    let declared = |all: bool| json!({ "context": { "includeDeclaration": all } });
    let name = |name: &str| json!({ "newName": name });
    let replies = about(
        "file:///w/test.pg",
        NAMES,
        &[
            at("documentSymbol", 0, 0, json!({})),
            at("references", 0, 6, declared(true)),
            at("references", 2, 17, declared(false)),
            at("rename", 6, 7, name("Top")),
            at("rename", 5, 30, name("count_of")),
            at("rename", 6, 7, name("n")),
            at("rename", 2, 10, name("recurrence")),
            at("rename", 2, 10, name("sec")),
            at("rename", 1, 1, name("Bot")),
            at("references", 3, 6, declared(true)),
        ],
    );
    let symbols: Vec<_> =
        replies[0]["result"].as_array().expect("a list").iter().map(|s| &s["name"]).collect();
    assert_eq!(symbols, ["Peak", "R", "n"]);
    assert_eq!(replies[0]["result"][1]["children"][0]["name"], "half");
    assert_eq!(replies[0]["result"][1]["range"]["end"], json!({ "line": 4, "character": 1 }));
    let lines = |reply: &Value| {
        let list = reply["result"].as_array().expect("a list").clone();
        list.iter().map(|place| place["range"]["start"]["line"].as_u64().expect("a line")).collect::<Vec<_>>()
    };
    assert_eq!(lines(&replies[1]), [0, 2, 5, 6]);
    assert_eq!(lines(&replies[2]), [2, 5, 6]);
    let edits =
        |reply: &Value| reply["result"]["changes"]["file:///w/test.pg"].as_array().map_or(0, Vec::len);
    assert_eq!(edits(&replies[3]), 4);
    // Both branches declare the same variable.
    assert_eq!(edits(&replies[4]), 3);
    for (index, why) in [(5, "a name that is taken"), (6, "a field"), (7, "a unit"), (8, "a type")] {
        assert_eq!(replies[index]["error"]["code"], -32803, "{why}: {}", replies[index]);
    }
    assert_eq!(lines(&replies[9]), [3], "uses of a field");
}

#[test]
fn what_is_no_message_is_answered_and_the_next_one_is_read() {
    let good = json!({ "jsonrpc": "2.0", "id": 5, "method": "shutdown" }).to_string();
    let exit = json!({ "jsonrpc": "2.0", "method": "exit" }).to_string();
    let replies = exchange(&["{ no JSON".to_owned(), "[1]".to_owned(), good, exit]);
    let codes: Vec<_> = replies.iter().map(|reply| &reply["error"]["code"]).collect();
    assert_eq!(codes, [&json!(-32700), &json!(-32600), &Value::Null]);
    assert_eq!((&replies[0]["id"], &replies[2]["id"]), (&Value::Null, &json!(5)));
}
