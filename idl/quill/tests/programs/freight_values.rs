//! A value of each type of freight.idl in an any, in Rust, and whoever looks what type it is. Who includes it has `label` and `numbers`.

use super::freight::CORBA::*;
use super::freight::Freight::*;
use super::freight::quill::*;
use super::{label, numbers};

pub const KINDS: u32 = 19;

fn point() -> Point {
    Point { x: -7, y: 0.5, on: true }
}

fn chest() -> Chest {
    let price = fixed_5_2::new(-12345).unwrap();
    let grid = [[1, 2, 3], [-4, 5, 6]];
    Chest { name: "café".into(), colour: Colour::BLUE, marks: Marks::COLD, grid, price, content: vec![1, 2, 255] }
}

pub fn some_any(which: u32) -> any {
    let bough = |name: &str, boughs| Bough { name: name.into(), boughs };
    let made = match which {
        0 => Colour_to_any(&Colour::GREEN),
        1 => Marks_to_any(&Marks(Marks::FRAGILE.0 | Marks::COLD.0)),
        2 => Label_to_any(&label("label")),
        3 => Text_to_any(&"three".into()),
        4 => Wide_to_any(&"\u{1f600}".into()),
        5 => Bytes_to_any(&chest().content),
        6 => Texts_to_any(&vec!["one".into(), "".into(), "three".into()]),
        7 => Numbers_to_any(&numbers(&[7, -8])),
        8 => Grid_to_any(&[[1, 2, 3], [4, 5, 6]]),
        9 => Price_to_any(&fixed_5_2::new(99999).unwrap()),
        10 => Point_to_any(&point()),
        11 => Chest_to_any(&chest()),
        12 => Bough_to_any(&bough("one", vec![bough("", vec![]), bough("three", vec![])])),
        13 => Load_to_any(&Load::chest(chest())),
        14 => Word_to_any(&Word::from_whole(0x04030201)),
        15 => Nothing_to_any(&Nothing {}),
        16 => {
            let inner = Point_to_any(&point()).unwrap();
            Wrapped_to_any(&Wrapped { inner, at: Some(Box::new(point())) })
        }
        17 => Lost_to_any(&Lost { at: 9, why: "three".into() }),
        _ => TypeCode_to_any(&TypeCode::bound(TypeCode_Kind::tk_string, 5)),
    };
    made.unwrap()
}

/// The numbers of the types that a value is of, and the any made again of what was in it.
pub fn types_of(value: &any) -> Vec<(u32, any)> {
    let mut found = Vec::new();
    macro_rules! look {
        ($($number:literal $from:ident $to:ident)*) => {$(
            if let Some(value) = $from(value) {
                found.push(($number, $to(&value).unwrap()));
            }
        )*};
    }
    look! {
        0 Colour_from_any Colour_to_any
        1 Marks_from_any Marks_to_any
        2 Label_from_any Label_to_any
        3 Text_from_any Text_to_any
        4 Wide_from_any Wide_to_any
        5 Bytes_from_any Bytes_to_any
        6 Texts_from_any Texts_to_any
        7 Numbers_from_any Numbers_to_any
        8 Grid_from_any Grid_to_any
        9 Price_from_any Price_to_any
        10 Point_from_any Point_to_any
        11 Chest_from_any Chest_to_any
        12 Bough_from_any Bough_to_any
        13 Load_from_any Load_to_any
        14 Word_from_any Word_to_any
        15 Nothing_from_any Nothing_to_any
        16 Wrapped_from_any Wrapped_to_any
        17 Lost_from_any Lost_to_any
        18 TypeCode_from_any TypeCode_to_any
    }
    found
}

/// The number of its type, if it is one of the file, and the any made again.
pub fn type_of(value: &any) -> (u32, any) {
    match &types_of(value)[..] {
        [] => (KINDS, value.clone()),
        [one] => one.clone(),
        more => panic!("{more:?}"),
    }
}

