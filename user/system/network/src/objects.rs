//! Objects that clients call. Each does what can be done now, on its caller's time.

use crate::clients::Membership;
use crate::shared::Shared;
use core::net::IpAddr;
use net::sockets::Sockets::{self, Datagrams, Echo, Host, Listener, Question, SharedStream, Stream};
use net::sockets::{Endpoint, endpoint, packed, socket_address, unpacked};
use rt::api::stub::{Failure, Hold, View};
use rt::door::{self, Door, Reference};
use rt::sys::{self, Fpage};
use tcpip::sockets::DATAGRAM_MAX;
use tcpip::{Id, Kind, Passage, Refusal, Sending, Stack, State};

fn refused(refusal: Refusal) -> Failure {
    Failure::Refused(match refusal {
        Refusal::Again => Sockets::AGAIN,
        Refusal::Closed => Sockets::CLOSED,
        Refusal::InUse => Sockets::IN_USE,
        Refusal::Limit => Sockets::LIMIT,
        Refusal::Bad => Sockets::BAD,
        Refusal::Unreachable => Sockets::UNREACHABLE,
        Refusal::NotFound => Sockets::NOT_FOUND,
        Refusal::Refused => Sockets::REFUSED,
        Refusal::Silent => Sockets::SILENT,
    })
}

/// Threads that serve have room for requests to all of these. To be said before there is the first object.
pub fn make_room() -> sys::Result<()> {
    door::make_room::<Host::Object<Hosted>>()?;
    door::make_room::<Datagrams::Object<Socket>>()?;
    door::make_room::<Echo::Object<Socket>>()?;
    door::make_room::<SharedStream::Object<Socket>>()
}

/// A socket, which is closed when nobody refers to it any more.
pub struct Socket {
    shared: Shared,
    id: Id,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.shared.close(self.id);
        let _ = self.shared.poke();
    }
}

impl Socket {
    /// Does something that the stack has to follow, unless it is refused.
    fn act<T>(&self, act: impl FnOnce(&mut Stack, Id) -> Result<T, Refusal>) -> Result<T, Failure> {
        let outcome = self.look(act)?;
        let _ = self.shared.poke();
        Ok(outcome)
    }

    /// Does something that changes nothing on the wire.
    fn look<T>(&self, act: impl FnOnce(&mut Stack, Id) -> Result<T, Refusal>) -> Result<T, Failure> {
        self.shared.stack(|stack| act(stack, self.id)).map_err(refused)
    }
}

/// Puts an object behind a door; if that cannot be, the object goes.
fn served<C: rt::api::stub::Interface>(door: sys::Result<Door>) -> Result<Reference<C>, Failure> {
    door.map(Reference::from).map_err(Failure::Kernel)
}

impl Datagrams::Relay for Socket {
    fn ticket(&self) -> Result<u64, Failure> {
        Ok(self.id)
    }
    fn bind(&self, at: &Endpoint, is_shared: bool) -> Result<(), Failure> {
        let at = socket_address(at);
        self.look(|stack, id| if is_shared { stack.share(id, at) } else { stack.bind(id, at) })
    }
    fn send(&self, to: &Endpoint, data: &[u8]) -> Result<(), Failure> {
        self.act(|stack, id| stack.send_to(id, socket_address(to), data))
    }
    fn receive<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Datagrams::Replies>,
    ) -> Result<(&'a [u8], Endpoint), Failure> {
        let mut sender = None;
        let bytes = hold.fill(DATAGRAM_MAX, |bytes| {
            let (from, len) = self.look(|stack, id| stack.receive_from(id, bytes))?;
            sender = Some(endpoint(from));
            Ok(len)
        })?;
        Ok((bytes, sender.ok_or(refused(Refusal::Again))?))
    }
    fn connect(&self, to: &Endpoint) -> Result<(), Failure> {
        let to = Some(socket_address(to)).filter(|to| to.port() != 0);
        self.look(|stack, id| stack.connect_datagrams(id, to))
    }
    fn join(&self, group: &[u8; 16]) -> Result<(), Failure> {
        self.act(|stack, id| stack.join(id, unpacked(*group)))
    }
    fn leave(&self, group: &[u8; 16]) -> Result<(), Failure> {
        self.act(|stack, id| stack.leave(id, unpacked(*group)))
    }
    fn set_sending(&self, from: &[u8; 16], hops: u8, loops: bool) -> Result<(), Failure> {
        let sending = Sending { from: unpacked(*from), passage: Passage { hops, loops } };
        self.look(|stack, id| stack.set_sending(id, sending))
    }
}

impl SharedStream::Relay for Socket {
    fn ticket(&self) -> Result<u64, Failure> {
        Ok(self.id)
    }
    fn connect(&self, to: &Endpoint, from: &Endpoint) -> Result<(), Failure> {
        self.shared.connect(self.id, socket_address(from), socket_address(to)).map_err(refused)?;
        let _ = self.shared.poke();
        Ok(())
    }
    fn phase(&self) -> Result<Sockets::State, Failure> {
        let (state, _) = self.look(Stack::state)?;
        Ok(match state {
            State::Closed => Sockets::State::CLOSED_STATE,
            State::Connecting => Sockets::State::CONNECTING,
            State::Open => Sockets::State::OPEN,
        })
    }
    fn peer(&self) -> Result<Endpoint, Failure> {
        let (_, [_, peer]) = self.look(Stack::state)?;
        peer.map(endpoint).ok_or(refused(Refusal::Closed))
    }
    fn write(&self, data: &[u8]) -> Result<u32, Failure> {
        let len = self.shared.write(self.id, data).map_err(refused)?;
        let _ = self.shared.poke();
        Ok(len as u32)
    }
    fn read<'a>(
        &'a self,
        hold: &'a mut Hold<'a, SharedStream::Replies>,
        len_max: u32,
    ) -> Result<&'a [u8], Failure> {
        let mut was_crowded = false;
        let bytes = hold.fill(len_max.min(Sockets::BYTES_MAX) as usize, |bytes| {
            let (len, is_crowded) = self.shared.read(self.id, bytes).map_err(refused)?;
            was_crowded = is_crowded;
            Ok(len)
        })?;
        if was_crowded {
            let _ = self.shared.poke();
        }
        Ok(bytes)
    }
    fn shutdown(&self) -> Result<(), Failure> {
        self.shared.shutdown(self.id).map_err(refused)?;
        let _ = self.shared.poke();
        Ok(())
    }
    fn local(&self) -> Result<Endpoint, Failure> {
        let (_, [own, _]) = self.look(Stack::state)?;
        own.map(endpoint).ok_or(refused(Refusal::Closed))
    }
    fn share(&self) -> Result<Fpage, Failure> {
        self.shared.share(self.id).map_err(refused)
    }
}

