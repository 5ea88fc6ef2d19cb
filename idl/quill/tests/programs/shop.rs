//! Both sides in Rust of an interface with attributes that raise exceptions: `serve PATH` or `call PATH`. The interface stands in `attributes.rs`.

mod stubs {
    include!("shop.rs");
}

use std::os::unix::net::{UnixListener, UnixStream};

use stubs::Shop::{Closed, Poor, Till};
use stubs::rt::{self, Failure};

struct Keeper {
    is_shut: bool,
    drawers: i32,
    owner: String,
}

impl Keeper {
    fn closed(&self, why: &str) -> Option<Closed> {
        self.is_shut.then(|| Closed { why: why.into() })
    }
}

impl Till::Server for Keeper {
    fn total(&mut self) -> Result<i32, Till::TotalError> {
        self.closed("shut").map_or(Ok(7), |closed| Err(Till::TotalError::Closed(closed)))
    }
    fn owner(&mut self) -> Result<String, Till::OwnerError> {
        self.closed("nobody's").map_or(Ok(self.owner.clone()), |closed| Err(Till::OwnerError::Closed(closed)))
    }
    fn set_owner(&mut self, value: &str) -> Result<(), Till::SetOwnerError> {
        if let Some(closed) = self.closed("sealed") {
            return Err(Till::SetOwnerError::Closed(closed));
        }
        if value.len() >= 64 {
            return Err(Till::SetOwnerError::Poor(Poor { by: value.len() as i32 - 63 }));
        }
        self.owner = value.into();
        Ok(())
    }
    fn drawers(&mut self) -> Result<i32, Failure> {
        Ok(self.drawers)
    }
    fn set_drawers(&mut self, value: i32) -> Result<(), Failure> {
        self.drawers = value;
        Ok(())
    }
    fn get_total(&mut self, of: i32) -> Result<i32, Failure> {
        Ok(7 * of)
    }
    fn shut(&mut self, how: bool) -> Result<(), Failure> {
        self.is_shut = how;
        Ok(())
    }
}

fn call(stream: UnixStream) {
    let mut till = Till::Client { transport: stream };
    assert_eq!((till.total().unwrap(), till.get_total(3).unwrap()), (7, 21));
    till.set_owner("Grace").unwrap();
    assert_eq!(till.owner().unwrap(), "Grace");
    till.set_drawers(5).unwrap();
    assert_eq!(till.drawers().unwrap(), 5);
    let long = till.set_owner(&"x".repeat(70));
    assert!(matches!(long, Err(Till::SetOwnerError::Poor(Poor { by: 7 }))));
    till.shut(true).unwrap();
    assert!(matches!(till.total(), Err(Till::TotalError::Closed(Closed { why })) if why == "shut"));
    assert!(matches!(till.owner(), Err(Till::OwnerError::Closed(Closed { why })) if why == "nobody's"));
    assert!(matches!(till.set_owner("Ada"), Err(Till::SetOwnerError::Closed(Closed { why })) if why == "sealed"));
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, path] = &arguments[..] else { panic!("`serve PATH` or `call PATH`") };
    if role == "call" {
        let connect = |_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            UnixStream::connect(path).ok()
        };
        return call((0..1000).find_map(connect).expect("somebody serves"));
    }
    let mut stream = UnixListener::bind(path).unwrap().accept().unwrap().0;
    let mut keeper = Keeper { is_shut: false, drawers: 2, owner: "Ada".into() };
    rt::serve(&mut stream, |label, body| Till::dispatch(&mut keeper, label, body)).unwrap();
}
