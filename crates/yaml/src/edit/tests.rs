use serde_json::json;

use super::*;

fn edited(text: &str, change: impl Fn(&mut Value)) -> String {
    let format = if text.starts_with('{') { Format::Json } else { Format::Yaml };
    let before = read(text, format).expect("valid");
    let mut after = before.clone();
    change(&mut after);
    let edited = edit(text, format, &before, &after).expect("an edit in place");
    let back = edit(&edited, format, &after, &before).expect("an edit back");
    assert_eq!(back, text, "there and back:\n{edited}");
    edited
}

#[test]
fn comments_quotes_and_order_stay() {
    let text = "\
# head
kind: 'Deployment'   # quoted
spec:
    replicas: 0o17
    list:
      # the first
      - name: \"web\"   # its name
        ports: [ 80, 443 ]
        args:
        - |
          a
          b

      # at the end of the list
    text: >-
      folded
      text

# trailing
";
    let found = edited(text, |value| {
        let spec = value["spec"].as_object_mut().expect("a mapping");
        spec["list"].as_array_mut().expect("a list").push(json!({"name": "proxy", "env": [1]}));
        spec["list"].as_array_mut().expect("a list").insert(0, json!({"name": "first"}));
        spec["list"][1]["ports"].as_array_mut().expect("a list").push(json!(8080));
        spec["list"][1]["args"].as_array_mut().expect("a list").push(json!("c\nd\n"));
        spec.insert("new".to_owned(), json!({"a": {"b": "no"}}));
    });
    let expected = "\
# head
kind: 'Deployment'   # quoted
spec:
    replicas: 0o17
    list:
      - name: first
      # the first
      - name: \"web\"   # its name
        ports: [ 80, 443, 8080 ]
        args:
        - |
          a
          b
        - |
          c
          d
      - name: proxy
        env:
          - 1

      # at the end of the list
    text: >-
      folded
      text
    new:
        a:
            b: \"no\"

# trailing
";
    assert_eq!(found, expected);
}

#[test]
fn a_text_without_a_last_line_break_keeps_none() {
    let found = edited("a:\n- b", |value| {
        value["a"].as_array_mut().expect("a list").push(json!("c"));
        value["d"] = json!({"e": 1});
    });
    assert_eq!(found, "a:\n- b\n- c\nd:\n  e: 1");
}

#[test]
fn line_breaks_stay_those_of_the_document() {
    let found = edited("a:\r\n  b: c\r\n", |value| value["a"]["d"] = json!([1]));
    assert_eq!(found, "a:\r\n  b: c\r\n  d:\r\n  - 1\r\n");
}

#[test]
fn empty_lines_that_belong_to_a_text_stay_with_it() {
    let found = edited("a:\n  b: |+\n    c\n\n\nd: e\n", |value| value["a"]["f"] = json!(1));
    assert_eq!(found, "a:\n  b: |+\n    c\n\n\n  f: 1\nd: e\n");
    let found = edited("a:\n  b: |\n    c\n\n\nd: e\n", |value| value["a"]["f"] = json!(1));
    assert_eq!(found, "a:\n  b: |\n    c\n  f: 1\n\n\nd: e\n");
}

