//! The conversation: what a client asks, in the order in which it asks it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentSymbolParams,
    GotoDefinitionParams, Hover, HoverContents, HoverParams, HoverProviderCapability, InitializeParams,
    InitializeResult, Location, MarkupContent, MarkupKind, MessageType, OneOf, Position,
    PublishDiagnosticsParams, Range, SaveOptions, ServerCapabilities, ServerInfo, ShowMessageParams,
    TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
    TextDocumentSyncSaveOptions, Uri,
};
use quill::source::{SourceFile, Span};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::analysis::Analysis;
use crate::diagnostics;
use crate::documents::{self, Document};
use crate::hover;
use crate::settings::Settings;
use crate::symbols;
use crate::text::Lines;
use crate::wire;

/// How a conversation ends.
pub enum End {
    /// By `shutdown` and `exit`.
    Exit,
    /// Otherwise.
    Abrupt,
}

/// Messages that wait while a text is compiled.
const WAITING_MAX: usize = 256;

/// Talks over standard input and output. The error is a message about a message.
pub fn serve() -> Result<End, String> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let message = wire::read(&mut input).transpose();
            let Some(message) = message else { return };
            let ends = message.is_err();
            if sender.send(message).is_err() || ends {
                return;
            }
        }
    });
    let settings = Settings::new(None, None)?;
    let server = Server {
        output: io::stdout(),
        state: State::New,
        settings,
        documents: BTreeMap::new(),
        analyses: HashMap::new(),
        stale: BTreeSet::new(),
    };
    server.run(&receiver)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Running,
    ShutDown,
}

struct Server {
    output: io::Stdout,
    state: State,
    settings: Settings,
    /// Open texts, by their addresses.
    documents: BTreeMap<String, Document>,
    /// Knowledge about them.
    analyses: HashMap<String, Analysis>,
    /// Those of which nothing is known, or not the newest.
    stale: BTreeSet<String>,
}

/// A request that cannot be answered.
type Refusal = (ErrorCode, String);

impl Server {
    fn run(mut self, input: &Receiver<Result<Message, String>>) -> Result<End, String> {
        loop {
            let next = if self.stale.is_empty() {
                input.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                input.try_recv()
            };
            let sent = match next {
                Ok(Ok(Message::Notification(n))) if n.method == "exit" => {
                    return Ok(if self.state == State::ShutDown { End::Exit } else { End::Abrupt });
                }
                Ok(Ok(Message::Notification(notification))) => self.notification(notification),
                Ok(Ok(Message::Request(request))) => self.request(request),
                Ok(Ok(Message::Response(_))) => Ok(()),
                Ok(Err(malformed)) => return Err(malformed),
                Err(TryRecvError::Empty) => self.refresh_one(),
                Err(TryRecvError::Disconnected) => return Ok(End::Abrupt),
            };
            // A client that does not read any more has gone away.
            if sent.is_err() {
                return Ok(End::Abrupt);
            }
        }
    }

    fn send(&mut self, message: Message) -> io::Result<()> {
        message.write(&mut self.output)?;
        self.output.flush()
    }

    fn notify(&mut self, method: &str, params: impl serde::Serialize) -> io::Result<()> {
        self.send(Notification::new(method.into(), params).into())
    }

    fn request(&mut self, request: Request) -> io::Result<()> {
        let Request { id, method, params } = request;
        let answer = match (self.state, method.as_str()) {
            (State::New, "initialize") => return self.initialize(id, params),
            (State::New, _) => {
                Err((ErrorCode::ServerNotInitialized, "the first request is `initialize`".to_owned()))
            }
            (State::ShutDown, _) => Err((ErrorCode::InvalidRequest, "the server is shut down".to_owned())),
            (State::Running, "initialize") => {
                Err((ErrorCode::InvalidRequest, "`initialize` comes once".to_owned()))
            }
            (State::Running, "shutdown") => {
                self.state = State::ShutDown;
                self.stale.clear();
                Ok(Value::Null)
            }
            (State::Running, "textDocument/hover") => self.hover(params),
            (State::Running, "textDocument/definition") => self.definition(params),
            (State::Running, "textDocument/documentSymbol") => self.symbols(params),
            (State::Running, _) => {
                Err((ErrorCode::MethodNotFound, format!("there is no request `{method}` here")))
            }
        };
        let response = match answer {
            Ok(result) => Response::new_ok(id, result),
            Err((code, message)) => Response::new_err(id, code as i32, message),
        };
        self.send(response.into())
    }

