//! A connection: requests come, answers go, each within its time.

use crate::desk::Desk;
use crate::site::{Files, Open, Upload};
use alloc::vec::Vec;
use http::Status;
use http::answer::{Answer, Body, Refusal, Site, answer, kept, refuse};
use http::request::{Method, Reading, Request, read};
use net::sockets::{Error, Result, Stream};
use rt::time;

/// How long a client may keep a connection without a request, in milliseconds.
const IDLE_MS: u64 = 15_000;

/// How long the head of a request may take from its first byte on, in milliseconds.
const HEAD_MS: u64 = 10_000;

/// How long a piece of an answer may take, in milliseconds.
const PIECE_MS: u64 = 10_000;

/// How long each of them may take while others wait for a thread, in milliseconds.
const PRESSED_MS: u64 = 2_000;

/// How long a client may go on to send behind its last answer, in milliseconds.
const UNREAD_MS: u64 = 1_000;

/// Bytes that it may send there.
const UNREAD_MAX: usize = 64 << 10;

/// How often it is looked whether others wait, in milliseconds.
const LOOK_MS: u64 = 250;

/// Bytes of a piece.
const PIECE: usize = 4096;

/// Bytes of a file that is kept, at most.
const BODY_MAX: u64 = 64 << 20;

/// Answer to who asks before it sends a body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A connection.
pub struct Connection<'a> {
    stream: Stream<'static>,
    desk: &'a Desk,
    /// Bytes that have come and are no part of a request yet.
    held: Vec<u8>,
}

/// Next wish of a client.
enum Next {
    Request(Request),
    Refused(Status),
    /// There is none.
    Over,
}

fn now_ms() -> u64 {
    time::now_ns() / 1_000_000
}

