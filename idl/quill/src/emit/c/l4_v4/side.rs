//! One side of a call: how values get into a message and out of it.

use super::*;

/// One side of a call, and one of its messages.
pub(super) struct Side<'a> {
    pub(super) c: &'a Interface<'a>,
    pub(super) message: &'a Message,
    pub(super) plan: Plan<'a>,
    pub(super) spots: &'a [Spot<'a>],
    /// Result of a function that meets something which is no value.
    pub(super) malformed: Expr,
    /// Result of a function that meets something too long.
    pub(super) too_long: Expr,
    /// The message is a reply: its texts may lie in the request that it replaces.
    pub(super) reply: bool,
    /// The receiver's refusal comes back, so it is enough to look for a list that is too long when it does.
    pub(super) answered: bool,
    /// A text goes both ways, so that it may not stay in the message that the reply replaces.
    pub(super) both_ways: bool,
    /// The message is an exception on the client's side: what is in it lies in the client's room.
    pub(super) raised: bool,
    /// Items that arrive in the client's room, wherever they are wanted, by number.
    pub(super) in_room: Vec<bool>,
}

impl<'a> Side<'a> {
    /// One whose function ends with these results if it meets something which is no value, or something too long.
    pub(super) fn new(
        c: &'a Interface,
        message: &'a Message,
        spots: &'a [Spot<'a>],
        [malformed, too_long]: [Expr; 2],
        reply: bool,
    ) -> Side<'a> {
        let (answered, both_ways, raised, in_room) = (false, false, false, Vec::new());
        let plan = Plan::of(c.emitter.model, message);
        Side { c, message, plan, spots, malformed, too_long, reply, answered, both_ways, raised, in_room }
    }

    fn refuse_if(&self, condition: Expr) -> Stmt {
        Stmt::If(unlikely(condition), vec![Stmt::Return(Some(self.malformed.clone()))])
    }

    /// Words of which some bytes belong to no value: they would show what was there before.
    fn holes(&self) -> Vec<Stmt> {
        let mut covered = vec![0u64; self.message.registers as usize];
        for step in &self.plan.fixed {
            // The rest of a list's room is cleared by whoever fills it.
            let (first, end) = (u64::from(offset(step)), u64::from(offset(step)) + step.bytes);
            for word in first / 4..end.div_ceil(4) {
                if let Some(bytes) = covered.get_mut(word as usize) {
                    *bytes += end.min(4 * word + 4) - first.max(4 * word);
                }
            }
        }
        let holed = covered.iter().enumerate().filter(|(_, bytes)| **bytes < 4);
        let mut clear: Vec<Stmt> =
            holed.map(|(word, _)| Stmt::Set(place("uint32_t", 4 * word as u32), int(0))).collect();
        // A processor of 64 bits sends whole words of its own.
        if self.message.registers % 2 == 1 && tail(self.c.emitter, self.message).is_none() {
            let end = place("uint32_t", fixed_bytes(self.message));
            let odd = call("sizeof", [name("quill_word")]).with(">", int(4));
            clear.push(Stmt::If(odd, vec![Stmt::Set(end, int(0))]));
        }
        clear
    }

    /// Elements that a list has room for in registers.
    fn room(&self, ty: TypeId) -> u64 {
        match self.c.emitter.kind(ty) {
            Type::Str { bound, .. } => 4 * bound.unwrap_or(0),
            Type::Sequence(_, bound) => bound.unwrap_or(0),
            _ => 1,
        }
    }

    /// Statements that put the values into the message and leave its tag in `_tag`.
    pub(super) fn pack(&self) -> Vec<Stmt> {
        let e = self.c.emitter;
        let refuse = || Stmt::Return(Some(self.too_long.clone()));
        let mut body = self.agree(&refuse);
        if has_streams(self.message) {
            body.push(Stmt::Announce(Ty::named("quill_out"), "_stream".into()));
            let stream = Some(name("_stream").address());
            body.push(Stmt::Let(Ty::named("quill_out").to(), "_out".into(), stream));
        }
        // A text first: what the values replace may be a part of it.
        if let Some(chunk) = tail(e, self.message) {
            let value = Interface::at(self.spots, &chunk.path);
            let label = int(self.message.label);
            let at = int(fixed_bytes(self.message));
            let bound = characters(e, chunk.ty);
            let put = if e.counted(chunk.ty) {
                let copy = self.copy_of(0, chunk, &mut body);
                call("quill_put_counted_tail", [utcb(), label, at, value, bound, copy, room(e, chunk)])
            } else {
                let put = if self.reply { "quill_put_reply_tail" } else { "quill_put_tail" };
                call(put, [utcb(), label, at, value, bound])
            };
            body.push(Stmt::Set(name("_tag"), put));
            if let Some(levels) = chunk.caches {
                let at = int(fixed_bytes(self.message));
                let hint = call("quill_hint_caches", [utcb(), at, int(levels)]);
                body.push(Stmt::If(call("quill_has_items", [name("_tag")]), vec![Stmt::Do(hint)]));
            }
            let none = unlikely(name("_tag").with("==", int(0)));
            body.push(Stmt::If(none, vec![Stmt::Return(Some(self.too_long.clone()))]));
        }
        body.extend(self.holes());
        for step in &self.plan.fixed {
            self.pack_step(step, &mut body);
        }
        if tail(e, self.message).is_none() {
            for part in &self.plan.variable {
                self.pack_chunk(part, &mut body);
            }
            body.push(Stmt::Set(name("_tag"), tag(self.message)));
        }
        body
    }

    fn pack_step(&self, step: &Step, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let value = Interface::at(self.spots, step.path);
        let (at, ty) = (offset(step), step.ty);
        match step.what {
            What::Value if is_block(e, ty) => {
                let copy = [address(at), start(e, ty, value), int(step.bytes)];
                body.push(Stmt::Do(call("__builtin_memcpy", copy)));
            }
            What::Value => {
                if let Some(wrong) = wrong_bits(e, ty, &value) {
                    body.push(self.refuse_if(wrong));
                }
                body.push(Stmt::Set(place(&e.ty(ty).base, at), value));
            }
            What::Count(_) => {
                let bound = self.room(ty);
                let length = match e.kind(ty) {
                    Type::Str { .. } if e.counted(ty) => {
                        let counted = call("quill_counted_bytes", [value.clone(), characters(e, ty)]);
                        if self.reply {
                            let from = value.field("_buffer");
                            body.push(self.refuse_if(call("quill_in_message", [utcb(), from])));
                        }
                        counted
                    }
                    Type::Str { .. } if self.reply => {
                        call("quill_reply_text_bytes", [utcb(), value, characters(e, ty)])
                    }
                    Type::Str { .. } => call("quill_text_bytes", [value, characters(e, ty)]),
                    _ => value.field("_length"),
                };
                let count = format!("_length_{}", step.number);
                body.push(Stmt::Let(Ty::named("uint32_t"), count.clone(), Some(length)));
                let too_long = unlikely(name(&count).with(">", int(bound)));
                body.push(Stmt::If(too_long, vec![Stmt::Return(Some(self.too_long.clone()))]));
                body.push(Stmt::Set(place("uint32_t", at), name(count)));
            }
            What::Elements(size, None) => {
                body.push(Stmt::Do(call("__builtin_memcpy", [address(at), value, int(size)])));
            }
            What::Elements(size, Some(count)) => {
                let count = name(format!("_length_{count}"));
                let terminated = matches!(e.kind(ty), Type::Str { .. }) && !e.counted(ty);
                let from = if terminated { value } else { value.field("_buffer") };
                let copy = [address(at), from, count.with("*", int(size)), int(step.bytes)];
                body.push(Stmt::Do(call("quill_put_elements", copy)));
            }
            // Only a kernel whose messages have whole words in memory has tails.
            What::Tail(_) | What::Offer(..) => {}
        }
    }

    fn pack_chunk(&self, part: &Variable, body: &mut Vec<Stmt>) {
        let (i, chunk, element) = (part.number, part.chunk, part.element());
        if part.content == Content::Pieces {
            return self.pack_stream(i, chunk, body);
        }
        let e = self.c.emitter;
        let value = Interface::at(self.spots, &chunk.path);
        let at = self.item(i);
        if self.answered && refused_later(e, chunk).is_some() {
            return self.pack_answered(i, chunk, body);
        }
        let (from, bytes, too_long) = match part.content {
            Content::Text(_) if e.counted(chunk.ty) => {
                let copy = self.copy_of(i, chunk, body);
                let bytes = format!("_sent_{i}");
                let arguments = [copy.clone(), room(e, chunk), value, characters(e, chunk.ty)];
                let found = call("quill_copy_counted", arguments);
                body.push(Stmt::Let(Ty::named("size_t"), bytes.clone(), Some(found)));
                (copy, name(&bytes), Some(name(bytes).with("==", int(0))))
            }
            Content::Text(_) => {
                let bytes = format!("_sent_{i}");
                let found = call("quill_item_text", [value.clone(), characters(e, chunk.ty)]);
                body.push(Stmt::Let(Ty::named("size_t"), bytes.clone(), Some(found)));
                (value, name(&bytes), Some(name(bytes).with("==", int(0))))
            }
            Content::List(_) => {
                let length = value.clone().field("_length");
                let most = chunk.bound.unwrap_or(u64::MAX).min(u64::from(ITEM_BYTES_MAX) / element.max(1));
                let bytes =
                    if element == 1 { length.clone() } else { length.clone().with("*", int(element)) };
                (value.field("_buffer"), bytes, Some(length.with(">", int(most))))
            }
            _ => (value, int(element), None),
        };
        if let Some(too_long) = too_long {
            body.push(Stmt::If(unlikely(too_long), vec![Stmt::Return(Some(self.too_long.clone()))]));
        }
        if self.reply {
            body.push(self.refuse_if(call("quill_in_message", [utcb(), from.clone()])));
        }
        body.push(Stmt::Do(call("quill_put_item", [utcb(), at.clone(), from, bytes])));
        if let Some(levels) = chunk.caches {
            body.push(Stmt::Do(call("quill_hint_caches", [utcb(), at, int(levels)])));
        }
    }

    /// Makes an item of a list of which the receiver finds out whether it is too long.
    fn pack_answered(&self, i: usize, chunk: &Chunk, body: &mut Vec<Stmt>) {
        let value = Interface::at(self.spots, &chunk.path);
        let at = self.item(i);
        let element = chunk.element.map_or(1, |element| element.size);
        let [word, too_long] = ["_word", "_long"].map(|variable| format!("{variable}_{i}"));
        body.push(Stmt::Announce(Ty::named("uint32_t"), word.clone()));
        body.push(Stmt::Announce(Ty::named("bool"), too_long.clone()));
        let length = value.clone().field("_length");
        let arguments = [name(&word), name(&too_long), length, int(element)];
        body.push(Stmt::Do(call("QUILL_LIST_WORD", arguments)));
        let refuse = vec![Stmt::Return(Some(self.too_long.clone()))];
        body.push(Stmt::If(unlikely(name(too_long)), refuse));
        body.push(Stmt::Do(call(
            "quill_put_item_word",
            [utcb(), at.clone(), value.field("_buffer"), name(word)],
        )));
        if let Some(levels) = chunk.caches {
            body.push(Stmt::Do(call("quill_hint_caches", [utcb(), at, int(levels)])));
        }
    }

    /// Room on the stack for a counted text and the zero that it gets.
    fn copy_of(&self, i: usize, chunk: &Chunk, body: &mut Vec<Stmt>) -> Expr {
        let copy = format!("_copy_{i}");
        let (ty, size) = match bytes_max(self.c.emitter, chunk) {
            Some(bytes) => ("char", vec![bytes]),
            None => ("quill_unbounded", Vec::new()),
        };
        body.push(Stmt::Announce(Ty { dims: size, ..Ty::named(ty) }, copy.clone()));
        if bytes_max(self.c.emitter, chunk).is_some() { name(copy) } else { name(copy).field("bytes") }
    }

    /// The first byte of an item. On a processor of 64 bits it is rounded up to a word, and so is the fixed part.
    fn item(&self, number: usize) -> Expr {
        let fixed = int(fixed_bytes(self.message));
        if number == 0 {
            return fixed;
        }
        let words = call("sizeof", [name("quill_word")]).with("*", int(2 * number as u32));
        fixed.with("+", words)
    }

    /// Statements that take the values out of a message of the right shape, with every check. `buffer` says where an
    /// item was received.
    pub(super) fn unpack(&self, buffer: &dyn Fn(usize, &Chunk) -> Expr) -> Vec<Stmt> {
        let mut body = self.unpack_parts(buffer);
        for path in pieces::anys(self.c.emitter, self.message) {
            let unsound = pieces::unsound(Interface::at(self.spots, path));
            body.push(self.refuse_if(unsound));
        }
        body.extend(self.agree(&|| Stmt::Return(Some(self.malformed.clone()))));
        body
    }

    /// Statements that check whether what is in structs agrees.
    fn agree(&self, fail: &dyn Fn() -> Stmt) -> Vec<Stmt> {
        let e = self.c.emitter;
        self.spots.iter().flat_map(|(_, ty, value)| agree::fields(e, *ty, value, fail, 0)).collect()
    }

    /// Statements that write a value that is read piece by piece, and make it an item.
    fn pack_stream(&self, i: usize, chunk: &Chunk, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let place = if self.reply { self.reply_room(i) } else { name(format!("_piece_{i}")) };
        if !self.reply {
            let room = match bytes_max(e, chunk) {
                Some(bytes) => Ty { dims: vec![bytes.div_ceil(8)], ..Ty::named("uint64_t") },
                None => Ty::named("quill_unbounded"),
            };
            body.push(Stmt::Announce(room, format!("_piece_{i}")));
        }
        let (begin, room) = (start_of(place.clone()), call("sizeof", [place]));
        let stream = || name("_stream");
        body.push(Stmt::Set(stream(), call("quill_begin_out", [begin.clone(), room])));
        body.extend(pieces::put(e, chunk.ty, Interface::at(self.spots, &chunk.path), 0));
        let status = || stream().field("status");
        let failed = unlikely(status().with("!=", name("QUILL_OK")));
        let why = if self.reply { self.too_long.clone() } else { status() };
        body.push(Stmt::If(failed, vec![Stmt::Return(Some(why))]));
        let item = [utcb(), self.item(i), begin, stream().field("length")];
        body.push(Stmt::Do(call("quill_put_item", item)));
    }

    /// Place in a server for a value of a reply until it is sent.
    fn reply_room(&self, i: usize) -> Expr {
        name("_buffers").deref().field(format!("_reply_{i}"))
    }

    /// Statements that read such a value from where it has arrived.
    fn unpack_stream(&self, i: usize, chunk: &Chunk, buffer: Expr, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let bytes = format!("_bytes_{i}");
        let found = call("quill_item_bytes", [utcb(), self.item(i)]);
        body.push(Stmt::Let(Ty::named("quill_word"), bytes.clone(), Some(found)));
        body.push(self.refuse_if(name(&bytes).with(">", room(e, chunk))));
        body.push(Stmt::Do(call("quill_next_in", [name("_in"), buffer, name(bytes)])));
        body.extend(pieces::get(e, chunk.ty, Interface::at(self.spots, &chunk.path), 0));
        body.push(self.refuse_if(Expr::Not(Box::new(call("quill_is_end", [name("_in")])))));
    }

    /// Statements before values are read piece by piece: memory for lists in them.
    fn begin_streams(&self) -> Vec<Stmt> {
        if !has_streams(self.message) {
            return Vec::new();
        }
        let owner = name(if self.reply { "_room" } else { "_buffers" }).deref();
        let kept = self.kept_bytes(self.plan.fixed.len());
        let memory = owner.field("_memory").cast(Ty::named("char *")).with("+", int(kept));
        let left = name("QUILL_MEMORY_BYTES").with("-", int(kept));
        let given = call("quill_give_memory", [name("_in"), memory, left]);
        vec![
            Stmt::Let(Ty::named("quill_in"), "_pieces".into(), None),
            Stmt::Let(Ty::named("quill_in").to(), "_in".into(), Some(name("_pieces").address())),
            Stmt::Do(given),
        ]
    }

    fn unpack_parts(&self, buffer: &dyn Fn(usize, &Chunk) -> Expr) -> Vec<Stmt> {
        let e = self.c.emitter;
        let mut body = self.begin_streams();
        if self.spills() {
            body.push(Stmt::Do(call("quill_spill", [utcb(), name("_w0"), name("_w1")])));
        }
        for step in &self.plan.fixed {
            self.unpack_step(step, &mut body);
        }
        if let Some(chunk) = tail(e, self.message) {
            let text = format!("_text_{}", self.message.slots.len());
            let place = buffer(0, chunk);
            if chunk.caches.is_some() {
                let forget = call("quill_forget_hints", [utcb(), int(fixed_bytes(self.message))]);
                body.push(Stmt::If(call("quill_has_items", [name("_tag")]), vec![Stmt::Do(forget)]));
            }
            let arguments = [
                utcb(),
                name("_tag"),
                int(self.message.label),
                int(fixed_bytes(self.message)),
                place.clone(),
                room(e, chunk),
                characters(e, chunk.ty),
            ];
            if e.counted(chunk.ty) {
                let value = Interface::at(self.spots, &chunk.path);
                let found = call("quill_get_counted_tail", arguments.into_iter().chain([value.address()]));
                body.push(self.refuse_if(Expr::Not(Box::new(found))));
                return body;
            }
            let found = call("quill_get_tail", arguments);
            body.push(Stmt::Let(Ty::named("const char *"), text.clone(), Some(found)));
            body.push(self.refuse_if(name(&text).with("==", name("NULL"))));
            let value = Interface::at(self.spots, &chunk.path);
            if self.reply && !self.raised {
                body.push(Stmt::Do(call("quill_bring_text", [value, name(text)])));
            } else if self.both_ways || self.raised {
                body.push(Stmt::Do(call("quill_bring_text", [place.clone(), name(text)])));
                body.push(Stmt::Set(value, place));
            } else {
                body.push(Stmt::Set(value, unconst(name(text))));
            }
            return body;
        }
        for part in &self.plan.variable {
            self.unpack_chunk(part, buffer(part.number, part.chunk), &mut body);
        }
        body
    }

    /// Whether something is read as bytes that begins in the first two words.
    fn spills(&self) -> bool {
        let e = self.c.emitter;
        let early = |step: &Step| match step.what {
            What::Value if is_block(e, step.ty) => !taken(step),
            What::Value => step.bytes > 4 || matches!(e.kind(step.ty), Type::Float(_)),
            What::Count(_) | What::Tail(_) | What::Offer(..) => false,
            What::Elements(..) => true,
        };
        self.plan.fixed.iter().any(|step| offset(step) < 8 && early(step))
            || fixed_bytes(self.message) < 8 && !self.message.chunks.is_empty()
    }

    fn unpack_step(&self, step: &Step, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let value = Interface::at(self.spots, step.path);
        let (at, ty) = (offset(step), step.ty);
        match step.what {
            What::Value if is_block(e, ty) => {
                let from = [utcb(), int(at), int(step.bytes), name("_w0"), name("_w1")];
                body.push(Stmt::Do(call("quill_take_out", [start(e, ty, value)].into_iter().chain(from))));
            }
            What::Value => {
                let base = if matches!(e.kind(ty), Type::Bool) { "uint8_t".into() } else { e.ty(ty).base };
                let early = at < 8 && step.bytes <= 4 && !matches!(e.kind(ty), Type::Float(_));
                let found = if early {
                    let word = name(if at < 4 { "_w0" } else { "_w1" });
                    let shift = 8 * (at % 4);
                    let word = if shift > 0 { word.with(">>", int(shift)) } else { word };
                    word.cast(Ty::named(base))
                } else {
                    place(&base, at)
                };
                if matches!(e.kind(ty), Type::Bool) {
                    body.push(self.refuse_if(found.clone().with(">", int(1))));
                    body.push(Stmt::Set(value, found.with("!=", int(0))));
                    return;
                }
                body.push(Stmt::Set(value.clone(), found));
                if let Some(wrong) = wrong_bits(e, ty, &value) {
                    body.push(self.refuse_if(wrong));
                }
            }
            What::Count(_) => {
                let word = match at {
                    0 => name("_w0"),
                    4 => name("_w1"),
                    _ => place("uint32_t", at),
                };
                body.push(Stmt::Let(Ty::named("uint32_t"), format!("_count_{}", step.number), Some(word)));
            }
            What::Tail(_) | What::Offer(..) => {}
            What::Elements(size, count) => self.unpack_elements(step, (size, count), value, body),
        }
    }

    /// Where a list of an exception that arrives in registers is kept: in the memory of the client's room.
    fn kept_list(&self, i: usize) -> Expr {
        let memory = name("_room").deref().field("_memory").cast(Ty::named("char *"));
        memory.with("+", int(self.kept_bytes(i)))
    }

    /// Bytes of memory that such lists before this slot take.
    fn kept_bytes(&self, before: usize) -> i128 {
        let bytes = self.plan.fixed[..before].iter().map(|step| match step.what {
            What::Elements(..) if self.raised => (step.bytes + 1).next_multiple_of(8),
            _ => 0,
        });
        bytes.sum::<u64>().into()
    }

    fn unpack_elements(
        &self,
        step: &Step,
        (size, count): (u64, Option<usize>),
        value: Expr,
        body: &mut Vec<Stmt>,
    ) {
        let (e, i, ty) = (self.c.emitter, step.number, step.ty);
        let from = address(offset(step));
        let Some(count) = count else {
            return body.push(Stmt::Do(call("__builtin_memcpy", [value, from, int(size)])));
        };
        let count = name(format!("_count_{count}"));
        match e.kind(ty) {
            Type::Str { .. } if e.counted(ty) => {
                let to = value.clone().field("_buffer");
                if !self.reply {
                    let text = format!("_text_{i}");
                    let room = Ty { dims: vec![self.room(ty).max(1)], ..Ty::named("char") };
                    body.push(Stmt::Announce(room, text.clone()));
                    body.push(Stmt::Set(to.clone(), name(text)));
                }
                let text = call("quill_get_counted_text", [to, from, count.clone(), characters(e, ty)]);
                body.push(self.refuse_if(Expr::Not(Box::new(text))));
                body.push(Stmt::Set(value.field("_length"), count));
            }
            Type::Str { .. } => {
                let mut to = if self.raised { self.kept_list(i) } else { value.clone() };
                if !self.reply {
                    let text = format!("_text_{i}");
                    let room = Ty { dims: vec![self.room(ty) + 1], ..Ty::named("char") };
                    body.push(Stmt::Let(room, text.clone(), None));
                    to = name(text);
                }
                let text = call("quill_get_text", [to.clone(), from, count, characters(e, ty)]);
                body.push(self.refuse_if(Expr::Not(Box::new(text))));
                if !self.reply || self.raised {
                    body.push(Stmt::Set(value, to));
                }
            }
            Type::Sequence(of, bound) => {
                let bound = bound.unwrap_or(0);
                body.push(self.refuse_if(count.clone().with(">", int(bound))));
                if !self.reply {
                    let list = format!("_list_{i}");
                    let mut room = e.ty(*of);
                    room.dims.insert(0, bound.max(1));
                    body.push(Stmt::Let(room, list.clone(), None));
                    body.push(Stmt::Set(value.clone().field("_buffer"), name(list)));
                } else if self.raised {
                    let kept = self.kept_list(i).cast(Ty::named("void *"));
                    body.push(Stmt::Set(value.clone().field("_buffer"), kept));
                }
                body.push(Stmt::Set(value.clone().field("_length"), count.clone()));
                let size = count.with("*", int(size));
                body.push(Stmt::Do(call("__builtin_memcpy", [value.field("_buffer"), from, size])));
            }
            _ => {}
        }
    }

    /// Whether an item of a reply is in the client's room.
    fn is_in_room(&self, i: usize) -> bool {
        self.in_room.get(i).is_some_and(|is_in_room| *is_in_room)
    }

    fn unpack_chunk(&self, part: &Variable, buffer: Expr, body: &mut Vec<Stmt>) {
        let (i, chunk, element) = (part.number, part.chunk, part.element());
        if part.content == Content::Pieces {
            return self.unpack_stream(i, chunk, buffer, body);
        }
        let e = self.c.emitter;
        let value = Interface::at(self.spots, &chunk.path);
        let bytes = format!("_bytes_{i}");
        if chunk.caches.is_some() {
            body.push(Stmt::Do(call("quill_forget_hints", [utcb(), self.item(i)])));
        }
        let found = call("quill_item_bytes", [utcb(), self.item(i)]);
        body.push(Stmt::Let(Ty::named("quill_word"), bytes.clone(), Some(found)));
        let bytes = name(bytes);
        match part.content {
            Content::Text(_) => {
                let too_long = bytes.clone().with(">", room(e, chunk));
                let text = call("quill_is_text", [buffer.clone(), bytes.clone(), characters(e, chunk.ty)]);
                let length = bytes.clone().with("-", int(1)).cast(Ty::named("uint32_t"));
                body.push(self.refuse_if(too_long.with("||", Expr::Not(Box::new(text)))));
                if e.counted(chunk.ty) {
                    body.push(Stmt::Set(value.clone().field("_length"), length));
                    body.push(Stmt::Set(value.field("_buffer"), buffer));
                } else if !self.reply || self.raised {
                    body.push(Stmt::Set(value, buffer));
                } else if self.is_in_room(i) {
                    body.push(Stmt::Do(call("quill_bring_text", [value, buffer])));
                }
            }
            Content::List(_) => {
                let mut bad = bytes.clone().with(">", room(e, chunk));
                if element > 1 {
                    bad = bad.with("||", bytes.clone().with("%", int(element)).with("!=", int(0)));
                }
                body.push(self.refuse_if(bad));
                let length = if element > 1 { bytes.clone().with("/", int(element)) } else { bytes.clone() };
                body.push(Stmt::Set(value.clone().field("_length"), length.cast(Ty::named("uint32_t"))));
                if !self.reply || self.raised {
                    body.push(Stmt::Set(value.field("_buffer"), buffer.cast(Ty::named("void *"))));
                } else if self.is_in_room(i) {
                    let copy = [value.field("_buffer"), buffer, bytes];
                    body.push(Stmt::Do(call("__builtin_memcpy", copy)));
                }
            }
            _ => {
                body.push(self.refuse_if(bytes.with("!=", int(element))));
                if !self.reply || self.raised || self.is_in_room(i) {
                    body.push(Stmt::Do(call("__builtin_memcpy", [value, buffer, int(element)])));
                }
            }
        }
    }
}
