//! The way to a server, which clients in Rust share.

use std::os::unix::net::UnixStream;

/// Connects to a server that may not have begun yet.
pub fn connect(path: &str) -> UnixStream {
    for _ in 0..1000 {
        if let Ok(stream) = UnixStream::connect(path) {
            return stream;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("nobody serves {path}");
}
