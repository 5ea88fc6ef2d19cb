//! Ports at which sockets listen. The network below tells apart those that listen at addresses of their own. It does not know one that listens at all addresses of
//! one family, nor two that share an address; such sockets have one listener below together, and connections are dealt here, by the address to which they have come.

use crate::errno::{EAGAIN, EINVAL, Errno, Result};
use crate::network::{Network, readiness};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Connections that have been dealt to a socket and not accepted, at most: half of the sockets that a sandbox has. More are broken off, so that one which accepts
/// none keeps others at the port from nothing.
pub const DEALT_MAX: usize = 16;

/// Connections that are dealt at once, at most.
const AT_ONCE: usize = 64;

/// Addresses of a socket: one, all of a family, or all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Its address, which may be the one that means all, and its port.
    pub at: SocketAddr,
    /// Whether all addresses of IPv6 are no addresses of IPv4 (`IPV6_V6ONLY`).
    pub is_six_only: bool,
}

impl Scope {
    /// Whether an address of this machine belongs to it.
    pub fn has(&self, address: IpAddr) -> bool {
        match self.at.ip() {
            own if !own.is_unspecified() => own == address,
            IpAddr::V4(_) => address.is_ipv4(),
            IpAddr::V6(_) => address.is_ipv6() || !self.is_six_only,
        }
    }

    /// Whether some connection could be for both.
    pub fn meets(&self, other: &Scope) -> bool {
        let is_any = [self, other].map(|scope| scope.at.ip().is_unspecified());
        self.at.port() == other.at.port()
            && match is_any {
                [false, _] => other.has(self.at.ip()),
                [true, false] => self.has(other.at.ip()),
                [true, true] => [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]
                    .iter()
                    .any(|address| self.has(*address) && other.has(*address)),
            }
    }

    /// How well it fits a connection to an address: Linux prefers the address itself, then the family. None: not at all.
    fn fit(&self, address: IpAddr) -> Option<u32> {
        self.has(address).then(|| {
            let is_own = self.at.ip() == address;
            u32::from(is_own) * 2 + u32::from(self.at.is_ipv6() == address.is_ipv6())
        })
    }
}

/// A socket that listens.
#[derive(Debug)]
struct Member {
    number: u64,
    scope: Scope,
    /// Connections that it wants to be kept, at most.
    backlog: usize,
    /// Connections that are its own, by their numbers below.
    dealt: VecDeque<u64>,
}

impl Member {
    /// Whether it may keep one more connection, which uses a socket of the machine's network or not.
    fn has_place(&self, is_scarce: bool) -> bool {
        self.dealt.len() <= if is_scarce { DEALT_MAX - 1 } else { self.backlog }
    }
}

/// A listener below.
#[derive(Debug)]
struct Group {
    at: SocketAddr,
    backlog: u16,
    members: Vec<Member>,
    /// Why no connection can be taken from below, such as that there are too many.
    stuck: Option<Errno>,
}

impl Group {
    /// Whether a single socket has it under the number of its own, so that nothing has to be dealt.
    fn is_plain(&self, below: u64) -> bool {
        matches!(&*self.members, [only] if only.number == below && only.dealt.is_empty())
    }

    /// The socket that a connection is for. Those that fit as well have it in turn, by the port of the other end.
    fn heir(&mut self, local: IpAddr, peer: SocketAddr) -> Option<&mut Member> {
        let best = self.members.iter().filter_map(|member| member.scope.fit(local)).max()?;
        let mut all: Vec<_> =
            self.members.iter_mut().filter(|member| member.scope.fit(local) == Some(best)).collect();
        let place = usize::from(peer.port()).checked_rem(all.len())?;
        Some(all.swap_remove(place))
    }
}

/// Listeners below by their numbers.
#[derive(Debug, Default)]
pub struct Ports(BTreeMap<u64, Group>);

impl Ports {
    /// Lets a socket listen. Whoever calls has found that it may. `numbers`: the last number that was given to something, here and below.
    pub fn listen(
        &mut self,
        network: &dyn Network,
        numbers: &mut u64,
        (number, scope, backlog): (u64, Scope, u16),
    ) -> Result<()> {
        let at = scope.at;
        let own = Member { number, scope, backlog: backlog.into(), dealt: VecDeque::new() };
        let shared = self.0.iter_mut().find(|(_, group)| {
            group.at.port() == at.port() && (group.at.ip().is_unspecified() || group.at.ip() == at.ip())
        });
        if let Some((below, group)) = shared {
            group.members.push(own);
            network.watch(*below, readiness::READ);
            return Ok(());
        }
        let is_within = |group: &Group| at.ip().is_unspecified() && group.at.port() == at.port();
        let narrow: Vec<u64> =
            self.0.iter().filter(|(_, group)| is_within(group)).map(|(below, _)| *below).collect();
        if narrow.is_empty() {
            network.listen(number, at, backlog)?;
            self.0.insert(number, Group { at, backlog, members: Vec::from([own]), stuck: None });
            return Ok(());
        }
        self.widen(network, numbers, &narrow, Group { at, backlog, members: Vec::from([own]), stuck: None })
    }

