//! The conversation: how it begins and ends, and what becomes of messages that are none.

mod client;

use client::{Client, Scratch, golden, place};
use serde_json::{Value, json};

const A: &str = "file:///none/a.idl";

#[test]
fn begins_and_ends() {
    let mut client = Client::silent();
    assert_eq!(client.refused("textDocument/hover", place(A, [0, 0])), -32002);
    assert_eq!(client.refused("shutdown", Value::Null), -32002);
    assert_eq!(client.refused("initialize", json!({ "capabilities": 3 })), -32602);
    client.ask("initialize", json!({ "capabilities": {} }));
    assert_eq!(client.refused("initialize", json!({ "capabilities": {} })), -32600);
    client.ask("shutdown", Value::Null);
    assert_eq!(client.refused("textDocument/hover", place(A, [0, 0])), -32600);
    client.notify("exit", Value::Null);
    assert_eq!(client.finish(), (Some(0), String::new()));
}

#[test]
fn ends_without_shutdown() {
    let mut client = Client::new(json!({}));
    client.notify("exit", Value::Null);
    assert_eq!(client.finish().0, Some(1));
    assert_eq!(Client::new(json!({})).finish().0, Some(1));
    assert_eq!(Client::silent().finish().0, Some(1));
}

#[test]
fn refuses_what_it_does_not_know() {
    let mut client = Client::new(json!({}));
    assert_eq!(client.refused("textDocument/rename", json!({})), -32601);
    assert_eq!(client.refused("$/unknown", Value::Null), -32601);
    assert_eq!(client.refused("textDocument/hover", json!({ "x": 1 })), -32602);
    assert_eq!(client.refused("textDocument/hover", place(A, [0, 0])), -32602);
    // Notifications have no answer.
    client.notify("$/cancelRequest", json!({ "id": 77 }));
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": A, "version": 1 }, "contentChanges": [] }),
    );
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": A } }));
    client.end();
}

#[test]
fn malformed_notifications_have_no_effect() {
    let mut client = Client::new(json!({}));
    client.notify("textDocument/didOpen", json!([1, 2]));
    client.notify(
        "textDocument/didOpen",
        json!({ "textDocument": { "uri": "", "languageId": "idl", "version": 1 } }),
    );
    client.ask("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    let (code, errors) = client.finish();
    assert_eq!(code, Some(0));
    assert!(errors.contains("`textDocument/didOpen` has no effect"), "{errors}");
}

#[test]
fn ends_at_malformed_messages() {
    let malformed: [(&[u8], &str); 6] = [
        (b"hello\r\n\r\n", "malformed header: `hello"),
        (b"Content-Length: x\r\n\r\n", "Content-Length is a number"),
        (b"Content-Length: 4611686018427387904\r\n\r\n", "Content-Length is a number"),
        (b"Content-Length: 2\r\n\r\n[]", "malformed message"),
        (b"Content-Length: 3\r\n\r\n\xff\xfe\xfd", "malformed message"),
        (b"Content-Length: 10\r\n\r\n{}", "the input ends within a message: 2 of 10 bytes"),
    ];
    for (bytes, why) in malformed {
        let mut client = Client::new(json!({}));
        client.raw(bytes);
        let (code, errors) = client.finish();
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.starts_with("error: ") && errors.contains(why), "{errors}");
    }
}

#[test]
fn options_that_make_no_sense_are_told() {
    let wrong = [
        (json!({ "kernel": "mach" }), "there is no kernel part `mach`; there are: linux, tern-ipc"),
        (json!({ "kernels": "linux" }), "unknown field `kernels`"),
        (json!({ "dialect": "french" }), "corba or dce"),
        (json!(7), "initializationOptions"),
    ];
    for (options, why) in wrong {
        let mut client = Client::new(options);
        assert_eq!(client.check(A, "interface I { void f(); };"), [""; 0]);
        let note = client.notes.iter().find(|n| n.method == "window/showMessage").unwrap();
        assert!(note.params["message"].as_str().unwrap().contains(why), "{note:?}");
        client.end();
    }
}

/// Texts that are being typed: after each piece the server answers all it can be asked, and in the end finds nothing wrong.
#[test]
fn half_typed_text() {
    for (name, step) in
        [("mail.idl", 7), ("ledger.idl", 11), ("templates.idl", 13), ("names.idl", 17), ("parcel.idl", 19)]
    {
        let text = golden(name);
        let scratch = Scratch::new(name);
        let uri = scratch.uri(name);
        let mut client = Client::new(json!({}));
        client.open(&uri, "");
        let mut version = 1;
        for end in (0..text.len()).step_by(step).chain([text.len()]).filter(|&end| text.is_char_boundary(end))
        {
            version += 1;
            let typed = &text[..end];
            client.change(&uri, version, typed);
            let line = typed.matches('\n').count() as u32;
            let character = typed.rsplit('\n').next().unwrap().encode_utf16().count() as u32;
            client.hover(&uri, [line, character]);
            client.definition(&uri, [line, character.saturating_sub(1)]);
            client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
            let found = client.diagnostics(&uri, version);
            if end == text.len() {
                let errors: Vec<&Value> = found.iter().filter(|d| d["severity"] == 1).collect();
                assert!(errors.is_empty(), "{name}: {errors:?}");
            }
            client.notes.clear();
        }
        client.end();
    }
}

/// Brackets and words in disorder, with names at their ends and in their middle.
#[test]
fn strange_text() {
    let deep = "interface I{struct S{".repeat(3000);
    let loops = "interface A:B{}; interface B:A{}; interface C:C::C{ C::C::x f(); A::q g(); };";
    let one_line = "/*ä𝄞*/const long X=1;".repeat(5000);
    let texts = [
        "}}}};;;{{{",
        "::::A::::B",
        "typedef",
        "typedef ;",
        "const = ;",
        "enum { , , };",
        "enum E { a = , b } ;",
        "@",
        "@ a :: (",
        "[[[",
        "struct { long",
        "attribute ;",
        "readonly",
        "union U switch (long) { case 1: case 2",
        "import \"",
        "#include \"",
        "#include <",
        "#define X X\nX X X",
        "\u{feff}interface Ä { void 𝄞(); };",
        "import \"a.idl\", ; [",
        "\r\r\r\n\n}",
        "\0\0",
        loops,
        &deep,
        &one_line,
    ];
    let mut client = Client::new(json!({}));
    for (version, text) in (2..).zip(texts) {
        if version == 2 {
            client.open(A, text);
        }
        client.change(A, version, text);
        for at in [[0, 0], [0, 5], [0, 12], [0, 60], [1, 2], [99, 99], [u32::MAX, u32::MAX]] {
            client.hover(A, at);
            client.definition(A, at);
        }
        client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": A } }));
        client.diagnostics(A, version);
        client.notes.clear();
    }
    client.end();
}
