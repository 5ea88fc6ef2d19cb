//! `interface!`: stubs of an interface file, made where a program wants them, when it is compiled.
//!
//! quill is called by the compiler, so a program needs no build script and no list of files for its interfaces, and who changes a file
//! compiles the programs anew that use it, and no others. Programs have the macro from the runtime, as `rt::interface!`.
//!
//! The surprise: generated code names the crate `stub`, and programs depend on `rt` alone. So each `::stub` becomes `::rt::api::stub`.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use quill::build::Build;
use quill::kernel::{KernelPart, TernDoor, TernDoorPlain, TernIpc};
use std::env;
use std::path::{Path, PathBuf};

/// Makes clients and servers of an interface file, and puts them where it stands, in modules with the names that the file has.
///
/// `rt::interface!(ipc, "counter.idl");` is for threads that serve by ipc, `rt::interface!(door, "tally.idl");` for objects behind doors. With
/// `door_plain` these have stubs of which nothing is optimised, to be measured: both sides have to have them. The file's path begins at the program's own folder; another program's is `"../counter/counter.idl"`.
///
/// # Errors
///
/// What is wrong with the file, quill says in the compiler's error.
#[proc_macro]
pub fn interface(input: TokenStream) -> TokenStream {
    match read(input).and_then(|(kernel, file)| stubs(kernel, &file)) {
        Ok(stubs) => stubs,
        Err(why) => {
            let why = Group::new(Delimiter::Parenthesis, TokenTree::from(Literal::string(&why)).into());
            let call: [TokenTree; 4] = [
                Ident::new("compile_error", Span::call_site()).into(),
                Punct::new('!', Spacing::Alone).into(),
                why.into(),
                Punct::new(';', Spacing::Alone).into(),
            ];
            call.into_iter().collect()
        }
    }
}

/// Reads what carries the messages, and the file.
fn read(input: TokenStream) -> Result<(&'static dyn KernelPart, PathBuf), String> {
    const USAGE: &str = "expected `ipc`, `door` or `door_plain`, a comma, and the path of an interface file: \
                         (ipc, \"counter.idl\")";
    let tokens: Vec<String> = input.into_iter().map(|token| token.to_string()).collect();
    let [way, comma, file] = tokens.as_slice() else { return Err(USAGE.into()) };
    let file = file.strip_prefix('"').and_then(|file| file.strip_suffix('"'));
    let kernel: &'static dyn KernelPart = match way.as_str() {
        "ipc" => &TernIpc,
        "door" => &TernDoor,
        "door_plain" => &TernDoorPlain,
        _ => return Err(USAGE.into()),
    };
    let folder = env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo does not say where the program is")?;
    match file.filter(|file| comma == "," && !file.contains('\\')) {
        Some(file) => Ok((kernel, Path::new(&folder).join(file))),
        None => Err(USAGE.into()),
    }
}

/// The stubs, and what tells the compiler which files they were made from.
fn stubs(kernel: &'static dyn KernelPart, file: &Path) -> Result<TokenStream, String> {
    let (text, sources, messages) = Build::new().kernel(kernel).rust_text(file)?;
    eprint!("{messages}");
    let parsed = |text: &str| text.parse::<TokenStream>().map_err(|error| error.to_string());
    // What the file does not tell of its modules, nobody can write here.
    let text = text.replace("\n#[allow(", "\n#[allow(missing_docs, ");
    let mut all = with_path_of_stub(parsed(&text)?);
    for source in sources {
        all.extend(parsed(&format!("const _: &[u8] = ::core::include_bytes!({source:?});"))?);
    }
    Ok(all)
}

/// Replaces each path that begins with `::stub`.
fn with_path_of_stub(tokens: TokenStream) -> TokenStream {
    let mut all: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), with_path_of_stub(group.stream()));
                inner.set_span(group.span());
                all.push(inner.into());
            }
            TokenTree::Ident(ident) if ident.to_string() == "stub" && begins_path(&all) => {
                all.extend("rt::api::stub".parse::<TokenStream>().into_iter().flatten());
            }
            other => all.push(other),
        }
    }
    all.into_iter().collect()
}

/// Whether the last tokens are a `::` that begins a path, and does not go on with one. (Behind a `>` it begins one: what stubs have behind
/// the parameters of a type is never called `stub`.)
fn begins_path(tokens: &[TokenTree]) -> bool {
    let is_colon =
        |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    let mut from_end = tokens.iter().rev();
    is_colon(from_end.next())
        && is_colon(from_end.next())
        && match from_end.next() {
            Some(TokenTree::Ident(word)) => WORDS.contains(&word.to_string().as_str()),
            _ => true,
        }
}

/// Words before a path that are not a part of it: the keywords, but for those that a path can have.
const WORDS: [&str; 20] = [
    "as", "break", "const", "dyn", "else", "for", "if", "impl", "in", "let", "loop", "match", "move", "mut",
    "ref", "return", "static", "use", "where", "while",
];