    fn initialize(&mut self, id: RequestId, params: Value) -> io::Result<()> {
        let params: InitializeParams = match parse(params) {
            Ok(params) => params,
            Err((code, message)) => return self.send(Response::new_err(id, code as i32, message).into()),
        };
        self.state = State::Running;
        let root = root(&params);
        let settings = Settings::new(params.initialization_options, root.as_deref());
        let result = InitializeResult {
            capabilities: capabilities(),
            server_info: Some(ServerInfo {
                name: "quill".into(),
                version: Some(env!("CARGO_PKG_VERSION").into()),
            }),
        };
        self.send(Response::new_ok(id, result).into())?;
        match settings {
            Ok(settings) => self.settings = settings,
            // An editor goes on without the options, and its user sees why.
            Err(message) => {
                let params = ShowMessageParams { typ: MessageType::ERROR, message };
                self.notify("window/showMessage", params)?;
            }
        }
        Ok(())
    }

    /// Notifications that are unknown or make no sense have no effect: there is no answer to them.
    fn notification(&mut self, notification: Notification) -> io::Result<()> {
        if self.state != State::Running {
            return Ok(());
        }
        let Notification { method, params } = notification;
        let done = match method.as_str() {
            "textDocument/didOpen" => parse(params).map(|p: DidOpenTextDocumentParams| {
                let opened = p.text_document;
                let key = opened.uri.as_str().to_owned();
                let document = Document::new(opened.uri, opened.text, opened.version);
                self.changed(&document.path);
                self.stale.insert(key.clone());
                self.documents.insert(key, document);
            }),
            "textDocument/didChange" => parse(params).map(|p| self.change(p)),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                // Files that are not open may have changed, too.
                self.stale.extend(self.documents.keys().cloned());
                Ok(())
            }
            "textDocument/didClose" => match parse(params) {
                Ok(params) => return self.close(&params),
                Err(why) => Err(why),
            },
            _ => Ok(()),
        };
        if let Err((_, why)) = done {
            eprintln!("warning: `{method}` has no effect: {why}");
        }
        Ok(())
    }

    fn change(&mut self, params: DidChangeTextDocumentParams) {
        let key = params.text_document.uri.as_str().to_owned();
        let Some(document) = self.documents.get_mut(&key) else { return };
        for change in params.content_changes {
            // It is told that changes are whole texts.
            if change.range.is_none() {
                document.set(change.text, params.text_document.version);
            }
        }
        let path = document.path.clone();
        self.changed(&path);
        self.stale.insert(key);
    }

    fn close(&mut self, params: &DidCloseTextDocumentParams) -> io::Result<()> {
        let uri = params.text_document.uri.clone();
        let Some(document) = self.documents.remove(uri.as_str()) else { return Ok(()) };
        self.analyses.remove(uri.as_str());
        self.stale.remove(uri.as_str());
        self.changed(&document.path);
        let params = PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: None };
        self.notify("textDocument/publishDiagnostics", params)
    }

    /// Marks whatever may depend on a file.
    fn changed(&mut self, path: &Path) {
        let dependent = self.analyses.iter().filter(|(_, analysis)| analysis.depends_on(path));
        self.stale.extend(dependent.map(|(key, _)| key.clone()));
        // Of an attribute file without a file nothing is known yet.
        let unknown = self.documents.keys().filter(|key| !self.analyses.contains_key(*key));
        self.stale.extend(unknown.cloned());
    }

    fn refresh_one(&mut self) -> io::Result<()> {
        match self.stale.pop_first() {
            Some(key) => self.refresh(&key),
            None => Ok(()),
        }
    }

    /// Compiles a text and says what is wrong with it.
    fn refresh(&mut self, key: &str) -> io::Result<()> {
        self.stale.remove(key);
        self.analyses.remove(key);
        let Some(document) = self.documents.get(key) else { return Ok(()) };
        let (uri, version) = (document.uri.clone(), Some(document.version));
        let diagnostics = match Analysis::new(document, self.documents.values(), &self.settings) {
            Ok(analysis) => {
                let diagnostics = diagnostics::of(&analysis, &|file| self.uri_of(file));
                self.analyses.insert(key.into(), analysis);
                diagnostics
            }
            Err(why) => {
                eprintln!("warning: nothing is said of `{}`: {why}", document.path.display());
                Vec::new()
            }
        };
        let params = PublishDiagnosticsParams { uri, diagnostics, version };
        self.notify("textDocument/publishDiagnostics", params)
    }

    /// The address of a file, as the client writes it if the file is open.
    fn uri_of(&self, file: &SourceFile) -> Option<Uri> {
        self.uri_of_path(&file.path)
    }

    fn uri_of_path(&self, path: &Path) -> Option<Uri> {
        let real: PathBuf = std::fs::canonicalize(path).unwrap_or(path.into());
        let open = self.documents.values().find(|d| d.path == real || d.path == path);
        open.map(|d| d.uri.clone()).or_else(|| documents::uri(path))
    }

    /// Knowledge about a text, brought up to date.
    fn analysis(&mut self, uri: &Uri) -> Result<&Analysis, Refusal> {
        let key = uri.as_str();
        if !self.documents.contains_key(key) {
            return Err((ErrorCode::InvalidParams, format!("`{key}` is not open")));
        }
        if self.stale.contains(key) || !self.analyses.contains_key(key) {
            self.refresh(key).map_err(|e| (ErrorCode::RequestFailed, e.to_string()))?;
        }
        let nothing = || (ErrorCode::RequestFailed, format!("nothing is known of `{key}`"));
        self.analyses.get(key).ok_or_else(nothing)
    }

    fn at(&mut self, place: &TextDocumentPositionParams) -> Result<(&Analysis, usize), Refusal> {
        let position: Position = place.position;
        let analysis = self.analysis(&place.text_document.uri)?;
        let offset = analysis.main().map_or(0, |file| Lines::new(&file.text).offset(position));
        Ok((analysis, offset))
    }

    fn hover(&mut self, params: Value) -> Result<Value, Refusal> {
        let params: HoverParams = parse(params)?;
        let place = &params.text_document_position_params;
        let (_, offset) = self.at(place)?;
        // Borrowed again, beside the settings.
        let Some(analysis) = self.analyses.get(place.text_document.uri.as_str()) else {
            return Ok(Value::Null);
        };
        let Some(file) = analysis.main() else { return Ok(Value::Null) };
        let lines = Lines::new(&file.text);
        let (text, span) = if let Some(path) = analysis.included_at(offset) {
            (format!("`{}`", path.display()), None)
        } else {
            let Some(at) = analysis.name_at(offset) else { return Ok(Value::Null) };
            let found = analysis.names.at(&analysis.scan, &analysis.outline, 0, at);
            let Some(symbol) = found else { return Ok(Value::Null) };
            let text = hover::of(analysis, &self.settings, &analysis.outline.symbols[symbol]);
            (text, Some(analysis.outline.lists[0][at].span))
        };
        let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: text });
        value(Hover { contents, range: span.map(|span| lines.range(file, span)) })
    }

    fn definition(&mut self, params: Value) -> Result<Value, Refusal> {
        let params: GotoDefinitionParams = parse(params)?;
        let (analysis, offset) = self.at(&params.text_document_position_params)?;
        let key = params.text_document_position_params.text_document.uri.as_str();
        if let Some(path) = analysis.included_at(offset) {
            let uri = self.uri_of_path(&path);
            return value(uri.map(|uri| Location { uri, range: Range::default() }));
        }
        let span = definition(analysis, offset);
        let Some(analysis) = self.analyses.get(key) else { return Ok(Value::Null) };
        let map = &analysis.scan.map;
        let site = span.map(|span| map.call_site(span));
        let file = site.and_then(|site| Some((site, map.file(map.file_index(site)?))));
        // Macros of the settings are in no file.
        let file = file.filter(|(_, file)| !file.path.to_string_lossy().starts_with('<'));
        value(file.and_then(|(site, file)| diagnostics::location(file, site, &|file| self.uri_of(file))))
    }

    fn symbols(&mut self, params: Value) -> Result<Value, Refusal> {
        let params: DocumentSymbolParams = parse(params)?;
        value(symbols::of(self.analysis(&params.text_document.uri)?))
    }
}

/// Where the name at a byte of a text is declared.
fn definition(analysis: &Analysis, offset: usize) -> Option<Span> {
    if let Some((_, definition)) = analysis.macro_at(offset) {
        return Some(definition);
    }
    let at = analysis.name_at(offset)?;
    let symbol = analysis.names.at(&analysis.scan, &analysis.outline, 0, at)?;
    Some(analysis.outline.symbols[symbol].span)
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|e| (ErrorCode::InvalidParams, e.to_string()))
}

fn value(result: impl serde::Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(result).map_err(|e| (ErrorCode::InternalError, e.to_string()))
}

/// The folder that relative paths of the settings are below.
fn root(params: &InitializeParams) -> Option<PathBuf> {
    let folder = params.workspace_folders.as_ref().and_then(|all| all.first()).map(|folder| &folder.uri);
    #[expect(deprecated, reason = "clients without workspace folders say it so")]
    let folder = folder.or(params.root_uri.as_ref())?;
    documents::path(folder.as_str())
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::FULL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        ..ServerCapabilities::default()
    }
}
