//! Macros: definitions, calls, and the tokens that a call leaves.

use super::*;

impl Pp<'_> {
    pub(super) fn place_macro(&mut self, token: Token) -> Token {
        let site = self.s.map.call_site(token.span);
        let text = match self.s.map.place(site) {
            Some(place) if token.text == self.known.line => place.line.to_string(),
            Some(place) => format!("{:?}", place.file.path.display().to_string()),
            None => "0".into(),
        };
        let kind = if token.text == self.known.line { Kind::Number } else { Kind::Str };
        Token { kind, text: self.s.names.intern(&text), ..token }
    }

    /// Starts the expansion of a macro; false when a function-like macro is named without arguments.
    pub(super) fn call_macro(&mut self, token: &Token, found: &Rc<Macro>) -> bool {
        let arguments = match &found.params {
            None => Vec::new(),
            Some(params) => {
                if !self.opens_arguments() {
                    return false;
                }
                match self.arguments(token, params.len(), found.variadic) {
                    Some(arguments) => arguments,
                    None => return true,
                }
            }
        };
        let name = self.s.names.shared(token.text);
        let ctx = self.s.map.expand(Expansion { call: token.span, name, definition: found.span });
        let mut body = self.substitute(token, found, &arguments, ctx);
        if let Some(first) = body.first_mut() {
            first.space = token.space;
        }
        self.push_context(body, Some(token.text));
        true
    }

    /// Whether `(` comes next; takes it if so.
    pub(super) fn opens_arguments(&mut self) -> bool {
        loop {
            if let Some(context) = self.contexts.last_mut() {
                match context.tokens.get(context.at) {
                    Some(token) if self.s.names.text(token.text) == "(" => {
                        context.at += 1;
                        return true;
                    }
                    Some(_) => return false,
                    None => self.pop_context(),
                }
                continue;
            }
            if self.lists > 0 {
                return false;
            }
            let Some(frame) = self.frames.last_mut() else { return false };
            let saved = frame.lexer.clone();
            let token = frame.lexer.next(&mut self.s.names);
            if token.kind == Kind::Punct && self.s.text(&token) == "(" {
                return true;
            }
            if let Some(frame) = self.frames.last_mut() {
                frame.lexer = saved;
            }
            return false;
        }
    }

    /// The arguments of a call whose `(` is taken.
    pub(super) fn arguments(
        &mut self,
        call: &Token,
        params: usize,
        variadic: bool,
    ) -> Option<Vec<Vec<Token>>> {
        let mut arguments = vec![Vec::new()];
        let mut depth = 0usize;
        let mut count = 0usize;
        loop {
            let token = self.raw();
            count += 1;
            if token.kind == Kind::Eof || count > limits::EXPANDED_TOKENS_MAX {
                let name = self.s.text(call).to_owned();
                self.error(
                    Code::MacroCall,
                    call.span,
                    format!("the arguments of the macro `{name}` have no `)`"),
                );
                return None;
            }
            if token.kind == Kind::Punct {
                match self.s.text(&token) {
                    "(" => depth += 1,
                    ")" if depth == 0 => break,
                    ")" => depth -= 1,
                    "," if depth == 0 && !(variadic && arguments.len() > params) => {
                        arguments.push(Vec::new());
                        continue;
                    }
                    _ => {}
                }
            }
            if let Some(last) = arguments.last_mut() {
                last.push(token);
            }
        }
        self.s.expanded_tokens += count;
        let wanted = params + usize::from(variadic);
        if params == 0 && !variadic && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if variadic && arguments.len() == params {
            arguments.push(Vec::new());
        }
        if arguments.len() != wanted {
            let name = self.s.text(call).to_owned();
            let message =
                format!("the macro `{name}` takes {wanted} arguments, but here are {}", arguments.len());
            let definition = self.macros.get(&call.text).map(|m| m.span);
            let mut diagnostic = Diagnostic::error(Code::MacroCall, call.span, message);
            if let Some(span) = definition {
                diagnostic = diagnostic.note(span, "the macro is defined here");
            }
            self.s.diags.push(diagnostic);
            return None;
        }
        Some(arguments)
    }

    /// The body of a macro with its parameters replaced, `#` and `##` done.
    pub(super) fn substitute(
        &mut self,
        call: &Token,
        found: &Macro,
        arguments: &[Vec<Token>],
        ctx: u32,
    ) -> Vec<Token> {
        let va_args = self.known.va_args;
        let index = |name: Symbol| found.parameter(name, va_args);
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; arguments.len()];
        let mut out: Vec<Token> = Vec::new();
        let mut i = 0;
        while i < found.body.len() {
            if self.s.diags.stop() || self.expands_too_far(call, out.len()) {
                break;
            }
            let token = found.body[i];
            let text = self.s.names.text(token.text);
            let next_is_paste = found.body.get(i + 1).is_some_and(|t| self.s.names.text(t.text) == "##");
            if text == "#" && found.params.is_some() && i + 1 < found.body.len() {
                if let Some(n) = index(found.body[i + 1].text) {
                    let text = self.stringize(&arguments[n]);
                    out.push(Token { kind: Kind::Str, text, span: call.span, ..token });
                    i += 2;
                    continue;
                }
            } else if text == "##" && !out.is_empty() && i + 1 < found.body.len() {
                let right = found.body[i + 1];
                let list = match index(right.text) {
                    Some(n) if right.kind == Kind::Ident => arguments[n].clone(),
                    _ => vec![Token { span: Span { ctx, ..right.span }, ..right }],
                };
                self.paste(call, &mut out, list);
                i += 2;
                continue;
            }
            match index(token.text) {
                Some(n) if token.kind == Kind::Ident && next_is_paste => {
                    // An empty left side leaves a mark, so that `##` still has something to join.
                    out.extend(arguments[n].iter().copied());
                    if arguments[n].is_empty() {
                        let empty = self.s.names.intern("");
                        out.push(Token { kind: Kind::Other, text: empty, ..*call });
                    }
                }
                Some(n) if token.kind == Kind::Ident => {
                    let tokens = expanded[n].get_or_insert_with(|| self.expand_list(arguments[n].clone()));
                    let at = out.len();
                    out.extend(tokens.iter().copied());
                    if let Some(first) = out.get_mut(at) {
                        first.space = token.space;
                    }
                }
                _ => out.push(Token { span: Span { ctx, ..token.span }, ..token }),
            }
            i += 1;
        }
        out.retain(|t| !self.s.names.text(t.text).is_empty());
        out
    }

    /// Whether this run has made too many tokens of macros, with those that a `call` has made; reports it.
    fn expands_too_far(&mut self, call: &Token, tokens: usize) -> bool {
        let too_far = self.s.expanded_tokens + tokens > limits::EXPANDED_TOKENS_MAX;
        if too_far {
            let max = limits::EXPANDED_TOKENS_MAX;
            self.limit(call.span, format!("macros expand to more than {max} tokens"));
        }
        too_far
    }

    pub(super) fn stringize(&mut self, tokens: &[Token]) -> Symbol {
        let mut text = String::from("\"");
        for (i, token) in tokens.iter().enumerate() {
            if i > 0 && token.space {
                text.push(' ');
            }
            for c in self.s.text(token).chars() {
                if matches!(token.kind, Kind::Str | Kind::Char | Kind::WideStr | Kind::WideChar)
                    && matches!(c, '"' | '\\')
                {
                    text.push('\\');
                }
                text.push(c);
            }
            if text.len() > limits::STRING_BYTES_MAX {
                break;
            }
        }
        text.push('"');
        // A long argument that is made a string again and again costs time like the tokens that it stands for.
        self.s.expanded_tokens += text.len() / 16;
        self.s.names.intern(&text)
    }

    /// Joins the last token of `out` with the first of `right`, and appends the rest.
    pub(super) fn paste(&mut self, call: &Token, out: &mut Vec<Token>, right: Vec<Token>) {
        let mut right = right.into_iter();
        if let (Some(left), Some(first)) = (out.last().copied(), right.next()) {
            let text = format!("{}{}", self.s.text(&left), self.s.text(&first));
            if text.len() > limits::STRING_BYTES_MAX {
                return self.limit(call.span, "a pasted token is too long".into());
            }
            self.s.expanded_tokens += text.len() / 16;
            let kind = match text.as_bytes() {
                [] => Kind::Other,
                [b, ..] if b.is_ascii_digit() => Kind::Number,
                [b'.', b, ..] if b.is_ascii_digit() => Kind::Number,
                [b'L', b'"', ..] => Kind::WideStr,
                [b'"', ..] => Kind::Str,
                [b'\'', ..] => Kind::Char,
                [b, ..] if b.is_ascii_alphabetic() || *b == b'_' => Kind::Ident,
                _ => Kind::Punct,
            };
            let text = self.s.names.intern(&text);
            out.pop();
            out.push(Token {
                kind,
                text,
                space: left.space,
                painted: false,
                line_start: false,
                span: call.span,
            });
        }
        out.extend(right);
    }

    /// Expands a list of tokens on its own, without reading on behind it.
    pub(super) fn expand_list(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        if self.lists >= limits::MACRO_DEPTH_MAX {
            let span = tokens.first().map_or(Span::default(), |t| t.span);
            let max = limits::MACRO_DEPTH_MAX;
            self.limit(span, format!("macro calls are nested deeper than {max}"));
            return Vec::new();
        }
        let outer = std::mem::take(&mut self.contexts);
        self.lists += 1;
        self.push_context(tokens, None);
        let mut out = Vec::new();
        loop {
            let token = self.expanded();
            if token.kind == Kind::Eof {
                break;
            }
            out.push(token);
        }
        while !self.contexts.is_empty() {
            self.pop_context();
        }
        self.lists -= 1;
        self.contexts = outer;
        out
    }

    pub(super) fn define(&mut self) {
        let mut tokens = self.line_tokens();
        let Some(name) = tokens.first().copied() else { return };
        if name.kind != Kind::Ident || name.text == self.known.defined {
            return self.error(Code::Directive, name.span, "`#define` needs a name");
        }
        // C headers of interfaces make structs of them; here they are what they are.
        if self.in_header() && self.s.text(&name) == "interface" {
            return;
        }
        let function = tokens.get(1).is_some_and(|t| !t.space && self.s.text(t) == "(");
        let (mut params, mut variadic) = (None, false);
        if function {
            let close = tokens.iter().position(|t| self.s.text(t) == ")");
            let Some(close) = close else {
                return self.error(Code::Directive, name.span, "the parameters of this macro have no `)`");
            };
            let mut list = Vec::new();
            for (i, token) in tokens[2..close].iter().enumerate() {
                match self.s.text(token) {
                    "..." => variadic = true,
                    "," if i % 2 == 1 => {}
                    _ if token.kind == Kind::Ident && i % 2 == 0 => list.push(token.text),
                    _ => {
                        return self.error(
                            Code::Directive,
                            token.span,
                            "a macro's parameters are names with commas between",
                        );
                    }
                }
            }
            params = Some(list);
            tokens.drain(..=close);
        } else {
            tokens.remove(0);
        }
        if let Some(bad) = tokens.iter().find(|t| t.kind == Kind::Unterminated).copied() {
            tokens.retain(|t| t.kind != Kind::Unterminated);
            if self.s.text(&bad).starts_with('"') {
                self.report_unterminated(&bad);
            }
        }
        for token in &mut tokens {
            token.line_start = false;
        }
        let found = Macro { params, variadic, body: tokens.into(), span: name.span };
        if let Some(old) = self.macros.get(&name.text) {
            let same = old.params == found.params
                && old.body.len() == found.body.len()
                && old.body.iter().zip(found.body.iter()).all(|(a, b)| a.text == b.text);
            if !same {
                let message = format!("the macro `{}` is defined anew", self.s.text(&name));
                let warning = Diagnostic::warning(Code::MacroRedefined, name.span, message);
                let warning = warning.note(old.span, "it was defined here");
                self.s.diags.push(warning);
            }
        }
        self.macros.insert(name.text, found.into());
    }
}
