//! Clients read addresses, and answers that are cut anywhere.

use crate::reply::{Fault, Reply};
use crate::url::Url;
use std::format;
use std::string::String;
use std::vec::Vec;

#[test]
fn addresses_are_read() {
    for (text, host, port, line) in [
        ("http://a", "a", 80, "GET / HTTP/1.1\r\nHost: a\r\n"),
        ("HTTP://a.b:8080/c?d#e", "a.b", 8080, "GET /c?d HTTP/1.1\r\nHost: a.b:8080\r\n"),
        ("http://127.0.0.1?x", "127.0.0.1", 80, "GET /?x HTTP/1.1\r\nHost: 127.0.0.1\r\n"),
        ("http://[::1]:81/", "::1", 81, "GET / HTTP/1.1\r\nHost: [::1]:81\r\n"),
    ] {
        let url = Url::parse(text).unwrap_or_else(|| panic!("{text}"));
        let request = String::from_utf8(url.request()).unwrap();
        assert_eq!((url.host.as_str(), url.port, request.starts_with(line)), (host, port, true), "{request}");
    }
    for text in [
        "a",
        "https://a",
        "http://",
        "http://:80",
        "http://a:0",
        "http://a:x",
        "http://u@a",
        "http://[::1",
        "http://[::1]x",
        "http://a/\r\nX: y",
        "http://a/ b",
    ] {
        assert_eq!(Url::parse(text), None, "{text}");
    }
}

/// Reads an answer in pieces of every size: the code and the body, or what is wrong with it.
fn read(answer: &str) -> Result<(u16, String), Fault> {
    let mut outcomes = (1..=answer.len()).map(|size| {
        let (mut reply, mut body) = (Reply::default(), Vec::new());
        for piece in answer.as_bytes().chunks(size) {
            reply.push(piece, &mut body)?;
        }
        let code = reply.code();
        reply.end()?;
        Ok((code.unwrap(), String::from_utf8(body).unwrap()))
    });
    let first = outcomes.next().unwrap();
    assert!(outcomes.all(|other| other == first), "{answer:?}");
    first
}

#[test]
fn answers_say_where_they_end() {
    let good = |code, body: &str| Ok((code, body.into()));
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", good(200, "abc")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nabc", good(200, "")),
        ("HTTP/1.0 404 No\r\n\r\nabc", good(404, "abc")),
        ("HTTP/1.1 204 No Content\r\n\r\nabc", good(204, "")),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", good(200, "x")),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\nmore",
            good(200, "abc0123456789"),
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", good(200, "abc")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", Err(Fault::Cut)),
        ("HTTP/1.1 200 OK\r\n", Err(Fault::Cut)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", Err(Fault::Cut)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", Err(Fault::Malformed)),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", Err(Fault::Malformed)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Err(Fault::Malformed)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", Err(Fault::Malformed)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", Err(Fault::Malformed)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n", Err(Fault::Malformed)),
        ("SSH-2.0-x\r\n", Err(Fault::Malformed)),
    ] {
        assert_eq!(read(answer), expected, "{answer:?}");
    }
}

#[test]
fn heads_and_lines_have_limits() {
    let mut body = Vec::new();
    let long = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(crate::HEAD_MAX));
    assert_eq!(Reply::default().push(long.as_bytes(), &mut body), Err(Fault::TooLong));
    let mut reply = Reply::default();
    reply.push(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &mut body).unwrap();
    assert_eq!(reply.push(&[b'1'; 5000], &mut body), Err(Fault::TooLong));
}
