//! The serial line, and the screen that shows what goes out.

use crate::screen::Screen;
use crate::uart::Uart;
use terminal::Device;

/// Note for a person at the screen: there is no driver for its keyboard.
const ON_SCREEN: &str = "The console is the first serial port (COM1, 115200 baud, 8N1): type there.\r\n\
                         This screen shows what it prints.\r\n\r\n";
const ON_SCREEN_ALONE: &str = "The console would be the first serial port, which this machine does not have:\r\n\
                               nothing can be typed. This screen shows what is printed.\r\n\r\n";

/// The device, and a screen if there is one.
pub struct Console {
    uart: Uart,
    screen: Option<Screen>,
}

impl Console {
    /// A screen says at its top where what is shown there comes from.
    pub fn new(uart: Uart, mut screen: Option<Screen>) -> Console {
        let about = if uart.is_there() { ON_SCREEN } else { ON_SCREEN_ALONE };
        screen.as_mut().into_iter().for_each(|screen| screen.write(about.as_bytes()));
        Console { uart, screen }
    }
}

impl Device for Console {
    const SEND_MAX: usize = Uart::FIFO_LEN;

    fn receive(&mut self) -> Option<u8> {
        self.uart.receive()
    }

    fn can_send(&self) -> bool {
        self.uart.can_send()
    }

    fn send(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.uart.send(byte));
    }

    fn enable(&mut self, input: usize, output: bool) {
        self.uart.enable(input > 0, output);
    }

    fn is_pending(&mut self) -> bool {
        self.uart.is_pending()
    }

    fn show(&mut self, bytes: &[u8]) {
        self.screen.as_mut().into_iter().for_each(|screen| screen.write(bytes));
    }

    fn draw(&mut self) {
        self.screen.as_mut().into_iter().for_each(Screen::draw);
    }
}
