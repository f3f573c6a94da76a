//! A short run of what the fuzz target does.

use polygraph_pgl::DiskLoader;
use polygraph_pgl::lsp::serve;
use polygraph_testing::mutation::Random;
use serde_json::json;

use crate::mutate::{corpus, mutate, run};

#[test]
fn mutated_programs_do_no_harm() {
    let corpus = corpus();
    assert!(corpus.len() > 20, "the corpus is there");
    for program in &corpus {
        run(program);
    }
    let mut random = Random(0x5eed);
    for _ in 0..2000 {
        run(&mutate(&corpus, &mut random));
    }
}

#[test]
fn the_language_server_answers_about_mutated_programs() {
    let corpus = corpus();
    let mut random = Random(17);
    for _ in 0..40 {
        edit(&String::from_utf8_lossy(&mutate(&corpus, &mut random)));
    }
}

/// Asks the language server about a place in a program. It answers everything and ends in order.
fn edit(text: &str) {
    let uri = "file:///nowhere/test.pg";
    let line = text.len() % text.lines().count().max(1);
    let document = json!({ "uri": uri, "text": text });
    let mut messages =
        vec![json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } })];
    let asked = ["completion", "hover", "definition", "references", "rename", "documentSymbol", "formatting"];
    for (id, method) in asked.iter().enumerate() {
        let position = json!({ "line": line, "character": text.len() % 60 });
        let params = json!({ "textDocument": { "uri": uri }, "position": position, "newName": "other" });
        messages.push(json!({ "id": id, "method": format!("textDocument/{method}"), "params": params }));
    }
    messages.push(json!({ "id": asked.len(), "method": "shutdown" }));
    messages.push(json!({ "method": "exit" }));
    let framed = messages.iter().map(|message| {
        let body = message.to_string();
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    });
    let mut replies = Vec::new();
    let clean = serve(framed.collect::<String>().as_bytes(), &mut replies, &DiskLoader, Vec::new());
    assert_eq!(clean.ok(), Some(true));
    assert_eq!(String::from_utf8_lossy(&replies).matches("\"id\":").count(), asked.len() + 1);
}
