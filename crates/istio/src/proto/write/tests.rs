use serde_json::json;

use crate::{
    proto::{Message, schema::PROXY_CONFIG},
    release::Release,
};

#[test]
fn fields_are_in_their_order_and_keys_of_maps_are_sorted() {
    let json = json!({
        "meshId": "m", "proxyMetadata": {"B": "2", "A": "1"}, "configPath": "c",
        "readinessProbe": {"httpGet": {"port": 1, "path": "/r"}, "periodSeconds": 3},
    });
    let message = Message::read(*PROXY_CONFIG, &json, Release::NEWEST).map(|one| one.to_json());
    let expected = concat!(
        r#"{"configPath":"c","proxyMetadata":{"A":"1","B":"2"},"meshId":"m","#,
        r#""readinessProbe":{"periodSeconds":3,"httpGet":{"path":"/r","port":1}}}"#,
    );
    assert_eq!(message.as_deref(), Ok(expected));
}

#[test]
fn strings_are_escaped_as_for_html() {
    for (text, json) in [
        ("<a href=\"b\">&", r#""\u003ca href=\"b\"\u003e\u0026""#),
        ("\u{2028}\u{2029}é\u{7f}", "\"\\u2028\\u2029é\u{7f}\""),
        ("\n\r\t\u{8}\u{c}\u{1}\\", r#""\n\r\t\b\f\u0001\\""#),
    ] {
        let mut out = String::new();
        super::text(&mut out, text);
        assert_eq!(out, json);
        assert_eq!(serde_json::from_str::<String>(&out).ok().as_deref(), Some(text));
    }
}
