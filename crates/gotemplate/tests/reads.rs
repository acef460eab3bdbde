//! The reads that an execution records.

use injectd_gotemplate::{Context, Functions, Origin, Reads, Step, Template, Use, Value};

/// Places by their paths; the first is that of the data.
struct Log {
    paths: Vec<String>,
    lines: Vec<String>,
}

impl Reads for Log {
    fn step(&mut self, from: Origin, step: Step<'_>, found: Option<&Value>) -> Origin {
        let from = &self.paths[from.0 as usize];
        let path = match step {
            Step::Field(name) => format!("{from}.{name}"),
            Step::Method(name) => format!("{from}.{name}()"),
            Step::Key(key) => format!("{from}[{}]", String::from_utf8_lossy(key)),
            Step::Item(index) => format!("{from}[{index}]"),
        };
        let missing = if found.is_none() { " missing" } else { "" };
        self.lines.push(format!("{path}{missing}"));
        self.paths.push(path);
        Origin(u32::try_from(self.paths.len() - 1).expect("few places"))
    }

    fn used(&mut self, place: Origin, how: Use, _value: Option<&Value>) {
        self.lines.push(format!("{how:?} of {}", self.paths[place.0 as usize]));
    }
}

fn reads(text: &str) -> Vec<String> {
    let template = Template::parse("t", text, &Functions::istio()).expect("it must parse");
    let data = Value::from_json(&serde_json::json!({
        "a": {"b": "text", "c": false}, "list": [{"x": 1}, {"x": 2}],
    }));
    // Place 0 is no place.
    let mut log = Log { paths: vec![String::new(), "$".to_owned()], lines: Vec::new() };
    let mut context = Context::default();
    context.reads = Some(&mut log);
    template.execute(&data, &mut context).expect("it must render");
    log.lines
}

#[test]
fn printing_reads_the_whole_value() {
    assert_eq!(reads("{{ .a.b }}{{ 1 }}"), ["$.a", "$.a.b", "Copied of $.a.b"]);
}

#[test]
fn a_missing_key_is_read_as_missing() {
    assert_eq!(reads("{{ .nope.x }}"), ["$.nope missing"]);
}

#[test]
fn a_text_stays_its_place_where_functions_copy_plain_names() {
    let read = ["$.a", "$.a.b"];
    for (text, used) in [
        (
            "{{ .a.b | default `x` | trunc 63 | trimSuffix `-` | quote }}",
            &["Truth", "Copied", "Copied"][..],
        ),
        ("{{ trunc 62 .a.b }}", &["Whole"]),
        ("{{ trunc -63 .a.b }}", &["Whole"]),
        ("{{ trimSuffix `t` .a.b }}", &["Whole"]),
        ("{{ quote .a.b | trunc 63 }}", &["Copied", "Whole"]),
        ("{{ $q := quote .a.b }}{{ if eq $q `x` }}{{ end }}", &["Copied", "Whole"]),
        ("{{ if quote .a.b }}{{ end }}", &["Copied", "Whole"]),
        ("{{ quote .a.b .a.b }}", &["$.a", "$.a.b", "Whole", "Whole"]),
        ("{{ upper .a.b }}", &["Whole"]),
    ] {
        let place = |how: &&str| match how.strip_prefix('$') {
            Some(_) => (*how).to_owned(),
            None => format!("{how} of $.a.b"),
        };
        let expected = read.iter().map(ToString::to_string).chain(used.iter().map(place));
        assert_eq!(reads(text), expected.collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn conditions_read_the_truth() {
    assert_eq!(reads("{{ if .a.c }}{{ .x }}{{ end }}"), ["$.a", "$.a.c", "Truth of $.a.c"]);
    assert_eq!(reads("{{ with and .a.c .a.b }}{{ end }}")[..3], ["$.a", "$.a.c", "Truth of $.a.c"]);
}

#[test]
fn places_go_through_variables_loops_and_templates() {
    let text = "{{ $l := .list }}{{ range $l }}{{ template \"t\" . }}{{ end }}\
                {{ define \"t\" }}{{ .x }}{{ end }}";
    assert_eq!(
        reads(&text.replace("\"t\"", "\"u\"")),
        [
            "$.list",
            "Keys of $.list",
            "$.list[0]",
            "$.list[0].x",
            "Whole of $.list[0].x",
            "$.list[1]",
            "$.list[1].x",
            "Whole of $.list[1].x",
        ]
    );
}

#[test]
fn some_functions_tell_what_they_read() {
    assert_eq!(reads("{{ $x := index .a \"b\" }}"), ["$.a", "$.a[b]"]);
    assert_eq!(reads("{{ $x := hasKey .a \"z\" }}"), ["$.a", "$.a[z] missing"]);
    assert_eq!(reads("{{ $x := .a.b | default 1 }}"), ["$.a", "$.a.b", "Truth of $.a.b"]);
    assert_eq!(reads("{{ $x := toJson .a }}"), ["$.a", "Whole of $.a"]);
}