impl Listener::Server for Socket {
    fn ticket(&self) -> Result<u64, Failure> {
        Ok(self.id)
    }
    fn accept(&self) -> Result<Reference<Stream::Client<View>>, Failure> {
        let id = self.look(Stack::accept)?;
        served(door::serve(SharedStream::Object(Socket { shared: self.shared.clone(), id })))
    }
}

impl Echo::Relay for Socket {
    fn ticket(&self) -> Result<u64, Failure> {
        Ok(self.id)
    }
    fn ask(&self, to: &[u8; 16], number: u16, data: &[u8]) -> Result<(), Failure> {
        self.act(|stack, id| stack.ask_echo(id, unpacked(*to), number, data))
    }
    fn answer<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Echo::Replies>,
    ) -> Result<(&'a [u8], [u8; 16], u16), Failure> {
        let mut answered = None;
        let bytes = hold.fill(DATAGRAM_MAX, |bytes| {
            let (from, number, len) = self.look(|stack, id| stack.echoed(id, bytes))?;
            answered = Some((packed(from), number));
            Ok(len)
        })?;
        let (from, number) = answered.ok_or(refused(Refusal::Again))?;
        Ok((bytes, from, number))
    }
}

impl Question::Server for Socket {
    fn ticket(&self) -> Result<u64, Failure> {
        Ok(self.id)
    }
    fn answer(&self) -> Result<[u8; 16], Failure> {
        self.look(Stack::found).map(packed)
    }
}

/// An object that makes sockets for its task.
pub struct Hosted {
    shared: Shared,
    membership: Membership,
}

/// Makes one.
pub fn host(shared: Shared, membership: Membership) -> sys::Result<Door> {
    door::serve(Host::Object(Hosted { shared, membership }))
}

impl Hosted {
    fn open(&self, open: impl FnOnce(&mut Stack, u64) -> Result<Id, Refusal>) -> Result<Socket, Failure> {
        let id = self.shared.stack(|stack| open(stack, self.membership.owner)).map_err(refused)?;
        Ok(Socket { shared: self.shared.clone(), id })
    }
}

impl Host::Server for Hosted {
    fn open_datagrams(&self) -> Result<Reference<Datagrams::Client<View>>, Failure> {
        served(door::serve(Datagrams::Object(self.open(|stack, owner| stack.open(owner, Kind::Udp))?)))
    }
    fn open_stream(&self) -> Result<Reference<Stream::Client<View>>, Failure> {
        served(door::serve(SharedStream::Object(self.open(|stack, owner| stack.open(owner, Kind::Tcp))?)))
    }
    fn listen(&self, at: &Endpoint, backlog: u16) -> Result<Reference<Listener::Client<View>>, Failure> {
        let at = socket_address(at);
        served(door::serve(Listener::Object(
            self.open(|stack, owner| stack.listen(owner, at, backlog.into()))?,
        )))
    }
    fn open_echo(&self) -> Result<Reference<Echo::Client<View>>, Failure> {
        served(door::serve(Echo::Object(self.open(|stack, owner| stack.open(owner, Kind::Echo))?)))
    }
    fn resolve(&self, name: &str) -> Result<Reference<Question::Client<View>>, Failure> {
        let socket = self.open(|stack, owner| stack.resolve(owner, name))?;
        let _ = self.shared.poke();
        served(door::serve(Question::Object(socket)))
    }
    fn address_at(&self, place: u32) -> Result<([u8; 16], u8), Failure> {
        let found = self.shared.stack(|stack| stack.address_at(place as usize));
        let (address, len) = found.ok_or(refused(Refusal::NotFound))?;
        Ok((packed(address), len))
    }
    fn link(&self) -> Result<(bool, u64, bool), Failure> {
        let status = self.shared.stack(|stack| stack.status());
        let [a, b, c, d, e, f] = status.hardware;
        Ok((status.is_up, u64::from_le_bytes([a, b, c, d, e, f, 0, 0]), status.is_leased))
    }
    fn counts(&self) -> Result<(u64, u64, u64), Failure> {
        let counts = self.shared.stack(|stack| stack.status().counts);
        Ok((counts.received, counts.sent, counts.dropped))
    }
    fn router(&self) -> Result<([u8; 16], [u8; 16]), Failure> {
        let status = self.shared.stack(|stack| stack.status());
        let packed = |address: Option<IpAddr>| address.map_or([0; 16], packed);
        Ok((packed(status.router.map(IpAddr::from)), packed(status.router_v6.map(IpAddr::from))))
    }
    fn names_at(&self, place: u32) -> Result<[u8; 16], Failure> {
        let status = self.shared.stack(|stack| stack.status());
        status.servers.get(place as usize).map(|server| packed(*server)).ok_or(refused(Refusal::NotFound))
    }
}
