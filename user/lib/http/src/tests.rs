//! Tests with a site in memory, and with bytes that are not meant well.

mod client;
mod hostile;

use crate::answer::{Answer, Body, Found, Refusal, Site, answer, kept, refuse};
use crate::page::{Listed, kind_of, list};
use crate::part::{Parts, is_part};
use crate::path::Path;
use crate::request::{Method, Reading, Request, read};
use crate::{FIELDS_MAX, HEAD_MAX, Status};
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Files by their paths; directories are what files lie in.
#[derive(Default)]
struct Files {
    all: BTreeMap<Vec<u8>, &'static str>,
    is_broken: bool,
    is_writable: bool,
}

impl Files {
    fn of(files: &[(&str, &'static str)]) -> Files {
        let all = files.iter().map(|(path, text)| (path.as_bytes().to_vec(), *text)).collect();
        Files { all, ..Files::default() }
    }

    fn below(&self, path: &Path) -> Vec<Vec<u8>> {
        let top = if path.is_top() { Vec::new() } else { [path.bytes(), b"/".to_vec()].concat() };
        self.all.keys().filter_map(|name| name.strip_prefix(top.as_slice()).map(Vec::from)).collect()
    }
}

impl Site for Files {
    type File = &'static str;
    fn find(&mut self, path: &Path) -> Result<Found<&'static str>, Refusal> {
        if self.is_broken {
            return Err(Refusal::Unavailable);
        }
        match self.all.get(&path.bytes()) {
            Some(text) => Ok(Found::File(text, text.len() as u64)),
            None if !self.below(path).is_empty() => Ok(Found::Directory),
            None => Err(Refusal::NotFound),
        }
    }
    fn list(&mut self, path: &Path) -> Result<Vec<Listed>, Refusal> {
        let mut all: Vec<Listed> = Vec::new();
        for rest in self.below(path) {
            let mut parts = rest.splitn(2, |&byte| byte == b'/');
            let name = parts.next().unwrap().to_vec();
            let entry = Listed { name, is_directory: parts.next().is_some() };
            if !all.contains(&entry) {
                all.push(entry);
            }
        }
        Ok(all)
    }
    fn is_writable(&self) -> bool {
        self.is_writable
    }
    fn delete(&mut self, path: &Path) -> Result<(), Refusal> {
        self.all.remove(&path.bytes()).map(drop).ok_or(Refusal::NotFound)
    }
}

/// The whole of an answer, as it is sent.
fn sent(answer: Answer<&'static str>) -> String {
    let mut all = answer.head;
    match answer.body {
        Body::Nothing => {}
        Body::Bytes(bytes) => all.extend(bytes),
        Body::File(text, len) => all.extend(&text.as_bytes()[..len as usize]),
    }
    String::from_utf8(all).unwrap()
}

fn ask(files: &mut Files, text: &str) -> String {
    match read(text.as_bytes()) {
        Reading::More => "more".into(),
        Reading::Whole(request, _) => sent(answer(&request, files)),
        Reading::Refused(status) => sent(refuse(status, files)),
    }
}

fn get(files: &mut Files, target: &str) -> String {
    ask(files, &format!("GET {target} HTTP/1.1\r\nHost: tern\r\n\r\n"))
}

fn whole(text: &str) -> (Request, usize) {
    match read(text.as_bytes()) {
        Reading::Whole(request, len) => (request, len),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn a_file_is_answered_whole() {
    let mut files = Files::of(&[("a.txt", "some text"), ("sub/b", "")]);
    assert_eq!(
        get(&mut files, "/a.txt"),
        "HTTP/1.1 200 OK\r\nServer: Tern\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 9\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: keep-alive\r\n\r\nsome text"
    );
    assert!(get(&mut files, "/sub/b?query=1").contains("Content-Length: 0\r\n"));
    assert!(get(&mut files, "http://tern:8080/a.txt").ends_with("\r\n\r\nsome text"));
    let head = ask(&mut files, "HEAD /a.txt HTTP/1.1\r\nHost: tern\r\n\r\n");
    assert_eq!(head + "some text", get(&mut files, "/a.txt"));
}

#[test]
fn a_directory_is_its_index_or_a_list() {
    let mut files =
        Files::of(&[("with/index.html", "<p>"), ("with/x", ""), ("a b/<&>\".txt", ""), ("a b/sub/y", "")]);
    assert!(get(&mut files, "/with/").ends_with("\r\n\r\n<p>"));
    assert!(get(&mut files, "/with/").contains("text/html"));
    let moved = get(&mut files, "/a%20b");
    assert!(moved.starts_with("HTTP/1.1 301 Moved Permanently\r\n"), "{moved}");
    assert!(moved.contains("\r\nLocation: /a%20b/\r\n"), "{moved}");
    let listed = get(&mut files, "/a%20b/");
    for part in [
        "<title>/a b/</title>",
        "<li><a href=\"../\">../</a></li>\n<li><a href=\"./sub/\">sub/</a></li>\n\
         <li><a href=\"./%3C%26%3E%22.txt\">&lt;&amp;&gt;&quot;.txt</a></li>\n</ul>",
    ] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    assert!(!get(&mut files, "/").contains("../"));
}

#[test]
fn refusals_say_why() {
    let mut files = Files::of(&[("a", "x")]);
    let long = format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", "a".repeat(HEAD_MAX));
    let many = format!("GET /a HTTP/1.1\r\nHost: t\r\n{}\r\n", "X: y\r\n".repeat(FIELDS_MAX));
    let name = format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", "a".repeat(256));
    for (text, status) in [
        ("GET /b HTTP/1.1\r\nHost: t\r\n\r\n", "404 Not Found"),
        ("GET /a/ HTTP/1.1\r\nHost: t\r\n\r\n", "404 Not Found"),
        (&name, "404 Not Found"),
        ("POST /a HTTP/1.1\r\nHost: t\r\n\r\n", "405 Method Not Allowed"),
        ("BREW /a HTTP/1.1\r\nHost: t\r\n\r\n", "405 Method Not Allowed"),
        ("GET /a HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET /a HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n", "400 Bad Request"),
        ("GET a HTTP/1.1\r\nHost: t\r\n\r\n", "400 Bad Request"),
        ("GET * HTTP/1.1\r\nHost: t\r\n\r\n", "400 Bad Request"),
        ("GET ftp://t/a HTTP/1.1\r\nHost: t\r\n\r\n", "400 Bad Request"),
        ("GET /%4 HTTP/1.1\r\nHost: t\r\n\r\n", "400 Bad Request"),
        ("GET /%zz HTTP/1.1\r\nHost: t\r\n\r\n", "400 Bad Request"),
        ("GET /%00 HTTP/1.1\r\nHost: t\r\n\r\n", "400 Bad Request"),
        ("GET /a%2Fb HTTP/1.1\r\nHost: t\r\n\r\n", "400 Bad Request"),
        ("GET /a\r\n\r\n", "400 Bad Request"),
        ("GET /a HTTP/2.0\r\n\r\n", "505 HTTP Version Not Supported"),
        (&long, "431 Request Header Fields Too Large"),
        (&many, "431 Request Header Fields Too Large"),
        ("\0\0\0\0", "400 Bad Request"),
    ] {
        let told = ask(&mut files, text);
        assert!(told.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{text:?}: {told}");
    }
    assert!(ask(&mut files, "POST /a HTTP/1.1\r\nHost: t\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
    assert!(sent(refuse(Status::RequestTimeout, &files)).starts_with("HTTP/1.1 408 Request Timeout\r\n"));
    files.is_broken = true;
    assert!(get(&mut files, "/a").starts_with("HTTP/1.1 503 "));
}

#[test]
fn files_are_kept_and_deleted_where_that_is_allowed() {
    let put = |fields: &str| read(format!("PUT /a HTTP/1.1\r\nHost: t\r\n{fields}\r\nbody").as_bytes());
    let refused = |fields: &str, status| assert_eq!(put(fields), Reading::Refused(status), "{fields:?}");
    for (fields, len, expects, goes_on) in [
        ("Content-Length: 4\r\n", 4, false, true),
        ("content-length:  0 \r\nConnection: close\r\n", 0, false, false),
        ("Content-Length: 18446744073709551615\r\nExpect: 100-Continue\r\n", u64::MAX, true, true),
    ] {
        let Reading::Whole(request, taken) = put(fields) else { panic!("{fields:?}") };
        assert_eq!((request.method, request.expects, request.goes_on), (Method::Put(len), expects, goes_on));
        assert_eq!(taken, "PUT /a HTTP/1.1\r\nHost: t\r\n\r\n".len() + fields.len(), "the body is left");
    }
    refused("", Status::LengthRequired);
    refused("Content-Length: 4\r\nContent-Range: bytes 4-7/8\r\n", Status::BadRequest);
    refused("Content-Length: 4\r\nIf-None-Match: *\r\n", Status::PreconditionFailed);
    refused("Transfer-Encoding: chunked\r\n", Status::LengthRequired);
    refused("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", Status::LengthRequired);
    refused("Content-Length: 4\r\nContent-Length: 4\r\n", Status::LengthRequired);
    for len in ["", "+4", "-1", "4, 4", "0x4", "18446744073709551616", "\u{664}"] {
        refused(&format!("Content-Length: {len}\r\n"), Status::BadRequest);
    }
    let mut files = Files::of(&[("a", "x")]);
    let delete = "DELETE /a HTTP/1.1\r\nHost: t\r\n\r\n";
    assert!(ask(&mut files, delete).contains("405 Method Not Allowed\r\n"));
    files.is_writable = true;
    let done = "HTTP/1.1 204 No Content\r\nServer: Tern\r\nConnection: keep-alive\r\n\r\n";
    assert_eq!(ask(&mut files, delete), done);
    assert!(ask(&mut files, delete).starts_with("HTTP/1.1 404 "));
    assert!(
        ask(&mut files, "POST / HTTP/1.1\r\nHost: t\r\n\r\n").contains("Allow: GET, HEAD, PUT, DELETE\r\n")
    );
    assert_eq!(sent(kept(Ok(false), true)), done);
    assert!(sent(kept(Ok(true), true)).starts_with("HTTP/1.1 201 Created\r\n"));
    for (why, status) in [(Refusal::Full, "507 Insufficient Storage"), (Refusal::Conflict, "409 Conflict")] {
        let told = sent(kept(Err(why), true));
        assert!(told.starts_with(&format!("HTTP/1.1 {status}\r\n")) && told.contains("Connection: close"));
    }
}

#[test]
fn connections_go_on_unless_somebody_says_otherwise() {
    for (head, goes_on) in [
        ("GET / HTTP/1.1\r\nHost: t\r\n\r\n", true),
        ("GET / HTTP/1.0\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: t\r\nconnection: TE , Close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n", true),
        // Nothing of the body that would follow is taken for a request.
        ("GET / HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", false),
    ] {
        assert_eq!(whole(head).0.goes_on, goes_on, "{head:?}");
    }
}

/// However a client cuts what it sends, and how many requests it sends at once.
#[test]
fn requests_are_cut_anywhere() {
    let text = "\r\nGET /one HTTP/1.1\r\nHost: t\r\n\r\nHEAD /two HTTP/1.1\r\nHost: t\r\n\r\n";
    let (first, len) = whole(text);
    assert_eq!((first.path.address().as_str(), first.method), ("/one", Method::Get));
    for end in 0..len {
        assert_eq!(read(&text.as_bytes()[..end]), Reading::More, "{end} bytes");
    }
    for end in len..text.len() {
        assert_eq!(read(&text.as_bytes()[..end]), Reading::Whole(first.clone(), len));
    }
    let (second, rest) = whole(&text[len..]);
    assert_eq!(
        (second.path.address().as_str(), second.method, len + rest),
        ("/two", Method::Head, text.len())
    );
}

#[test]
fn no_path_leads_out() {
    for (target, bytes, is_directory) in [
        ("/", ".", true),
        ("//", ".", true),
        ("/..", ".", true),
        ("/../../etc/passwd", "etc/passwd", false),
        ("/a/../../b", "b", false),
        ("/a/%2e%2E/%2e%2e/b", "b", false),
        ("/a/.%2e/b/", "b", true),
        ("/a/./b//c/.", "a/b/c", true),
        ("/a/b/..", "a", true),
        ("/...", "...", false),
        ("/a\\..\\b", "a\\..\\b", false),
        ("/%C3%BC", "ü", false),
        ("/a+b;c=1", "a+b;c=1", false),
        ("/a?../../b", "a", false),
        ("http://t", ".", true),
        ("http://t?x", ".", true),
        ("HTTPS://t/../a", "a", false),
    ] {
        let path = Path::of(target).unwrap();
        assert_eq!(
            (path.bytes().as_slice(), path.is_directory),
            (bytes.as_bytes(), is_directory),
            "{target}"
        );
        // Its own address leads there, too.
        assert_eq!(Path::of(&path.address()), Ok(path), "{target}");
    }
}

#[test]
fn kinds_are_known_by_the_ends_of_names() {
    for (name, kind) in [
        ("index.html", "text/html; charset=utf-8"),
        ("A.PNG", "image/png"),
        ("archive.tar.gz", "application/gzip"),
        ("html", "application/octet-stream"),
        ("a.", "application/octet-stream"),
        (".html", "text/html; charset=utf-8"),
    ] {
        assert_eq!(kind_of(name.as_bytes()), kind, "{name}");
    }
}

/// No name in a list means anything but itself, and its link leads to it.
#[test]
fn every_byte_is_listed_safely() {
    for byte in (1..=255).filter(|&byte| byte != b'/') {
        let name = [b'x', byte];
        let page = list(&Path::default(), [Listed { name: name.to_vec(), is_directory: false }].into());
        let page = String::from_utf8(page).unwrap();
        let link = page.split("href=\"./").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(Path::of(&format!("/{link}")).unwrap().bytes(), name);
        let shown = page.split("\">").nth(1).unwrap().split("</a>").next().unwrap();
        assert!(!shown.contains(['<', '>', '"', '\'']), "{shown:?}");
    }
}

/// Names of servers at the same port before this one, and of nobody else.
#[test]
fn leftovers_are_known_by_their_names() {
    let parts = Parts::new(80, 0xbeef);
    let own = parts.name(3);
    assert_eq!(own, ".part-80-000000000000beef-3");
    for (name, is_earlier) in [
        (Parts::new(80, 0).name(0), true),
        (Parts::new(80, u64::MAX).name(15), true),
        (own.clone(), false),
        (parts.name(4), false),
        (Parts::new(8, 1).name(0), false),
        (Parts::new(8080, 1).name(0), false),
        (".part-80-3".into(), false),
        (".part-80-000000000000beee".into(), false),
        (".part-80-000000000000beee-".into(), false),
        (".part-80-000000000000beee-3".into(), true),
        (".part-80-000000000000beee-03".into(), false),
        (".part-80-000000000000beee-3-".into(), false),
        (".part-80-000000000000beee-3-x".into(), false),
        (".part-80-000000000000BEEE-3".into(), false),
        (".part-80-+00000000000beee-3".into(), false),
        (".part-080-000000000000beee-3".into(), false),
        (".part-notes".into(), false),
        ("part-80-000000000000beee-3".into(), false),
        ("x.part-80-000000000000beee-3".into(), false),
        (String::new(), false),
    ] {
        assert_eq!(parts.is_earlier(name.as_bytes()), is_earlier, "{name}");
        assert!(!is_earlier || is_part(name.as_bytes()), "{name}");
    }
    assert!(!parts.is_earlier(&[b".part-80-".as_slice(), &[0xff; 16]].concat()));
}
