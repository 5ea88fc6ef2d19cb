//! The frame of a message: headers, an empty line, so many bytes of JSON.
//!
//! Own code for reading, since the length that a client writes must not decide how much memory is asked for.

use std::io::{BufRead, Read};

use lsp_server::Message;

/// Bytes of a message. Twice the most text that quill takes, since JSON escapes some of it.
const MESSAGE_BYTES_MAX: u64 = 2 * quill::limits::SOURCE_BYTES_MAX as u64;
/// Bytes of a header line.
const HEADER_BYTES_MAX: u64 = 1024;
/// Header lines of a message; the protocol has two.
const HEADERS_MAX: usize = 16;

/// The next message; `None` at the end of the input.
pub fn read(input: &mut impl BufRead) -> Result<Option<Message>, String> {
    let Some(length) = read_headers(input)? else { return Ok(None) };
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body).map_err(|e| format!("cannot read a message: {e}"))?;
    if body.len() as u64 != length {
        return Err(format!("the input ends within a message: {} of {length} bytes", body.len()));
    }
    let message = serde_json::from_slice(&body);
    message.map(Some).map_err(|e| format!("malformed message: no request, response or notification: {e}"))
}

/// The length that the headers say; `None` if the input ends before them.
fn read_headers(input: &mut impl BufRead) -> Result<Option<u64>, String> {
    let mut length = None;
    for number in 0..HEADERS_MAX {
        let mut line = Vec::new();
        let limited = input.take(HEADER_BYTES_MAX).read_until(b'\n', &mut line);
        limited.map_err(|e| format!("cannot read a header: {e}"))?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let Some(line) = line.strip_suffix("\r\n") else {
            return Err(format!("malformed header: `{}`", line.escape_debug()));
        };
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| "malformed header: there is no Content-Length".into());
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(format!("malformed header: `{}`", line.escape_debug()));
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            let number = value.trim().parse().ok().filter(|&n| n <= MESSAGE_BYTES_MAX);
            let Some(number) = number else {
                let most = MESSAGE_BYTES_MAX;
                return Err(format!(
                    "malformed header: Content-Length is a number up to {most}, not `{}`",
                    value.trim()
                ));
            };
            length = Some(number);
        }
    }
    Err("malformed header: there is no empty line behind the headers".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(input: &[u8], why: &str) {
        let error = read(&mut &*input).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn frames() {
        assert!(read(&mut &b""[..]).unwrap().is_none());
        let exit = b"Content-Type: x\r\ncontent-length: 17\r\n\r\n{\"method\":\"exit\"}";
        assert!(matches!(read(&mut &exit[..]), Ok(Some(Message::Notification(n))) if n.method == "exit"));
        fails(b"hello\r\n", "malformed header: `hello`");
        fails(b"Content-Length: 5\n", "malformed header");
        fails(b"Content-Length: 99999999999999999999\r\n\r\n", "Content-Length is a number up to");
        fails(b"Content-Length: 1000000000000\r\n\r\n", "Content-Length is a number up to");
        fails(b"Content-Type: x\r\n\r\n", "there is no Content-Length");
        fails(b"Content-Length: 9\r\n\r\n{}", "the input ends within a message");
        fails(b"Content-Length: 2\r\n\r\n{}", "malformed message");
        fails(b"Content-Length: 2\r\n\r\n{[", "malformed message");
        fails(&b"X: y\r\n".repeat(40), "no empty line");
        fails(&vec![b'x'; 100_000], "malformed header");
        let deep = [b"Content-Length: 90000\r\n\r\n".to_vec(), vec![b'['; 90_000]].concat();
        fails(&deep, "malformed message");
    }
}
