use proptest::{collection::vec as list, prelude::*, sample::select};

use super::*;

/// The obvious, slow implementation.
fn container_end_slowly(text: &[u8], begin: usize) -> Option<usize> {
    let mut depth = 1;
    let mut in_string = false;
    let mut at = begin;
    while at < text.len() {
        match text[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Checks a text at every offset within a block.
fn at_every_offset(text: &str, check: impl Fn(&[u8], usize)) {
    for length in 0..2 * BLOCK {
        let padded = format!("{}{text}", "x".repeat(length));
        check(padded.as_bytes(), length);
    }
}

#[test]
fn a_container_ends_where_its_bracket_closes() {
    for text in [
        r#"],"next":]"#,
        r#""a":{"b":[{},[]],"]":"}"}},"next":1}"#,
        r#""\"]\\","\\\"}",""],[""#,
        r#"{"f:spec":{"k:{\"name\":\"c\"}":{".":{},"f:x\\":{}}}},{"a":"\\\\\""}]]"#,
        r#""a much longer string, longer than a block of sixty-four bytes: ]}]}]}]}"]"#,
    ] {
        let end = container_end_slowly(text.as_bytes(), 0).expect("an end");
        at_every_offset(text, |bytes, at| {
            assert_eq!(container_end(bytes, at), Some(at + end), "{text} at {at}");
        });
    }
}

#[test]
fn an_unclosed_container_has_no_end() {
    for text in ["", "[", "{}", r#""]"#, r#""\"]"#, r#"["a","b\"#, r#"{"a":[}"#] {
        at_every_offset(text, |bytes, at| {
            assert_eq!(container_end(bytes, at), None, "{text}");
            assert_eq!(list_end(bytes, at), None, "{text}");
        });
    }
}

#[test]
fn deep_nesting_is_counted() {
    let deep = "[{\"a\":".repeat(5000) + "1" + &"}]".repeat(5000);
    assert_eq!(list_end(deep.as_bytes(), 1), Some(deep.len() - 1));
}

#[test]
fn a_list_ends_where_its_bracket_closes() {
    for text in [
        r#"],"next":1"#,
        r#"]},"next":1"#,
        r#"{"f:name":{},"k:{\"name\":\"c\"}":{".":{}}}]},"spec":{}"#,
        r#""],",","],"next":1"#,
        r#""]},","a"]},"next":1"#,
        r#""]}","a"],"next":1"#,
        r#""],\"a",1],"next":1"#,
        r#"[1],"a"],"next":1"#,
        r#"{"a":[]},"b"],"next":1"#,
        r#""[","a"],"next":1"#,
        r#"1],"":1"#,
        r#"{}]}],"next":1"#,
        r#""]}],","a"]}],"next":1"#,
        r"{}]]",
    ] {
        let end = container_end_slowly(text.as_bytes(), 0).expect("an end");
        at_every_offset(text, |bytes, at| {
            assert_eq!(list_end(bytes, at), Some(at + end), "{text} at {at}");
        });
    }
}

proptest! {
    #[test]
    fn anything_ends_where_it_does(items in list(any_json(), 0..8), tail in tail()) {
        let text = format!("[{}]{tail}", items.join(","));
        prop_assert_eq!(list_end(text.as_bytes(), 1), container_end_slowly(text.as_bytes(), 1));
        let members: Vec<_> = items.iter().map(|item| format!("\"a\":{item}")).collect();
        let text = format!("{{{}}}{tail}", members.join(","));
        prop_assert_eq!(container_end(text.as_bytes(), 1), container_end_slowly(text.as_bytes(), 1));
    }
}

fn tail() -> impl Strategy<Value = &'static str> {
    select(&["", ",\"a\":1}", "},\"a\":1}", "]", "}}", " ,\"a\":1}"][..])
}

/// JSON with many endings of lists, inside strings and outside of them.
fn any_json() -> impl Strategy<Value = String> {
    let string = || {
        let text = r#"([\[\]{}",:\\ ab]|\],"|\},"|\]\},"|\}\],"){0,6}"#;
        text.prop_map(|text| serde_json::to_string(&text).expect("a string"))
    };
    prop_oneof![Just("null".to_owned()), string()].prop_recursive(4, 32, 4, move |inner| {
        let member = (string(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
        prop_oneof![
            list(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            list(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

#[test]
fn a_list_without_lists_ends_where_the_text_proves_it() {
    for (text, end) in [
        (r#"{"f:name":{},"k:{\"name\":\"c\"}":{".":{}}}]},"spec":{}"#, Some(43)),
        (r#"1],"next":1"#, Some(1)),
        (r#"1],"":1"#, None),
        (r#"1],"1":1"#, None),
        (r"1],1", None),
        (r#"1]}],"next":1"#, None),
        (r#""],","a"],"next":1"#, None),
        (r#"[1]],"next":1"#, None),
    ] {
        assert_eq!(flat_list_end(text.as_bytes(), 0), end, "{text}");
    }
}

#[test]
fn a_scalar_ends_before_its_delimiter() {
    for scalar in ["", "0", "null", "-12.5e+300", "123456789012345", "1234567890123456[{\""] {
        for delimiter in [",", "}", "]", ":", " ", "\t", "\n", "\r", "\u{1}", ""] {
            for rest in 0..=LANE {
                let text = format!("{scalar}{delimiter}{}", "x".repeat(rest));
                let expected = if delimiter.is_empty() { text.len() } else { scalar.len() };
                assert_eq!(scalar_len(text.as_bytes()), expected, "{text}");
            }
        }
    }
}

#[test]
fn a_closing_bracket_without_an_opening_one_is_an_end() {
    assert_eq!(Nesting::default().end_in(b"{}"), Some(1));
    assert_eq!(Nesting::default().end_in(b"]{}"), Some(0));
}

#[test]
fn plain_strings_of_any_length_end_at_their_quote() {
    let after = "x".repeat(LANE);
    for length in 0..=3 * LANE {
        let plain = "x".repeat(length);
        let text = format!("{plain}\"{after}");
        assert_eq!(plain_string_end(text.as_bytes(), 0), Some(length), "{text}");
        let is_whole = (length + 1) % LANE == 0;
        let at_the_end = &text.as_bytes()[..=length];
        assert_eq!(plain_string_end(at_the_end, 0), is_whole.then_some(length), "{text}");
        for odd in ["\\n", "\\\"", "\t", "\\"] {
            let text = format!("{plain}{odd}x\"{after}");
            assert_eq!(plain_string_end(text.as_bytes(), 0), None, "{text}");
        }
        let text = format!("{plain}ü€\"{after}");
        assert_eq!(plain_string_end(text.as_bytes(), 0), Some(length + 5), "{text}");
    }
}

#[test]
fn a_string_ends_at_its_quote() {
    for (text, length, is_plain) in [
        (r#"""#, 0, true),
        (r#"a","b""#, 1, true),
        (r#"a longer string, ends here","b""#, 26, true),
        (r#"\"""#, 2, false),
        (r#"\\","#, 2, false),
        (r#"ein längerer Text über \n""#, 27, false),
        ("a\tb\"", 3, false),
    ] {
        at_every_offset(text, |bytes, at| {
            let end = at + length;
            assert_eq!(string_end(bytes, at), Some(end), "{text} at {at}");
            let padded = [bytes, &[b'"'; LANE]].concat();
            let plain = is_plain.then_some(end);
            assert_eq!(plain_string_end(&padded, at), plain, "{text} at {at}");
        });
    }
    for text in ["", "a", r"a\", r#"\""#, "a string without an end"] {
        at_every_offset(text, |bytes, at| assert_eq!(string_end(bytes, at), None, "{text}"));
    }
}
