use super::*;

/// All texts of up to five of the characters that mean something.
#[test]
fn the_translation_of_any_text_ends() {
    const CHARS: &str = r"[]:^-\QE{}x1?é";
    let chars: Vec<char> = CHARS.chars().collect();
    let mut texts = vec![String::new()];
    for _ in 0..5 {
        texts = texts
            .iter()
            .flat_map(|text| chars.iter().map(move |char| format!("{text}{char}")))
            .inspect(|text| drop(translate(text)))
            .collect();
    }
}

#[test]
fn a_byte_of_any_kind_is_refused_as_in_go() {
    for invalid in [r"\C", r"a\Cb", r"[\C]"] {
        assert_eq!(translate(invalid), Err(INVALID_ESCAPE), "{invalid}");
    }
}

#[test]
fn a_class_that_ends_before_its_name_is_a_set() {
    assert_eq!(translate("[[:]").as_deref(), Ok("[\\x{5b}\\x{3a}]"));
    assert_eq!(translate("[[:^alpha:]]").as_deref(), Ok("[[:^alpha:]]"));
    for invalid in ["[[::]]", "[[:^:]]", "[[:x:]]", "[[:^^alpha:]]"] {
        assert_eq!(translate(invalid), Err(INVALID_RANGE), "{invalid}");
    }
}
