//! Tests with a device of the test's own, and clients that only note what they are told.

use super::*;
use rt::sys::Flags;
use std::vec;

/// A line whose other side is the test.
#[derive(Default, Debug)]
struct Line {
    /// Bytes that somebody has typed, and nobody has read.
    typed: VecDeque<u8>,
    /// Bytes that were sent.
    sent: Vec<u8>,
    /// Bytes that it takes before it has to be emptied.
    room: usize,
    /// Whether something that it took has not left it.
    is_holding: bool,
    shown: Vec<u8>,
    enabled: (usize, bool),
}

impl Device for Line {
    const SEND_MAX: usize = 16;

    fn receive(&mut self) -> Option<u8> {
        self.typed.pop_front()
    }

    fn can_send(&self) -> bool {
        self.room >= Line::SEND_MAX
    }

    fn send(&mut self, bytes: &[u8]) {
        assert!((1..=Line::SEND_MAX).contains(&bytes.len()));
        self.room -= bytes.len();
        self.is_holding = true;
        self.sent.extend(bytes);
    }

    fn is_sending(&self) -> bool {
        self.is_holding
    }

    fn enable(&mut self, input: usize, output: bool) {
        self.enabled = (input, output);
    }

    fn is_pending(&mut self) -> bool {
        self.enabled.0 > 0 && !self.typed.is_empty()
    }

    fn show(&mut self, bytes: &[u8]) {
        self.shown.extend(bytes);
    }
}

/// Answers in the order in which they were given, and those who do not wait any more.
#[derive(Default, Debug)]
struct Told {
    answers: Vec<(Uid, Result<Answer, Status>)>,
    dead: Vec<Uid>,
    now_ns: u64,
    /// Verdict about every thread.
    verdict: Option<Result<(), Status>>,
}

impl Clients for Told {
    fn answer(&mut self, client: Uid, answer: Result<Answer, Status>) -> bool {
        let lives = !self.dead.contains(&client);
        if lives {
            self.answers.push((client, answer));
        }
        lives
    }

