//! Client and server in Rust whose instructions `count_calls.c` counts. The interface stands in `sockets.rs`.

mod stubs {
    include!("desk.rs");
}

use std::ffi::{c_char, c_int, c_void};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;

use stubs::Desk;
use stubs::rt::{self, Failure};

unsafe extern "C" {
    safe fn begins();
    safe fn ends();
}

/// A connection whose two functions a debugger finds: they are no part of their callers.
struct Known(UnixStream);

#[inline(never)]
fn receive(from: &mut UnixStream, bytes: &mut [u8]) -> io::Result<usize> {
    from.read(bytes)
}

#[inline(never)]
fn send(to: &mut UnixStream, bytes: &[u8]) -> io::Result<usize> {
    to.write(bytes)
}

impl Read for Known {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        receive(&mut self.0, bytes)
    }
}

impl Write for Known {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send(&mut self.0, bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[unsafe(no_mangle)]
extern "C" fn sender() -> *const c_void {
    send as *const c_void
}

#[unsafe(no_mangle)]
extern "C" fn receiver() -> *const c_void {
    receive as *const c_void
}

#[unsafe(no_mangle)]
extern "C" fn method_name(method: c_int) -> *const c_char {
    let names = [c"add", c"echo", c"turn", c"both"];
    names.get(method as usize).map_or(std::ptr::null(), |name| name.as_ptr())
}

struct Clerk;

impl Desk::Server for Clerk {
    fn add(&mut self, a: i32, b: i32) -> Result<i32, Failure> {
        Ok(a + b)
    }
    fn echo(&mut self, s: &str) -> Result<String, Failure> {
        Ok(s.to_owned())
    }
    fn turn(&mut self, b: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(b.to_vec())
    }
    fn both(&mut self, n: &[String]) -> Result<Vec<String>, Failure> {
        Ok(n.to_vec())
    }
    fn note(&mut self, _: i32) -> Result<(), Failure> {
        Ok(())
    }
    fn spent(&mut self) -> Result<(i32, i32, i32), Failure> {
        Ok((0, 0, 0))
    }
}

/// The end of a socket that this process has been given.
fn connection(socket: c_int) -> Known {
    // SAFETY: nobody else here has this end.
    Known(unsafe { UnixStream::from_raw_fd(socket) })
}

#[unsafe(no_mangle)]
extern "C" fn run_server(socket: c_int) {
    let _ = rt::serve(&mut connection(socket), |label, body| Desk::dispatch(&mut Clerk, label, body));
}

/// Calls some times, each time between two marks.
fn calls<T>(mut call: impl FnMut() -> Result<T, Failure>) {
    for _ in 0..5 {
        begins();
        let answer = call();
        ends();
        black_box(answer.unwrap());
    }
}

#[unsafe(no_mangle)]
extern "C" fn run_client(method: c_int, socket: c_int) {
    let mut client = Desk::Client { transport: connection(socket) };
    let (text, bytes) = ("x".repeat(100), [0u8; 1000]);
    let names = ["one", "two", "three"].map(str::to_owned);
    match method {
        0 => calls(|| client.add(black_box(3), black_box(4))),
        1 => calls(|| client.echo(&text)),
        2 => calls(|| client.turn(&bytes)),
        _ => calls(|| client.both(&names)),
    }
}