#[test]
fn json_keeps_its_spacing() {
    let add = |value: &mut Value| {
        value["b"]["new"] = json!({"x": [1, {}]});
        value["c"].as_array_mut().expect("a list").insert(0, json!("first"));
    };
    assert_eq!(
        edited(r#"{"a":1,"b":{"k":"v"},"c":[2]}"#, add),
        r#"{"a":1,"b":{"k":"v","new":{"x":[1,{}]}},"c":["first",2]}"#
    );
    assert_eq!(
        edited("{\n\t\"b\": {\n\t\t\"k\": 1\n\t},\n\t\"c\": [\n\t\t2\n\t]\n}\n", add),
        "{\n\t\"b\": {\n\t\t\"k\": 1,\n\t\t\"new\": {\n\t\t\t\"x\": [\n\t\t\t\t1,\n\t\t\t\t{}\n\t\t\t]\n\t\t}\n\t},\
         \n\t\"c\": [\n\t\t\"first\",\n\t\t2\n\t]\n}\n"
    );
}

#[test]
fn what_becomes_or_stops_being_empty_is_replaced() {
    let text = "m: {} # none\nl: []\nk:\nf: {a: {}, b: 1}\nlast: x\n";
    let format = Format::Yaml;
    let before = read(text, format).expect("valid");
    let after =
        json!({"m": {"a": 1}, "l": [1], "k": {"b": 2}, "f": {"a": {"c": "d e"}}, "last": []});
    let found = edit(text, format, &before, &after).expect("an edit in place");
    assert_eq!(found, "m: # none\n  a: 1\nl:\n- 1\nk:\n  b: 2\nf: {a: {c: d e}}\nlast: []\n");
}

#[test]
fn what_an_anchor_repeats_is_not_edited() {
    let text = "a: &x\n  b: 1\nc: *x\n";
    let before = read(text, Format::Yaml).expect("valid");
    let mut after = before.clone();
    after["a"]["b"] = json!(2);
    assert_eq!(edit(text, Format::Yaml, &before, &after), None);
    assert_eq!(
        rewrite("# head\n\na: &x\n", Format::Yaml, &after),
        "# head\n\na:\n  b: 2\nc:\n  b: 1\n"
    );
    after = before.clone();
    after["d"] = json!("e");
    assert!(edit(text, Format::Yaml, &before, &after).is_some());
}

#[test]
fn keys_of_other_types_are_the_strings_that_kubernetes_reads() {
    let found = edited("on: 1\n1: 2\n'yes': 3\n", |value| {
        value["true"] = json!({"a": 1});
        value["1"] = json!(5);
    });
    assert_eq!(found, "on:\n  a: 1\n1: 5\n'yes': 3\n");
}

#[test]
fn comments_that_are_deeper_stay_with_the_item_before_them() {
    let text = "a:\n- name: b\n  # c: d\n# of the next\ne:\n  f: g\n    # deep\n";
    let found = edited(text, |value| {
        value["a"].as_array_mut().expect("a list").push(json!("new"));
        value["h"] = json!(1);
    });
    assert_eq!(
        found,
        "a:\n- name: b\n  # c: d\n- new\n# of the next\ne:\n  f: g\n    # deep\nh: 1\n"
    );
}

#[test]
fn comments_in_flow_style_stay_with_their_part() {
    let text = "a: [\n  # of b\n  b, # b\n  c # c\n]\nd: {\n  e: 1, # e\n}\n";
    let found = edited(text, |value| {
        let list = value["a"].as_array_mut().expect("a list");
        list.insert(0, json!("first"));
        list.insert(2, json!("middle"));
        list.extend([json!("last"), json!(2)]);
        value["d"]["f"] = json!(2);
    });
    assert_eq!(
        found,
        "a: [\n  first,\n  # of b\n  b, # b\n  middle,\n  c, # c\n  last,\n  2\n]\nd: {\n  e: 1, # e\n  f: 2,\n}\n"
    );
}

#[test]
fn anchors_elsewhere_and_tags_are_not_in_the_way() {
    let text = "\u{feff}a: &l\n# c\n- b\nc: *l\nd: &m {}\ne: !!map {}\nf: &s x\n";
    let format = Format::Yaml;
    let before = read(text, format).expect("valid");
    let mut after = before.clone();
    after["d"] = json!({"k": "v"});
    after["e"] = json!({"k": [1]});
    after["f"] = json!("y");
    after["g"] = json!({"h": 1});
    let found = edit(text, format, &before, &after).expect("an edit in place");
    assert_eq!(
        found,
        "\u{feff}a: &l\n# c\n- b\nc: *l\nd: &m {k: v}\ne: !!map {k: [1]}\nf: &s \"y\"\ng:\n  h: 1\n"
    );
}

#[test]
fn of_keys_that_are_written_twice_the_last_one_is_edited() {
    let found =
        edited("{\"a\": {\"b\": 1}, \"a\": {\"c\": 1}}", |value| value["a"]["d"] = json!(1));
    assert_eq!(found, "{\"a\": {\"b\": 1}, \"a\": {\"c\": 1, \"d\": 1}}");
}

#[test]
fn the_first_entry_behind_a_dash_can_go() {
    let text = "- a: 1\n  # of b\n  b: 2\n  c: 3\n";
    let before = read(text, Format::Yaml).expect("valid");
    let after = json!([{"c": 3}]);
    assert_eq!(edit(text, Format::Yaml, &before, &after).as_deref(), Some("- c: 3\n"));
}
