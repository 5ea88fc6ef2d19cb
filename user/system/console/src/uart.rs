//! The 16550 UART at the first serial port. Speed and format stay as the kernel set them.

use rt::device::Port;

/// The device.
#[derive(Debug)]
pub struct Uart {
    /// Interrupts that are switched on: bits of the register.
    enabled: u8,
    is_there: bool,
}

const BASE: Port = Port(Uart::FIRST_PORT);
const DATA: Port = BASE;
const INTERRUPT_ENABLE: Port = BASE.at(1);
const INTERRUPT_ID: Port = BASE.at(2);
const FIFO_CONTROL: Port = BASE.at(2);
const LINE_CONTROL: Port = BASE.at(3);
const MODEM_CONTROL: Port = BASE.at(4);
const LINE_STATUS: Port = BASE.at(5);

const SCRATCH: Port = BASE.at(7);

const ENABLE_INPUT: u8 = 1 << 0;
const ENABLE_OUTPUT: u8 = 1 << 1;
const NONE_PENDING: u8 = 1 << 0;
const HAS_INPUT: u8 = 1 << 0;
const CAN_SEND: u8 = 1 << 5;

/// Both buffers of the device on; an interrupt when 8 bytes are there or no more come.
const FIFO_ON: u8 = 0x81;
/// 8 bits, no parity, one stop bit.
const FORMAT: u8 = 0x03;
/// Ready, and the interrupt line connected.
const MODEM_READY: u8 = 0x0b;

impl Uart {
    /// Its first port.
    pub const FIRST_PORT: u16 = 0x3f8;
    /// Log2 of the number of its ports.
    pub const PORTS_LOG2: u32 = 3;
    /// Bytes that the device takes at once when it can send.
    pub const FIFO_LEN: usize = 16;

    /// Takes the device over, interrupts off. Input that came before stays in its buffer. Where there is no such device, nothing
    /// comes, and what is sent is lost.
    pub fn start() -> Uart {
        let is_there = [0x5a, 0xa5].iter().all(|&probe| {
            SCRATCH.write(probe);
            SCRATCH.read() == probe
        });
        INTERRUPT_ENABLE.write(0);
        LINE_CONTROL.write(FORMAT);
        FIFO_CONTROL.write(FIFO_ON);
        MODEM_CONTROL.write(MODEM_READY);
        Uart { enabled: 0, is_there }
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// A byte, if one is there.
    pub fn receive(&mut self) -> Option<u8> {
        (self.is_there && LINE_STATUS.read() & HAS_INPUT != 0).then(|| DATA.read())
    }

    /// Whether [`Uart::FIFO_LEN`] bytes can be sent.
    pub fn can_send(&self) -> bool {
        !self.is_there || LINE_STATUS.read() & CAN_SEND != 0
    }

    /// Sends a byte.
    pub fn send(&mut self, byte: u8) {
        DATA.write(byte);
    }

    /// Chooses which events interrupt.
    pub fn enable(&mut self, input: bool, output: bool) {
        let enabled = if input { ENABLE_INPUT } else { 0 } | if output { ENABLE_OUTPUT } else { 0 };
        if enabled != self.enabled {
            self.enabled = enabled;
            INTERRUPT_ENABLE.write(enabled);
        }
    }

    /// Whether the device still asks for attention. Asking takes back "can send".
    ///
    /// The line is edge-triggered: an interrupt that is pending when the driver waits again would be the last.
    pub fn is_pending(&mut self) -> bool {
        self.is_there && INTERRUPT_ID.read() & NONE_PENDING == 0
    }
}
