//! Both sides of `museum.idl` over sockets: `serve PATH` and `call PATH`.

mod stubs {
    include!("museum.rs");
}

use std::collections::HashSet;
use std::os::unix::net::{UnixListener, UnixStream};

use stubs::CORBA::*;
use stubs::Museum::*;
use stubs::rt::{self, Failure, MALFORMED, Shared};

type Held = Option<Shared<Piece>>;

/// Where a value lies that is shared.
fn at<T>(value: &Option<Shared<T>>) -> Option<usize> {
    value.as_ref().map(|value| Shared::as_ptr(value).addr())
}

struct Keeper;

impl Rooms::Server for Keeper {
    fn hang(&mut self, one: &Held, other: &Held) -> Result<(i32, i32), Failure> {
        let (mut pieces, mut names) = (HashSet::new(), HashSet::new());
        for mut piece in [one, other] {
            while let Some(hung) = piece {
                pieces.extend(at(piece));
                names.insert(hung.name.clone());
                piece = &hung.neighbour;
            }
        }
        Ok((pieces.len() as i32, names.len() as i32))
    }
    fn lend(
        &mut self,
        what: &Held,
        lender: &Option<String>,
    ) -> Result<(Option<Shared<Loan>>, Option<Shared<String>>), Rooms::LendError> {
        let Some(piece) = what else {
            let number = lender.as_ref().map(|lender| lender.len() as i32);
            return Err(Rooms::LendError::Missing(Missing { number }));
        };
        let Some(lender) = lender.clone() else { return Ok((None, None)) };
        let (name, caption, neighbour) = (piece.name.clone(), piece.caption.clone(), piece.neighbour.clone());
        let remark = caption.title.clone().map(Shared::new);
        Ok((Some(Shared::new(Loan { name, caption, neighbour, lender })), remark))
    }
    fn describe(&mut self, what: &TypeCode) -> Result<(TypeCode, TypeCode_Kind, u32), Failure> {
        let (mut depth, mut inner) = (1, what);
        while let TypeCode::list(_, TypeCode_List { content: Some(content), .. }) = inner {
            (depth, inner) = (depth + 1, content);
        }
        let kind = match inner {
            TypeCode::none(kind) | TypeCode::bound(kind, _) | TypeCode::record(kind, _) => *kind,
            TypeCode::names(_) => TypeCode_Kind::tk_enum,
            _ => TypeCode_Kind::tk_null,
        };
        let (id, name) = ("IDL:made:1.0".to_owned(), "made".to_owned());
        let content = Some(Box::new(what.clone()));
        Ok((TypeCode::alias(TypeCode_Kind::tk_alias, TypeCode_Alias { id, name, content }), kind, depth))
    }
}

fn values(client: &mut Rooms::Client<UnixStream>) {
    let label = |title: Option<&str>, year| Label { title: title.map(str::to_owned), year };
    let piece = |name: &str, caption: Label, neighbour: &Held| {
        Some(Shared::new(Piece { name: name.into(), caption, neighbour: neighbour.clone() }))
    };
    let last = piece("Door", label(None, None), &None);
    let first = piece("Vase", label(Some("A vase"), Some(-300)), &last);
    let other = piece("Vase", label(None, Some(1900)), &last);
    assert_eq!(client.hang(&first, &other).unwrap(), (3, 2), "the last one is there once");
    assert_eq!(client.hang(&first, &first).unwrap(), (2, 2));
    assert_eq!(client.hang(&None, &None).unwrap(), (0, 0));
    let (loan, remark) = client.lend(&first, &Some("Anna".into())).unwrap();
    let loan = loan.unwrap();
    assert_eq!((loan.name.as_str(), loan.lender.as_str()), ("Vase", "Anna"));
    assert_eq!((&loan.caption, &loan.neighbour), (&label(Some("A vase"), Some(-300)), &last));
    assert_eq!(remark.unwrap().as_str(), "A vase");
    assert!(matches!(client.lend(&first, &None).unwrap(), (None, None)));
    for (lender, number) in [(Some("four".to_owned()), Some(4)), (None, None)] {
        let missing = client.lend(&None, &lender).unwrap_err();
        assert!(matches!(missing, Rooms::LendError::Missing(why) if why.number == number));
    }
    // A title has a bound, and a chain an end.
    let long = piece("Vase", label(Some(&"x".repeat(61)), None), &None);
    assert!(client.hang(&long, &None).is_err());
    let chain = |length| (0..length).fold(None, |chain, _| piece("Coin", label(None, None), &chain));
    assert_eq!(client.hang(&chain(64), &None).unwrap(), (64, 1));
    assert!(matches!(client.hang(&chain(65), &None), Err(Failure::Refused(MALFORMED))));
}

fn descriptions(client: &mut Rooms::Client<UnixStream>) {
    let text = TypeCode::bound(TypeCode_Kind::tk_string, 20);
    let list = |content: TypeCode, length| {
        TypeCode::list(TypeCode_Kind::tk_sequence, TypeCode_List { content: Some(Box::new(content)), length })
    };
    let texts = list(list(text.clone(), 0), 5);
    let (made, kind, depth) = client.describe(&texts).unwrap();
    assert_eq!((kind, depth), (TypeCode_Kind::tk_string, 3));
    let TypeCode::alias(TypeCode_Kind::tk_alias, alias) = made else { panic!("{made:?}") };
    assert_eq!((alias.name.as_str(), alias.content.as_deref()), ("made", Some(&texts)));
    let number = TypeCode::none(TypeCode_Kind::tk_long);
    assert_eq!(client.describe(&number).unwrap().1, TypeCode_Kind::tk_long);
    let itself = TypeCode::around("IDL:node:1.0".into());
    let members = [("value", number), ("next", list(itself, 1))];
    let members = members.map(|(name, ty)| TypeCode_Member { name: name.into(), r#type: Some(Box::new(ty)) });
    let (id, name) = ("IDL:node:1.0".into(), "node".into());
    let node = TypeCode::record(TypeCode_Kind::tk_struct, TypeCode_Record { id, name, members: members.into() });
    let (_, kind, depth) = client.describe(&node).unwrap();
    assert_eq!((kind, depth), (TypeCode_Kind::tk_struct, 1));
    // A label of another branch travels with none of its values.
    assert!(client.describe(&TypeCode::none(TypeCode_Kind::tk_string)).is_err());
    let deep = |length| (1..length).fold(text.clone(), |inner, _| list(inner, 0));
    assert_eq!(client.describe(&deep(64)).unwrap().2, 64);
    assert!(client.describe(&deep(100)).is_err());
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let path = &arguments[2];
    if arguments[1] == "serve" {
        let (mut stream, _) = UnixListener::bind(path).unwrap().accept().unwrap();
        rt::serve(&mut stream, |label, body| Rooms::dispatch(&mut Keeper, label, body)).unwrap();
        return;
    }
    let connect = |_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        UnixStream::connect(path).ok()
    };
    let mut client = Rooms::Client { transport: (0..1000).find_map(connect).expect("somebody serves") };
    values(&mut client);
    descriptions(&mut client);
}
