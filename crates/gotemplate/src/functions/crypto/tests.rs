//! Values are those of Go and of sprig's documentation.

use super::{bcrypt, decrypt, encrypt};
use crate::{Context, Functions, Limits, Template, Value};

fn render(template: &str) -> Result<String, String> {
    let template = Template::parse("t", template, &Functions::sprig()).expect("it must parse");
    let result = template.execute(&Value::Nil, &mut Context::default());
    result.map_err(|problem| problem.to_string())
}

#[test]
fn passwords_are_derived_as_by_go() {
    for (kind, password) in [
        ("maximum", "pf4zS1LjCg&LjhsZ7T2~"),
        ("long", "ZedaFaxcZaso9*"),
        ("short", "Zed5"),
        ("nope", "cannot find password template nope"),
    ] {
        let template =
            format!("{{{{ derivePassword 1 \"{kind}\" \"password\" \"user\" \"example.com\" }}}}");
        assert_eq!(render(&template).as_deref(), Ok(password));
    }
}

#[test]
fn go_s_encrypted_text_is_decrypted() {
    let encrypted = b"30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ=";
    assert_eq!(decrypt(b"secretkey", encrypted).as_deref(), Ok(&b"plaintext"[..]));
    assert_eq!(
        decrypt(b"other", encrypted).expect_err("it must fail"),
        "runtime error: slice bounds out of range [:-160]"
    );
}

#[test]
fn texts_of_each_length_come_back() {
    for length in 0..50 {
        let text = vec![b'x'; length];
        let encrypted = encrypt(b"key", &text).expect("there must be chance");
        assert_eq!(decrypt(b"key", encrypted.as_bytes()), Ok(text));
    }
}

#[test]
fn hashes_verify() {
    let hash = bcrypt(b"secret").expect("there must be chance");
    assert!(hash.starts_with("$2a$10$"), "{hash}");
    assert_eq!(bcrypt::verify("secret", &hash).ok(), Some(true));
    assert_ne!(bcrypt(b"secret"), Ok(hash));
    let line = render("{{ htpasswd \"user\" \"secret\" }}").expect("it must render");
    let hash = line.strip_prefix("user:").expect("the user must come first");
    assert_eq!(bcrypt::verify("secret", hash).ok(), Some(true));
}

#[test]
fn costly_functions_use_up_the_steps() {
    let text = "{{ bcrypt \"\" }}{{ bcrypt \"\" }}{{ bcrypt \"\" }}";
    let template = Template::parse("t", text, &Functions::sprig()).expect("it must parse");
    let limits = Limits { steps: 25_000, ..Limits::default() };
    let mut context = Context { limits, ..Context::default() };
    let problem =
        template.execute(&Value::Nil, &mut context).expect_err("it must fail").to_string();
    assert!(problem.ends_with("takes more than 25000 steps"), "{problem}");
}
