//! A language server: diagnostics, hover, completion, outline, references, renaming, formatting and
//! definitions, all from the compiler's front end.
//!
//! It speaks JSON-RPC over a pair of streams and answers each message before it reads the next. The framing is
//! our own, because it bounds the size of messages and answers malformed ones, which the `lsp-server` crate
//! does not.

mod analysis;
mod features;
mod position;
mod symbols;
mod values;

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};

use serde_json::{Value as Json, json};

use crate::lsp::analysis::Analysis;
use crate::lsp::position::{path_of, range_of};
use crate::source::Loader;

/// The largest size of a message in bytes.
const MAX_MESSAGE: usize = 128 << 20;

/// Serves one client until it sends `exit` or closes the stream. True if it sent `shutdown` before. Files that the
/// editor has not opened are read by `files`.
///
/// # Errors
/// If a stream fails.
pub fn serve(
    input: impl BufRead,
    output: impl Write,
    files: &dyn Loader,
    search_path: Vec<String>,
) -> io::Result<bool> {
    let mut server = Server { output, documents: HashMap::new(), files, search_path, shutdown: false };
    let mut input = input;
    loop {
        match read(&mut input)? {
            Incoming::End => return Ok(server.shutdown),
            Incoming::Bad(code, message) => {
                let error = json!({ "code": code, "message": message });
                server.send(&json!({ "jsonrpc": "2.0", "id": null, "error": error }))?;
            }
            Incoming::Message(message) => {
                if !server.handle(&message)? {
                    return Ok(server.shutdown);
                }
            }
        }
    }
}

/// The kinds of input from the client.
enum Incoming {
    /// A JSON object.
    Message(Json),
    /// Input that is not a message: the error code of the protocol, and the reason.
    Bad(i32, String),
    /// The end of the stream.
    End,
}

/// Codes of errors in the protocol.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const REQUEST_FAILED: i32 = -32803;

/// The largest length in bytes of a header line.
const MAX_LINE: u64 = 8192;

/// Reads one message. After malformed input, reading continues with the next message.
fn read(input: &mut impl BufRead) -> io::Result<Incoming> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(Incoming::End);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let Some(length) = length else {
        return Ok(Incoming::Bad(INVALID_REQUEST, "a message without Content-Length".to_owned()));
    };
    if length > MAX_MESSAGE {
        io::copy(&mut input.by_ref().take(length as u64), &mut io::sink())?;
        return Ok(Incoming::Bad(INVALID_REQUEST, format!("a message has more than {MAX_MESSAGE} bytes")));
    }
    let mut body = Vec::new();
    input.by_ref().take(length as u64).read_to_end(&mut body)?;
    Ok(match serde_json::from_slice(&body) {
        Ok(message @ Json::Object(_)) => Incoming::Message(message),
        Ok(_) => Incoming::Bad(INVALID_REQUEST, "a message is not an object".to_owned()),
        Err(error) => Incoming::Bad(PARSE_ERROR, format!("a message is not JSON: {error}")),
    })
}

struct Server<'a, W> {
    output: W,
    /// Texts of open documents by URI.
    documents: HashMap<String, String>,
    /// Reads all other files.
    files: &'a dyn Loader,
    search_path: Vec<String>,
    shutdown: bool,
}

/// Loads files as the editor shows them, which may be newer than those that `files` reads.
struct EditorLoader<'a> {
    documents: &'a HashMap<String, String>,
    files: &'a dyn Loader,
}

impl Loader for EditorLoader<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let open = self.documents.iter().find(|(uri, _)| path_of(uri).as_deref() == Some(path));
        match open {
            Some((_, text)) => Ok(text.clone().into_bytes()),
            None => self.files.read(path),
        }
    }

    fn list(&self, directory: &str) -> Vec<String> {
        self.files.list(directory)
    }

    fn library(&self) -> Option<&str> {
        self.files.library()
    }

    fn is_library(&self, path: &str) -> bool {
        self.files.is_library(path)
    }
}

