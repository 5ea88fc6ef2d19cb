//! Threads beside the one that does the calls: one tells it of times, others of keys.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rt::sys::{self, Message, Timeout, Uid};
use rt::{io, thread, time};

/// Labels of their messages.
pub const TIME: u32 = 0x7100;
/// See [`TIME`]: keys were typed. The first word says how many, the others have them.
pub const KEYS: u32 = 0x7101;

/// Bytes of a message with keys.
const KEYS_BYTES: usize = 56;

/// Never.
const NEVER: u64 = u64::MAX;

/// How long the timer may take until it waits, in µs: longer only if it tells of a time meanwhile.
const PATIENCE_US: u64 = 1000;

/// How long to watch for the interrupt key, in µs, before that is done again.
const WATCH_US: u64 = 3_600_000_000;

/// When to tell of a time.
static AT: AtomicU64 = AtomicU64::new(NEVER);

/// Whether the timer is just telling: it looks at [`AT`] again before it waits.
static IS_TELLING: AtomicBool = AtomicBool::new(false);

/// The thread that tells of times.
#[derive(Debug)]
pub struct Timer(Uid);

impl Timer {
    /// Begins it. It tells the caller.
    pub fn new(priority: u8) -> sys::Result<Timer> {
        let server = sys::myself();
        let handle = thread::spawn(priority, move || tell_times(server))?;
        let uid = handle.uid();
        handle.detach();
        Ok(Timer(uid))
    }

    /// Asks for another time.
    pub fn set(&self, at: Option<u64>) {
        let at = at.unwrap_or(NEVER);
        let before = AT.swap(at, Ordering::Relaxed);
        if at >= before {
            return;
        }
        // One that comes too early is asked for another. A timer that is just about to wait for the old time has to hear of the new one, too.
        let is_wanted = || !IS_TELLING.load(Ordering::Relaxed) && AT.load(Ordering::Relaxed) == at;
        while is_wanted() && sys::send(self.0, 0, [0; 8], Timeout::from_us(PATIENCE_US)).is_err() {}
    }
}

fn tell_times(server: Uid) {
    loop {
        let at = AT.load(Ordering::Relaxed);
        let now = time::now_ns();
        if at > now {
            let patience =
                if at == NEVER { Timeout::NEVER } else { Timeout::from_us((at - now).div_ceil(1000)) };
            let _ = sys::receive(server, patience);
            continue;
        }
        IS_TELLING.store(true, Ordering::Relaxed);
        // It asks for the next time before it comes here again.
        AT.store(NEVER, Ordering::Relaxed);
        let told = sys::ipc_call(server, TIME, [0; 8]);
        IS_TELLING.store(false, Ordering::Relaxed);
        if told.is_err() {
            return;
        }
    }
}

/// Begins the threads that tell the caller of keys.
pub fn watch_keys(priority: u8) -> sys::Result<()> {
    let server = sys::myself();
    thread::spawn(priority, move || tell_keys(server))?.detach();
    thread::spawn(priority, move || tell_interrupts(server))?.detach();
    Ok(())
}

fn tell_keys(server: Uid) {
    let mut buffer = [0; KEYS_BYTES];
    loop {
        let Ok(count) = io::read(&mut buffer) else { return };
        if tell(server, buffer.get(..count).unwrap_or_default()).is_err() || count == 0 {
            return;
        }
    }
}

/// The interrupt key is taken from the input if somebody watches for it, as whoever has started this program does.
fn tell_interrupts(server: Uid) {
    loop {
        match io::watch_interrupt_key(WATCH_US) {
            Ok(()) => {
                if tell(server, &[rt::api::console::INTERRUPT_KEY]).is_err() {
                    return;
                }
            }
            Err(failure) if failure.server_is_gone() => return,
            Err(_) => {}
        }
    }
}

fn tell(server: Uid, keys: &[u8]) -> sys::Result<Message> {
    let mut words = [0; 8];
    words[0] = keys.len() as u64;
    for (word, piece) in words[1..].iter_mut().zip(keys.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..piece.len()].copy_from_slice(piece);
        *word = u64::from_le_bytes(bytes);
    }
    sys::ipc_call(server, KEYS, words)
}

/// Keys of a message.
pub fn keys(message: &Message) -> ([u8; KEYS_BYTES], usize) {
    let mut bytes = [0; KEYS_BYTES];
    for (piece, word) in bytes.chunks_exact_mut(8).zip(&message.words[1..]) {
        piece.copy_from_slice(&word.to_le_bytes());
    }
    (bytes, (message.words[0] as usize).min(KEYS_BYTES))
}