impl<'a> Connection<'a> {
    /// A connection from its beginning on.
    pub fn new(stream: Stream<'static>, desk: &'a Desk) -> Connection<'a> {
        Connection { stream, desk, held: Vec::new() }
    }

    /// Answers until somebody has enough.
    pub fn serve(mut self, files: &mut Files) -> Result<()> {
        loop {
            let answer = match self.next()? {
                Next::Request(mut request) => {
                    request.goes_on &= !self.desk.is_pressed();
                    match request.method {
                        Method::Put(len) => self.keep(&request, len, files)?,
                        _ => answer(&request, files),
                    }
                }
                Next::Refused(status) => refuse(status, files),
                Next::Over => return Ok(()),
            };
            let goes_on = answer.goes_on;
            self.send(answer, files)?;
            if !goes_on {
                return self.end();
            }
        }
    }

    fn next(&mut self) -> Result<Next> {
        let mut since_ms = now_ms();
        loop {
            let has_begun = !self.held.is_empty();
            if has_begun {
                match read(&self.held) {
                    Reading::Whole(request, len) => {
                        self.held.drain(..len);
                        return Ok(Next::Request(request));
                    }
                    Reading::Refused(status) => return Ok(Next::Refused(status)),
                    Reading::More => {}
                }
            }
            let patience_ms = if has_begun { HEAD_MS } else { IDLE_MS };
            let came = self.patiently(since_ms, patience_ms, |ms| self.stream.read(PIECE, ms));
            match came {
                Ok(bytes) if bytes.is_empty() => return Ok(Next::Over),
                Ok(bytes) => self.held.extend(bytes),
                Err(Error::TimedOut) if has_begun => return Ok(Next::Refused(Status::RequestTimeout)),
                Err(Error::TimedOut) => return Ok(Next::Over),
                Err(error) => return Err(error),
            }
            if !has_begun {
                since_ms = now_ms();
            }
        }
    }

    /// Keeps a body as a file. The file is the old one or the new one at each moment, and what the client hears of is on the disk.
    fn keep(&mut self, request: &Request, len: u64, files: &mut Files) -> Result<Answer<Open>> {
        if !files.is_writable() {
            return Ok(refuse(Status::MethodNotAllowed, files));
        }
        if len > BODY_MAX {
            return Ok(refuse(Status::ContentTooLarge, files));
        }
        let mut upload = match files.begin(&request.path) {
            Ok(upload) => upload,
            Err(why) => return Ok(kept(Err(why), false)),
        };
        if request.expects {
            self.write(CONTINUE)?;
        }
        match self.take(&mut upload, len) {
            Ok(Ok(())) => Ok(kept(files.finish(upload), request.goes_on)),
            Ok(Err(why)) => {
                files.abandon(upload);
                Ok(kept(Err(why), false))
            }
            Err(error) => {
                files.abandon(upload);
                match error {
                    Error::TimedOut => Ok(refuse(Status::RequestTimeout, files)),
                    error => Err(error),
                }
            }
        }
    }

    /// Takes a body, however the client cuts it. Each piece has its time, not each read: a client that sends byte by byte is slow.
    fn take(&mut self, upload: &mut Upload, mut left: u64) -> Result<core::result::Result<(), Refusal>> {
        let (mut since_ms, mut taken) = (now_ms(), 0);
        while left > 0 {
            if self.held.is_empty() {
                self.held = self.patiently(since_ms, PIECE_MS, |ms| self.stream.read(PIECE, ms))?;
                if self.held.is_empty() {
                    return Err(Error::Closed);
                }
            }
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(self.held.len());
            if let Err(why) = upload.write(&self.held[..now]) {
                return Ok(Err(why));
            }
            self.held.drain(..now);
            left -= now as u64;
            taken += now;
            if taken >= PIECE {
                (since_ms, taken) = (now_ms(), 0);
            }
        }
        Ok(Ok(()))
    }

    /// Does what may have to wait for the client, until its time is over: less of it if others wait.
    fn patiently<T>(
        &self,
        since_ms: u64,
        patience_ms: u64,
        mut act: impl FnMut(u64) -> Result<T>,
    ) -> Result<T> {
        loop {
            let patience_ms = if self.desk.is_pressed() { patience_ms.min(PRESSED_MS) } else { patience_ms };
            let left_ms = (since_ms + patience_ms).saturating_sub(now_ms());
            match act(left_ms.min(LOOK_MS)) {
                Err(Error::TimedOut) if left_ms > LOOK_MS => {}
                outcome => return outcome,
            }
        }
    }

    fn send(&self, answer: Answer<Open>, files: &mut Files) -> Result<()> {
        self.write(&answer.head)?;
        match answer.body {
            Body::Nothing => Ok(()),
            Body::Bytes(bytes) => self.write(&bytes),
            Body::File(mut open, len) => {
                let mut done = 0;
                while done < len {
                    let wanted = usize::try_from(len - done).unwrap_or(PIECE).min(PIECE);
                    // The head has said how long it is. If it is not, the client sees that the connection ends too early.
                    let piece = files.read(&mut open, done, wanted).ok_or(Error::Closed)?;
                    self.write(&piece)?;
                    done += piece.len() as u64;
                }
                Ok(())
            }
        }
    }

    /// Ends the connection behind an answer, and takes what the client still sends: where bytes are unread the end is a reset, by which the client
    /// may lose the answer (RFC 9112, 9.6).
    fn end(&self) -> Result<()> {
        self.stream.shutdown()?;
        let since_ms = now_ms();
        let mut taken = 0;
        while taken < UNREAD_MAX {
            let bytes = self.patiently(since_ms, UNREAD_MS, |ms| self.stream.read(PIECE, ms))?;
            if bytes.is_empty() {
                break;
            }
            taken += bytes.len();
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        for mut piece in bytes.chunks(PIECE) {
            let since_ms = now_ms();
            while !piece.is_empty() {
                let len = self.patiently(since_ms, PIECE_MS, |ms| self.stream.write_some(piece, ms))?;
                piece = piece.get(len..).unwrap_or_default();
            }
        }
        Ok(())
    }
}