impl<W: Write> Server<'_, W> {
    fn send(&mut self, message: &Json) -> io::Result<()> {
        let body = message.to_string();
        write!(self.output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        self.output.flush()
    }

    /// Handles a message; false when the client is done.
    fn handle(&mut self, message: &Json) -> io::Result<bool> {
        let method = message["method"].as_str().unwrap_or("");
        let params = &message["params"];
        match method {
            "exit" => return Ok(false),
            "textDocument/didOpen" => {
                let document = &params["textDocument"];
                let text = document["text"].as_str().unwrap_or("").to_owned();
                self.changed(document["uri"].as_str().unwrap_or(""), text)?;
            }
            "textDocument/didChange" => {
                // The server requests whole texts, so the last change is the document.
                let last = params["contentChanges"].as_array().and_then(|changes| changes.last());
                let text = last.and_then(|change| change["text"].as_str()).unwrap_or("").to_owned();
                self.changed(params["textDocument"]["uri"].as_str().unwrap_or(""), text)?;
            }
            "textDocument/didClose" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap_or("").to_owned();
                self.documents.remove(&uri);
                self.publish(&uri, Vec::new())?;
            }
            _ => {}
        }
        let Some(id) = message.get("id") else { return Ok(true) };
        let result = match method {
            "initialize" => Ok(capabilities()),
            "shutdown" => {
                self.shutdown = true;
                Ok(Json::Null)
            }
            "textDocument/hover" => Ok(self.with_place(params, features::hover)),
            "textDocument/definition" => Ok(self.with_place(params, features::definition)),
            "textDocument/completion" => Ok(self.with_place(params, |analysis, offset| {
                features::completion(analysis, offset, &self.loader())
            })),
            "textDocument/documentSymbol" => {
                Ok(self.with_place(params, |analysis, _| symbols::outline(analysis)))
            }
            "textDocument/references" => {
                let all = params["context"]["includeDeclaration"].as_bool().unwrap_or(true);
                Ok(self.with_place(params, |analysis, offset| symbols::references(analysis, offset, all)))
            }
            "textDocument/rename" => self.rename(params),
            "textDocument/formatting" => Ok(self.formatting(params)),
            _ => Err(json!({ "code": METHOD_NOT_FOUND, "message": format!("{method} is not supported") })),
        };
        let reply = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        self.send(&reply)?;
        Ok(true)
    }

    fn changed(&mut self, uri: &str, text: String) -> io::Result<()> {
        self.documents.insert(uri.to_owned(), text);
        let Some(analysis) = self.analyse(uri) else { return Ok(()) };
        self.publish(uri, features::diagnostics(&analysis))
    }

    fn publish(&mut self, uri: &str, diagnostics: Vec<Json>) -> io::Result<()> {
        let params = json!({ "uri": uri, "diagnostics": diagnostics });
        self.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params }))
    }

    fn analyse(&self, uri: &str) -> Option<Analysis> {
        let text = self.documents.get(uri)?;
        let path = path_of(uri).unwrap_or_else(|| uri.to_owned());
        Some(Analysis::new(&path, text.clone(), &self.loader(), self.search_path.clone()))
    }

    fn loader(&self) -> EditorLoader<'_> {
        EditorLoader { documents: &self.documents, files: self.files }
    }

    fn rename(&self, params: &Json) -> Result<Json, Json> {
        let name = params["newName"].as_str().unwrap_or("");
        let mut refused = None;
        let edit = self.with_place(params, |analysis, offset| {
            symbols::rename(analysis, offset, name, &self.loader()).unwrap_or_else(|why| {
                refused = Some(json!({ "code": REQUEST_FAILED, "message": why }));
                Json::Null
            })
        });
        refused.map_or(Ok(edit), Err)
    }

    fn with_place(&self, params: &Json, answer: impl FnOnce(&Analysis, u32) -> Json) -> Json {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or("");
        let Some(analysis) = self.analyse(uri) else { return Json::Null };
        let line = params["position"]["line"].as_u64().unwrap_or(0) as usize;
        let column = params["position"]["character"].as_u64().unwrap_or(0) as usize;
        answer(&analysis, position::offset(analysis.main(), line, column))
    }

    fn formatting(&self, params: &Json) -> Json {
        let uri = params["textDocument"]["uri"].as_str().unwrap_or("");
        let Some(text) = self.documents.get(uri) else { return Json::Null };
        match crate::format::format(text) {
            Ok(formatted) if formatted != *text => {
                let mut sources = crate::SourceMap::default();
                let file = sources.add("", text.clone(), None);
                let whole = crate::source::Span::new(file, 0, text.len());
                json!([{ "range": range_of(sources.file(file), whole), "newText": formatted }])
            }
            _ => json!([]),
        }
    }
}

fn capabilities() -> Json {
    json!({
        "capabilities": {
            "textDocumentSync": 1,
            "hoverProvider": true,
            "definitionProvider": true,
            "documentFormattingProvider": true,
            "documentSymbolProvider": true,
            "referencesProvider": true,
            "renameProvider": true,
            "completionProvider": { "triggerCharacters": [".", "\"", "/"] },
        },
        "serverInfo": { "name": "polygraph" },
    })
}