    /// A listener below takes the place of others, whose addresses are among its own.
    fn widen(
        &mut self,
        network: &dyn Network,
        numbers: &mut u64,
        narrow: &[u64],
        mut wide: Group,
    ) -> Result<()> {
        let number = wide.members.first().map_or(0, |member| member.number);
        for below in narrow {
            self.deal_all(network, numbers, *below);
            network.close(*below);
        }
        if let Err(error) = network.listen(number, wide.at, wide.backlog) {
            for (below, group) in &self.0 {
                if narrow.contains(below) {
                    // One that cannot listen again says so when it is asked for a connection.
                    let _ = network.listen(*below, group.at, group.backlog);
                }
            }
            return Err(error);
        }
        for below in narrow {
            wide.members.extend(self.0.remove(below).map(|group| group.members).unwrap_or_default());
        }
        self.0.insert(number, wide);
        network.watch(number, readiness::READ);
        Ok(())
    }

    /// The listener below of a socket, if connections are dealt there.
    fn dealing(&mut self, number: u64) -> Option<(u64, &mut Group)> {
        let has = |group: &Group| group.members.iter().any(|member| member.number == number);
        let (below, group) = self.0.iter_mut().find(|(_, group)| has(group))?;
        (!group.is_plain(*below)).then_some((*below, group))
    }

    /// Whether a socket whose connections are dealt can accept one. None: it asks below.
    pub fn readiness(&self, number: u64) -> Option<bool> {
        let found = self.0.iter().find_map(|(below, group)| {
            let member = group.members.iter().find(|member| member.number == number)?;
            Some((below, group, member))
        });
        let (below, group, member) = found?;
        (!group.is_plain(*below)).then(|| group.stuck.is_some() || !member.dealt.is_empty())
    }

    /// Deals the connections that have come to a listener below. Sockets that now have something are told, and all if there is no going on.
    fn deal(&mut self, network: &dyn Network, numbers: &mut u64, below: u64) -> Vec<u64> {
        let Some(group) = self.0.get_mut(&below) else { return Vec::new() };
        let mut told = Vec::new();
        group.stuck = None;
        for _ in 0..AT_ONCE {
            *numbers += 1;
            match network.accept(below, *numbers) {
                Ok(()) => {}
                Err(EAGAIN) => break,
                Err(error) => {
                    group.stuck = Some(error);
                    return group.members.iter().map(|member| member.number).collect();
                }
            }
            let heir = match network.ends(*numbers) {
                [Some(local), Some(peer)] => group.heir(local.ip(), peer),
                _ => None,
            };
            match heir {
                Some(member) if member.has_place(network.is_scarce(*numbers)) => {
                    member.dealt.push_back(*numbers);
                    told.push(member.number);
                }
                _ => network.close(*numbers),
            }
        }
        network.watch(below, readiness::READ);
        told
    }

    /// Deals all connections that have come, before the listener below goes.
    fn deal_all(&mut self, network: &dyn Network, numbers: &mut u64, below: u64) -> Vec<u64> {
        let mut told = Vec::new();
        loop {
            let more = self.deal(network, numbers, below);
            let is_stuck = self.0.get(&below).is_none_or(|group| group.stuck.is_some());
            if more.is_empty() || is_stuck {
                return told;
            }
            told.extend(more);
        }
    }

    /// Something has happened to a socket below: numbers of the sockets that this concerns. None: that one itself.
    pub fn heard(&mut self, network: &dyn Network, numbers: &mut u64, below: u64) -> Option<Vec<u64>> {
        let is_dealt = self.0.get(&below).is_some_and(|group| !group.is_plain(below));
        is_dealt.then(|| self.deal(network, numbers, below))
    }

    /// Takes a connection for a socket, which has that number below. Others that have got one meanwhile are told. `EAGAIN`: there is none.
    pub fn accept(
        &mut self,
        network: &dyn Network,
        numbers: &mut u64,
        number: u64,
    ) -> (Result<u64>, Vec<u64>) {
        let take = |ports: &mut Ports| {
            let group = ports.dealing(number)?.1;
            group.members.iter_mut().find(|member| member.number == number)?.dealt.pop_front()
        };
        let Some((below, _)) = self.dealing(number) else {
            *numbers += 1;
            return (network.accept(number, *numbers).map(|()| *numbers), Vec::new());
        };
        if let Some(taken) = take(self) {
            return (Ok(taken), Vec::new());
        }
        let told = self.deal(network, numbers, below);
        let stuck = self.0.get(&below).map_or(EINVAL, |group| group.stuck.unwrap_or(EAGAIN));
        (take(self).ok_or(stuck), told)
    }

    /// A socket listens no more. Others that have got something by that; none if it did not listen.
    pub fn leave(&mut self, network: &dyn Network, numbers: &mut u64, number: u64) -> Option<Vec<u64>> {
        let has = |group: &Group| group.members.iter().any(|member| member.number == number);
        let (&below, group) = self.0.iter_mut().find(|(_, group)| has(group))?;
        let gone: Vec<u64> = group
            .members
            .iter_mut()
            .filter(|member| member.number == number)
            .flat_map(|member| member.dealt.drain(..))
            .collect();
        group.members.retain(|member| member.number != number);
        let is_empty = group.members.is_empty();
        gone.into_iter().for_each(|taken| network.close(taken));
        if below != number && !is_empty {
            return Some(Vec::new());
        }
        // Others go on, and the number is this socket's, which may connect, or listen elsewhere.
        let told = if is_empty { Vec::new() } else { self.deal_all(network, numbers, below) };
        network.close(below);
        if let Some(mut group) = self.0.remove(&below).filter(|_| !is_empty) {
            *numbers += 1;
            group.stuck = network.listen(*numbers, group.at, group.backlog).err();
            self.0.insert(*numbers, group);
            network.watch(*numbers, readiness::READ);
        }
        Some(told)
    }
}

#[cfg(test)]
mod tests;
