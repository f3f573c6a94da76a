//! A scripted session with the language server.

use std::io::Cursor;

use polygraph_pgl::lsp::serve;
use serde_json::{Value, json};

/// Sends messages and returns everything the server says.
fn session(messages: &[Value]) -> Vec<Value> {
    let mut input = Vec::new();
    for message in messages {
        let body = message.to_string();
        input.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes());
    }
    let mut output = Vec::new();
    let clean = serve(Cursor::new(input), &mut output, Vec::new()).expect("no broken stream");
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
        request(8, "rename", 0, 0),
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