/// The bytes of all values, which are the same over each kernel part and in C as well, and their types.
pub fn bytes_of_all() {
    let mut hash = 2166136261u32;
    for which in 0..KINDS {
        let value = some_any(which);
        let (kind, bits, content) = value.parts();
        content.iter().for_each(|byte| hash = (hash ^ u32::from(*byte)).wrapping_mul(16777619));
        assert_eq!(any::from_parts(kind, bits, content).as_ref(), Some(&value));
        assert_eq!(type_of(&value), (which, value.clone()));
        assert!(value.type_code().is_some());
    }
    let values = include_str!("freight_values.h");
    let expected = values.split("#define BYTES_OF_ALL ").nth(1).and_then(|rest| rest.split('u').next());
    assert_eq!(Some(&*hash.to_string()), expected);
    assert_eq!(some_any(10).type_code(), Point_type_code());
    let Some(TypeCode::record(TypeCode_Kind::tk_struct, record)) = Point_type_code() else { panic!() };
    assert_eq!((&*record.id, &*record.name, record.members.len()), ("IDL:Freight/Point:1.0", "Point", 3));
    assert_eq!(record.members[2].r#type.as_deref(), Some(&TypeCode::none(TypeCode_Kind::tk_boolean)));
    let Some(TypeCode::choice(choice)) = Load_type_code() else { panic!() };
    assert_eq!((choice.default_index, choice.cases.len(), choice.cases[1].label), (2, 3, 1));
    let Some(TypeCode::record(TypeCode_Kind::tk_except, _)) = Lost_type_code() else { panic!() };
    assert_eq!(any::from_long(5).type_code(), Some(TypeCode::none(TypeCode_Kind::tk_long)));
    let string = any::from_string("x").unwrap().type_code();
    assert_eq!(string, Some(TypeCode::bound(TypeCode_Kind::tk_string, 0)));
}

/// Contents that are nearly right: they are refused, or what comes of them is a value.
pub fn nearly_right() {
    let (mut refused, mut taken) = (0, 0);
    let mut look = |kind, bits, content: &[u8]| match any::from_parts(kind, bits, content) {
        None => refused += 1,
        Some(value) => {
            let _ = value.type_code();
            taken += types_of(&value).len();
        }
    };
    for which in 0..KINDS {
        let value = some_any(which);
        let (kind, bits, content) = value.parts();
        for at in 0..content.len() {
            for bit in 0..8 {
                let mut content = content.to_vec();
                content[at] ^= 1 << bit;
                look(kind, bits, &content);
            }
        }
        for length in 0..content.len() {
            look(kind, bits, &content[..length]);
            assert!(any::from_parts(kind, bits, &content[..length]).is_none_or(|short| types_of(&short).is_empty()));
        }
        let long = any::from_parts(kind, bits, &[content, &[0; 8]].concat()).unwrap();
        assert!(types_of(&long).is_empty(), "{which}");
        for other in (0..content.len() as u64 + 16).chain([u64::MAX - 7, u64::from(u32::MAX) - 7]) {
            look(kind, other, content);
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} {taken}");
}

/// Values that no type has, each with the right type code: the place of a byte, and the byte.
pub fn no_values() {
    let all: [(u32, usize, u8); 11] = [
        (0, 0, 3),
        (1, 0, 4),
        (2, 0, 21),
        (3, 0, 255),
        (3, 9, b'x'),
        (4, 4, 0xff),
        (5, 3, 0x7f),
        (7, 1, 1),
        (9, 3, 1),
        (10, 16, 2),
        (13, 0, 7),
    ];
    for (which, at, byte) in all {
        let value = some_any(which);
        let (kind, bits, content) = value.parts();
        let mut content = content.to_vec();
        content[bits as usize + at] = byte;
        let value = any::from_parts(kind, bits, &content).unwrap();
        assert_eq!(types_of(&value), [], "{which}");
    }
    // A value that breaks its type's bounds is not made either.
    assert_eq!(Wrapped_to_any(&Wrapped { inner: some_any(0), at: None }).map(|value| type_of(&value).0), Some(16));
}

/// A type within a type within a type …: readers do not go deeper than they have said.
pub fn too_deep() {
    for depth in 1..200 {
        let mut code = Vec::new();
        for _ in 0..depth {
            code.extend([30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        }
        code.extend([0; 4]);
        code.resize(code.len().next_multiple_of(8), 0);
        let value = any::from_parts(any_kind::tk_described, code.len() as u64, &code).unwrap();
        assert_eq!(value.type_code().is_some(), depth <= 64, "{depth}");
    }
}
