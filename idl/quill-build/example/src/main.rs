//! A client and a server of `idl/bank.idl`, in two threads.

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));

use bank::Bank::{Account, Overdrawn};
use bank::rt::{self, Failure};

struct Purse(i64);

impl Account::Server for Purse {
    fn balance(&mut self) -> Result<i64, Failure> {
        Ok(self.0)
    }
    fn draw(&mut self, amount: i64) -> Result<(), Account::DrawError> {
        if amount > self.0 {
            return Err(Account::DrawError::Overdrawn(Overdrawn { by: amount - self.0 }));
        }
        self.0 -= amount;
        Ok(())
    }
}

fn main() {
    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut purse = Purse(10);
        rt::serve(&mut far, |label, body| Account::dispatch(&mut purse, label, body))
    });
    let mut account = Account::Client { transport: near };
    account.draw(3).unwrap();
    println!("{} are left", account.balance().unwrap());
    println!("{:?}", account.draw(9).unwrap_err());
}
