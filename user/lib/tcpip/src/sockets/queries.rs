//! Questions for the addresses of names.

use super::table::{Entry, Query, Slot};
use super::{Id, Refusal};
use crate::stack::Stack;
use core::net::IpAddr;
use smoltcp::socket::dns;
use smoltcp::wire::DnsQueryType;

impl Stack {
    /// Asks for the address of a name: one of IPv4, or if it has none, one of IPv6. What is an address already needs nobody.
    pub fn resolve(&mut self, owner: u64, name: &str) -> Result<Id, Refusal> {
        self.table.room(owner, 1)?;
        let known = match name {
            "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
            _ => name.parse().ok(),
        };
        let query = match known {
            Some(address) => Query::Answered(Ok(address)),
            None if self.status.servers.is_empty() => Query::Answered(Err(Refusal::NotFound)),
            None => {
                self.wire.names.expect(self.now);
                self.seek_servers(owner);
                let mut ask = |kind| {
                    let mut once = self.once();
                    let socket = self.sockets.get_mut::<dns::Socket>(self.dns);
                    socket.start_query(once.context(), name, kind)
                };
                let asked = ask(DnsQueryType::A).map_err(|_| Refusal::Bad)?;
                Query::Asked([Some(asked), ask(DnsQueryType::Aaaa).ok()])
            }
        };
        Ok(self.table.insert(owner, Entry::Query(query)))
    }

    /// Sees whether a name was found.
    pub(super) fn follow(&mut self, id: Id) {
        let Some(Slot { entry: Entry::Query(query), .. }) = self.table.slots.get_mut(&id) else { return };
        let Query::Asked(asked) = query else { return };
        let socket = self.sockets.get_mut::<dns::Socket>(self.dns);
        let mut found = None;
        for place in asked.iter_mut() {
            let Some(handle) = *place else { continue };
            if found.is_some() {
                socket.cancel_query(handle);
                continue;
            }
            found = match socket.get_query_result(handle) {
                Ok(all) => all.first().map(|&address| address.into()),
                Err(dns::GetQueryResultError::Pending) => return,
                Err(dns::GetQueryResultError::Failed) => None,
            };
            *place = None;
        }
        *query = Query::Answered(found.ok_or(Refusal::NotFound));
    }

    /// The address that a name has.
    pub fn found(&mut self, id: Id) -> Result<IpAddr, Refusal> {
        self.follow(id);
        match self.entry(id)? {
            Entry::Query(Query::Answered(answer)) => *answer,
            Entry::Query(Query::Asked(..)) => Err(Refusal::Again),
            _ => Err(Refusal::Bad),
        }
    }
}
