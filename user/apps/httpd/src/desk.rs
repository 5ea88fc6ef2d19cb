//! Listener that all threads share, and the number of those that have nothing to do.

use crate::connection::Connection;
use crate::site::{Files, Keeping};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use http::part::Parts;
use net::sockets::{Error, FOREVER, Listener, Net, Result, Stream};
use rt::random::{self, Generator};
use rt::sync::Mutex;
use rt::time;

/// Connections that are kept until there is a thread for them.
const BACKLOG: u16 = 8;

/// How long to wait before something is tried again that others have to make possible.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a port that is in use is asked for at the start.
const TRIES: usize = 20;

/// Place where connections come from.
pub struct Desk {
    at: SocketAddr,
    /// The directory that is served.
    pub directory: String,
    /// How files are kept there, if they are kept and deleted.
    keeping: Option<Arc<Keeping>>,
    listener: Mutex<Arc<Listener<'static>>>,
    /// Somebody sees to another listener.
    is_opening: AtomicBool,
    /// Threads that wait for a connection.
    idle: AtomicUsize,
}

impl Desk {
    /// Listens.
    pub fn open(at: SocketAddr, directory: &str, is_writable: bool) -> Result<Desk> {
        let net: &'static Net = Box::leak(Box::new(Net::open()?));
        let mut tries = 1;
        let listener = loop {
            match net.listen(at, BACKLOG) {
                // Of a server that has just ended the sockets may still be there.
                Err(Error::InUse) if tries < TRIES => {
                    tries += 1;
                    time::sleep(PAUSE);
                }
                outcome => break Mutex::new(Arc::new(outcome?)),
            }
        };
        let (is_opening, idle) = (AtomicBool::new(false), AtomicUsize::new(0));
        // It only has to be another one than those of the servers before.
        let life = || random::generator().map_or_else(|_| random::weak_number(), Generator::number);
        let keeping = is_writable.then(|| Arc::new(Keeping::new(Parts::new(at.port(), life()))));
        Ok(Desk { at, directory: directory.into(), keeping, listener, is_opening, idle })
    }

    /// Serves one connection after the other, for ever, as the thread of that number.
    pub fn work(&self, number: usize) -> ! {
        let keeping = self.keeping.clone().map(|keeping| (keeping, number));
        let mut files = Files::of(&self.directory, keeping);
        loop {
            if let Some(stream) = self.accept() {
                // A connection that breaks off is over, and nobody has to know.
                let _ = Connection::new(stream, self).serve(&mut files);
            }
        }
    }

    /// Waits for a connection. None if something else has to come first.
    fn accept(&self) -> Option<Stream<'static>> {
        if self.is_opening.load(Ordering::Relaxed) {
            time::sleep(PAUSE);
            return None;
        }
        let listener = self.listener.lock().clone();
        self.idle.fetch_add(1, Ordering::Relaxed);
        let outcome = listener.accept(FOREVER);
        self.idle.fetch_sub(1, Ordering::Relaxed);
        match outcome {
            Ok(stream) => return Some(stream),
            // There are as many sockets as there may be, and some will end.
            Err(Error::Limit) => time::sleep(PAUSE),
            Err(_) => self.listen_again(&listener),
        }
        None
    }

    /// Whether a connection waits, and all threads have one: then who has one should be quick.
    pub fn is_pressed(&self) -> bool {
        let has_idle = self.idle.load(Ordering::Relaxed) > 0;
        let listener = || self.listener.lock().clone();
        !has_idle && listener().has_waiting().unwrap_or(false)
    }

    /// A listener in the place of one that is of use no more: the network server has ended. One thread sees to that.
    fn listen_again(&self, old: &Arc<Listener<'static>>) {
        if self.is_opening.swap(true, Ordering::Acquire) {
            return time::sleep(PAUSE);
        }
        if Arc::ptr_eq(&self.listener.lock(), old) {
            let new = Arc::new(self.listener_of_next());
            *self.listener.lock() = new;
        }
        self.is_opening.store(false, Ordering::Release);
    }

    fn listener_of_next(&self) -> Listener<'static> {
        loop {
            let Ok(net) = Net::open() else {
                time::sleep(PAUSE);
                continue;
            };
            // It is never given back; there is one for each start of the network server.
            let net: &'static Net = Box::leak(Box::new(net));
            loop {
                match net.listen(self.at, BACKLOG) {
                    Ok(listener) => return listener,
                    Err(Error::Server(_)) => break,
                    // Somebody else has the port.
                    Err(_) => time::sleep(PAUSE),
                }
            }
        }
    }
}