    fn admit(&mut self, _: Uid) -> Option<Result<(), Status>> {
        self.verdict
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

const A: Uid = Uid(0x1001);
const B: Uid = Uid(0x2001);
const C: Uid = Uid(0x3001);

fn terminal(room: usize) -> Terminal<Line, Told> {
    Terminal::new(Line { room, ..Line::default() }, Told::default())
}

fn write(bytes: &[u8], more: bool) -> Result<Request, Status> {
    Ok(Request::Write { text: take(bytes).0, more })
}

fn read(len_max: u32) -> Result<Request, Status> {
    Ok(Request::Read { len_max })
}

impl Terminal<Line, Told> {
    fn does(&mut self, client: Uid, request: Result<Request, Status>) {
        self.ask(client, request);
        self.work();
    }

    /// All that a client was told since the last time, as text.
    fn told(&mut self, client: Uid) -> Vec<std::string::String> {
        let all = core::mem::take(&mut self.clients.answers);
        let (answers, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, _)| *of == client);
        self.clients.answers = others;
        let text = |(_, answer): (Uid, Result<Answer, Status>)| match answer {
            Ok(Answer::Read(text)) => std::string::String::from_utf8_lossy(&text).into_owned(),
            Ok(Answer::Write) => "written".into(),
            Ok(Answer::Drain) => "drained".into(),
            Ok(Answer::Watch) => "key".into(),
            Err(status) => status.describe().into(),
        };
        answers.into_iter().map(text).collect()
    }
}

#[test]
fn input_stays_outside_until_somebody_wants_it() {
    let mut terminal = terminal(1000);
    terminal.device.typed.extend(b"hello");
    terminal.work();
    assert_eq!((terminal.device.typed.len(), terminal.device.enabled), (5, (0, false)));
    terminal.does(A, read(2));
    assert_eq!((terminal.told(A), terminal.device.typed.len()), (vec!["he".into()], 3));
    // A reader that went away has its bytes read; they are the next one's.
    terminal.clients.dead.push(A);
    terminal.does(A, read(2));
    assert_eq!((terminal.told(A), terminal.device.typed.len()), (vec![], 1));
    terminal.does(B, read(100));
    assert_eq!(terminal.told(B), ["llo"]);
    terminal.does(B, read(0));
    assert_eq!(terminal.told(B), [Status::BadRequest.describe()]);
    terminal.does(B, Err(Status::BadRequest));
    assert_eq!(terminal.told(B), [Status::BadRequest.describe()]);
}

#[test]
fn one_reader_after_the_other() {
    let mut terminal = terminal(1000);
    for (client, len) in [(A, 1), (B, 2), (C, 3)] {
        terminal.does(client, read(len));
    }
    assert_eq!(terminal.device.enabled, (1, false));
    terminal.device.typed.extend(b"abcde");
    terminal.work();
    assert_eq!((terminal.told(A), terminal.told(B)), (vec!["a".into()], vec!["bc".into()]));
    assert_eq!(terminal.told(C), ["de"]);
}

#[test]
fn the_key_goes_to_the_last_who_watches() {
    let mut terminal = terminal(1000);
    terminal.device.typed.push_back(INTERRUPT_KEY);
    terminal.does(A, read(9));
    assert_eq!(terminal.told(A), ["\u{3}"], "nobody watches, so it is input");
    terminal.does(A, Ok(Request::Watch));
    terminal.does(B, Ok(Request::Watch));
    assert_eq!(terminal.told(A), [Status::Busy.describe()]);
    terminal.device.typed.extend(b"x\x03y");
    terminal.work();
    assert_eq!(terminal.told(B), ["key"]);
    // Nobody watches any more, so the rest is not read ahead.
    assert_eq!((terminal.device.typed.len(), terminal.device.enabled.0), (1, 0));
    terminal.does(A, read(9));
    assert_eq!(terminal.told(A), ["xy"]);
    // Much that is typed while somebody watches stays outside.
    terminal.does(B, Ok(Request::Watch));
    terminal.device.typed.extend([b'z'; 1000]);
    terminal.work();
    assert_eq!((terminal.device.typed.len(), terminal.device.enabled.0), (1000 - INPUT_LEN_MAX, 0));
}

#[test]
fn lines_do_not_mix() {
    let mut terminal = terminal(1000);
    terminal.does(A, write(b"the first ", true));
    terminal.does(B, write(b"the second\n", false));
    assert_eq!((terminal.told(A), terminal.told(B)), (vec!["written".into()], vec![]));
    terminal.does(A, write(b"line\n", false));
    assert_eq!((terminal.told(A), terminal.told(B)), (vec!["written".into()], vec!["written".into()]));
    assert_eq!(terminal.device.sent, b"the first line\r\nthe second\r\n");
    assert_eq!(terminal.device.shown, terminal.device.sent);
    // A client that never ends its line keeps nobody for ever.
    terminal.does(A, write(b"and ", true));
    terminal.ask(B, write(b"others\n", false));
    assert_ne!(terminal.work(), Timeout::NEVER);
    assert_eq!(terminal.told(B), Vec::<std::string::String>::new());
    terminal.clients.now_ns += LINE_PATIENCE_NS;
    assert_eq!(terminal.work(), Timeout::NEVER);
    assert_eq!(terminal.told(B), ["written"]);
}

#[test]
fn a_line_that_takes_nothing_holds_up_writers_alone() {
    let mut terminal = terminal(0);
    let mut count = 0;
    loop {
        terminal.does(A, write(&[b'.'; TEXT_LEN_MAX], false));
        if terminal.told(A).is_empty() {
            break;
        }
        count += 1;
    }
    assert!((2..OUTPUT_LEN_MAX / TEXT_LEN_MAX).contains(&count));
    // Readers and watchers are served all the same.
    terminal.device.typed.extend(b"a\x03");
    terminal.does(B, read(1));
    assert_eq!(terminal.told(B), ["a"]);
    terminal.does(B, Ok(Request::Watch));
    assert_eq!(terminal.told(B), ["key"]);
    terminal.does(C, Ok(Request::Drain));
    assert!(terminal.told(C).is_empty());
    // Room is for so many that wait; one more is told.
    for number in 0..QUEUE_LEN_MAX as u64 {
        terminal.does(Uid(0x10000 + number), write(b".", false));
    }
    assert_eq!(terminal.told(Uid(0x10000 + QUEUE_LEN_MAX as u64 - 1)), [Status::Busy.describe()]);
    // All of it goes out when it can, and the line is drained when the device has given the last of it away, too.
    let all = (count + 1) * TEXT_LEN_MAX + QUEUE_LEN_MAX - 1;
    terminal.device.room = all + Line::SEND_MAX;
    for _ in 0..10 {
        terminal.work();
    }
    assert_eq!((terminal.device.sent.len(), terminal.told(C).len()), (all, 0));
    terminal.device.is_holding = false;
    terminal.work();
    assert_eq!(terminal.told(C), ["drained"]);
}

fn below(seed: &mut u64, end: u64) -> u64 {
    *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    (*seed >> 33) % end
}

/// Whatever clients ask for and whoever goes away: each byte that is typed is read once, in order, and each that was acknowledged is sent once.
#[test]
fn nothing_is_lost_or_said_twice() {
    for seed in 0..200u64 {
        let mut random = seed;
        let mut below = |end| below(&mut random, end);
        let mut terminal = terminal(0);
        let (mut typed, mut came) = (0u64, Vec::new());
        let mut count = 0;
        for _ in 0..500 {
            let client = Uid(0x1001 + 0x1000 * below(6));
            match below(8) {
                0 | 1 => terminal.ask(client, read(1 + below(100) as u32)),
                2 | 3 => {
                    let bytes: Vec<u8> = (0..below(70)).map(|_| b"ab\n"[below(3) as usize]).collect();
                    terminal.ask(client, write(&bytes, below(3) == 0));
                }
                4 => terminal.ask(client, Ok(Request::Watch)),
                5 => {
                    // Every byte but the key.
                    for _ in 0..below(80) {
                        terminal.device.typed.push_back(b'a' + (typed % 26) as u8);
                        typed += 1;
                    }
                }
                6 => terminal.device.room = below(200) as usize,
                _ => terminal.clients.dead = if below(2) == 0 { vec![client] } else { vec![] },
            }
            terminal.clients.now_ns += below(2) * LINE_PATIENCE_NS;
            terminal.work();
            assert!(terminal.output.len() <= OUTPUT_LEN_MAX && terminal.input.len() <= INPUT_LEN_MAX);
            for (_, answer) in terminal.clients.answers.drain(..) {
                count += 1;
                if let Ok(Answer::Read(text)) = answer {
                    assert!(!text.is_empty());
                    came.extend(text.iter().copied());
                }
            }
        }
        came.extend(terminal.input.iter().chain(&terminal.device.typed));
        let expected: Vec<u8> = (0..typed).map(|number| b'a' + (number % 26) as u8).collect();
        assert!(came == expected, "seed {seed}");
        let taken = [&terminal.device.sent[..], &terminal.output.make_contiguous()[..]].concat();
        assert!(terminal.device.shown == taken, "seed {seed}");
        assert!(count > 50, "seed {seed}: {count} answers");
    }
}

/// A request to drain, as it comes.
fn drain(sender: Uid) -> Message {
    let message = |label| Message {
        kind: Kind::Request,
        flags: Flags(Kind::Request as u32),
        label,
        sender,
        words: [0; 8],
    };
    let is_drain = |message: &Message| matches!(Request::read(message), Ok(Request::Drain));
    // A label is the number of an interface, and from the other end that of a method.
    let labels =
        (0..64).flat_map(|interface| (0..16_u32).map(move |method| interface | method.reverse_bits()));
    labels.map(message).find(is_drain).expect("it has a label")
}

/// Clients that were answered, and the reasons for which they were refused.
fn answered(terminal: &Terminal<Line, Told>) -> Vec<(Uid, Option<Status>)> {
    let answers = terminal.clients.answers.iter();
    answers.map(|(client, answer)| (*client, answer.as_ref().err().copied())).collect()
}

#[test]
fn strangers_are_refused() {
    let mut terminal = terminal(1000);
    terminal.clients.verdict = Some(Err(Status::Denied));
    terminal.accept(&drain(A));
    terminal.accept(&Message { label: u32::MAX, ..drain(B) });
    assert_eq!(terminal.work(), Timeout::NEVER);
    assert_eq!(answered(&terminal), [(A, Some(Status::Denied)), (B, Some(Status::Denied))]);
}

#[test]
fn who_is_not_known_yet_waits_and_holds_nobody_up() {
    let mut terminal = terminal(1000);
    terminal.accept(&drain(A));
    // The second time, the first request is given up.
    terminal.accept(&drain(A));
    assert_eq!(terminal.work(), Timeout::from_us(ADMISSION_US));
    assert!(terminal.clients.answers.is_empty());
    terminal.clients.verdict = Some(Ok(()));
    terminal.accept(&drain(B));
    terminal.work();
    assert_eq!(answered(&terminal), [(B, None), (A, None)]);
    // No more wait than may.
    terminal.clients.answers.clear();
    terminal.clients.verdict = None;
    for number in 0..=QUEUE_LEN_MAX as u64 {
        terminal.accept(&drain(Uid(0x1001 + 0x1000 * number)));
    }
    let last = Uid(0x1001 + 0x1000 * QUEUE_LEN_MAX as u64);
    assert_eq!(answered(&terminal), [(last, Some(Status::Busy))]);
}
