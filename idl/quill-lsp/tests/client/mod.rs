//! A client of the language server, over pipes. It waits for messages, never for time.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lsp_server::{Message, Notification, Request, Response};
use serde_json::{Value, json};

/// A server, and the conversation with it.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: i32,
    /// Notifications that came while something else was awaited.
    pub notes: Vec<Notification>,
}

impl Client {
    /// A server that has been told nothing yet.
    pub fn silent() -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quill-lsp"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Client { child, input, output, last_id: 0, notes: Vec::new() }
    }

    /// A server that runs, with options.
    pub fn new(options: Value) -> Client {
        let mut client = Client::silent();
        let response =
            client.request("initialize", json!({ "capabilities": {}, "initializationOptions": options }));
        let capabilities = response.response_result.unwrap();
        assert_eq!(capabilities["capabilities"]["hoverProvider"], true);
        client.notify("initialized", json!({}));
        client
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        let message = Message::from(Notification::new(method.into(), params));
        message.write(self.input.as_mut().unwrap()).unwrap();
    }

    fn next(&mut self) -> Message {
        Message::read(&mut self.output).unwrap().expect("the server has gone")
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Response {
        self.last_id += 1;
        let message = Message::from(Request::new(self.last_id.into(), method.into(), params));
        message.write(self.input.as_mut().unwrap()).unwrap();
        loop {
            match self.next() {
                Message::Response(response) => {
                    assert_eq!(response.id, self.last_id.into());
                    return response;
                }
                Message::Notification(note) => self.notes.push(note),
                Message::Request(request) => panic!("{request:?}"),
            }
        }
    }

    /// The result of a request, which must succeed.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        response.response_result.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// The code of the error that a request ends in.
    pub fn refused(&mut self, method: &str, params: Value) -> i32 {
        self.request(method, params).response_result.expect_err(method).code
    }

    /// Opens a text.
    pub fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "idl", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Changes a text.
    pub fn change(&mut self, uri: &str, version: i32, text: &str) {
        let document = json!({ "uri": uri, "version": version });
        let params = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.notify("textDocument/didChange", params);
    }

    /// The next messages about a text in this version.
    pub fn diagnostics(&mut self, uri: &str, version: i32) -> Vec<Value> {
        let wanted = |note: &Notification| {
            let is_it = note.params["uri"] == uri && note.params["version"] == version;
            note.method == "textDocument/publishDiagnostics" && is_it
        };
        loop {
            if let Some(at) = self.notes.iter().position(wanted) {
                let note = self.notes.remove(at);
                return note.params["diagnostics"].as_array().unwrap().clone();
            }
            match self.next() {
                Message::Notification(note) => self.notes.push(note),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The messages about a text that is opened now, as `code line:character-line:character`.
    pub fn check(&mut self, uri: &str, text: &str) -> Vec<String> {
        self.open(uri, text);
        self.diagnostics(uri, 1).iter().map(short).collect()
    }

    /// Text shown at a place; empty if nothing is.
    pub fn hover(&mut self, uri: &str, at: [u32; 2]) -> String {
        let hover = self.ask("textDocument/hover", place(uri, at));
        hover["contents"]["value"].as_str().unwrap_or("").to_owned()
    }

    /// Where the name at a place is declared, as `uri line:character-line:character`; empty if nowhere.
    pub fn definition(&mut self, uri: &str, at: [u32; 2]) -> String {
        let found = self.ask("textDocument/definition", place(uri, at));
        found["uri"].as_str().map_or(String::new(), |uri| format!("{uri} {}", range(&found["range"])))
    }

    /// Ends as the protocol says.
    pub fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        assert_eq!(self.finish(), (Some(0), String::new()));
    }

    /// Closes the input, and waits for the exit code and what was written for people.
    pub fn finish(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), errors)
    }
}

/// A place in a text.
pub fn place(uri: &str, [line, character]: [u32; 2]) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } })
}

/// A range as text.
pub fn range(range: &Value) -> String {
    let at = |place: &Value| format!("{}:{}", place["line"], place["character"]);
    format!("{}-{}", at(&range["start"]), at(&range["end"]))
}

/// A message as text: its code, its range.
pub fn short(diagnostic: &Value) -> String {
    let kind = if diagnostic["severity"] == 1 { "" } else { "w" };
    format!("{kind}{} {}", diagnostic["code"].as_str().unwrap(), range(&diagnostic["range"]))
}

/// A directory that is gone when the test is over.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("quill-lsp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(std::fs::canonicalize(dir).unwrap())
    }

    /// Writes a file; its address.
    pub fn file(&self, name: &str, content: &str) -> String {
        std::fs::create_dir_all(self.0.join(name).parent().unwrap()).unwrap();
        std::fs::write(self.0.join(name), content).unwrap();
        self.uri(name)
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file://{}", self.0.join(name).display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file of quill's corpus.
pub fn golden(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/accepted");
    std::fs::read_to_string(dir.join(name)).unwrap()
}
