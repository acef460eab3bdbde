use super::*;
use crate::view::Text;

#[test]
fn any_value_is_skipped_to_its_end() {
    for value in
        ["null", "true", "-1.5e+3", r#""""#, r#""a\"b""#, "[]", "{}", r#"[1,"]",{"a":[]}]"#]
    {
        for after in ["", ",1", "}", "]", " \n,"] {
            let text = format!(" \t{value}{after}");
            let mut reader = Reader::new(&text);
            reader.skip().expect("a value");
            assert_eq!(text[reader.at..], *after, "{text}");
        }
    }
    for text in ["", " ", ",", "]", "[", "{\"a\":", "\"a", "\"\\\""] {
        assert!(Reader::new(text).skip().is_err(), "{text}");
    }
}

#[test]
fn objects_and_lists_are_read_member_by_member() {
    let text = r#" { "a" : [ 1 , null , -2 ] , "\u0062" : { } , "c":null } "#;
    let mut seen = Vec::new();
    let mut reader = Reader::new(text);
    let read = reader.object(|reader, key| match &*key {
        "a" => {
            reader.list(|reader| reader.integer().map(|n| seen.push(format!("{n:?}"))))?;
            Ok(())
        }
        _ => reader.skip().map(|()| seen.push(key.into_owned())),
    });
    read.and_then(|_| reader.end()).expect("an object");
    assert_eq!(seen, ["Some(1)", "None", "Some(-2)", "b", "c"]);
}

#[test]
fn a_text_that_is_not_json_is_an_error() {
    for text in [
        "",
        "{",
        "{}}",
        "{,}",
        "{a:1}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1]"#,
        "[]",
        "nul",
        "nullx",
        "{\"a\":1}x",
        "{\"\\x\":1}",
        "{\"\u{1}\":1}",
    ] {
        let mut reader = Reader::new(text);
        let read = reader.object(|reader, _| reader.skip()).and_then(|_| reader.end());
        assert!(read.is_err(), "{text}");
    }
}

#[derive(Debug, Default)]
struct Number;

impl<'a> Read<'a> for Number {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        reader.integer().map(|_| ())
    }
}

#[derive(Debug, Default)]
struct Nested;

impl<'a> Read<'a> for Nested {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        match reader.peek() {
            Some(b'[') => reader.list(|reader| Nested.read(reader)).map(|_| ()),
            Some(b'{') => reader
                .object(|reader, key| match &*key {
                    "number" => reader.member(&mut Number, &key, true),
                    _ => reader.member(&mut Nested, &key, true),
                })
                .map(|_| ()),
            _ => reader.skip(),
        }
    }
}

#[test]
fn an_error_names_the_field() {
    let error = read::<Nested>(r#"{"a":{"b":[1,{"number":"x"}]}}"#).expect_err("a string");
    let expected = "a.b[1].number: expected a 32-bit integer, found a string";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn numbers_and_booleans_are_whole_tokens() {
    for text in ["007", "01", "00", "-01", "1.0", "1e3", "2147483648", "\"1\"", "1x", "true", "+1"]
    {
        assert!(Reader::new(text).integer().is_err(), "{text}");
    }
    for text in ["truee", "\"true\"", "1", "[]"] {
        assert!(Reader::new(text).boolean().is_err(), "{text}");
    }
    assert_eq!(Reader::new(" -2147483648,").integer().expect("a number"), Some(i32::MIN));
    assert_eq!(Reader::new("false]").boolean().expect("a boolean"), Some(false));
    assert_eq!(Reader::new("null").boolean().expect("null"), None);
}

#[test]
fn go_zero_values_are_not_set() {
    for (text, is_set) in [
        ("null", false),
        (" false", false),
        ("0", false),
        (r#""""#, false),
        ("true", true),
        ("1", true),
        (r#""0""#, true),
        ("[]", true),
        ("{}", true),
    ] {
        assert_eq!(Reader::new(text).is_set().expect("a value"), is_set, "{text}");
    }
}

#[test]
fn the_nesting_of_values_that_are_read_is_limited() {
    let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read::<Nested>(&nested(128)).is_ok());
    let error = read::<Nested>(&nested(129)).expect_err("too deep");
    assert!(error.to_string().ends_with("expected a list, found a list that is nested too deeply"));
}

/// Strings are read in place or unescaped, with the same result as `serde_json`'s.
#[test]
fn strings_are_read_as_by_another_reader() {
    let pieces = [
        "a",
        "ä",
        "\u{7f}",
        "\u{2028}",
        "\n",
        "\u{0}",
        "\"",
        r"\n",
        r"\/",
        r"\\",
        r#"\""#,
        r"\q",
        r"\",
        r"\u0041",
        r"\u00e4",
        r"\u004",
        r"\u+041",
        r"\u004g",
        r"\ud83d",
        r"\ude00",
        r"\ud83d\ude00",
        r"\uDBFF\uDFFF",
        r"\ud83dx",
        r"\ud83d\n",
        r"\ud83d\u0041",
        r"\u0000",
        r"\b\f\r\t",
        "0123456789abcdef",
    ];
    let mut well_formed = 0;
    for first in pieces {
        for second in pieces {
            for third in pieces {
                let text = format!("\"{first}{second}{third}\"");
                let expected = serde_json::from_str::<String>(&text).ok();
                well_formed += usize::from(expected.is_some());
                let found = read::<Text<'_>>(&text).ok().map(|text| text.0.into_owned());
                assert_eq!(found, expected, "{text}");
            }
        }
    }
    assert!(well_formed > 1000, "{well_formed}");
}
