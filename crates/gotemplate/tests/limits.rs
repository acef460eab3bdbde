//! What a template cannot do: take all time, memory or stack.

use injectd_gotemplate::{Context, Functions, Limits, MAX_DEPTH, MAX_NESTING, Template, Value};

fn render(text: &str) -> Result<String, String> {
    render_within(Limits::default(), text)
}

fn render_within(limits: Limits, text: &str) -> Result<String, String> {
    let template =
        Template::parse("t", text, &Functions::istio()).map_err(|error| error.to_string())?;
    let data = Value::from_json(&serde_json::json!({"a": {"b": 1}, "list": [1, 2]}));
    let mut context = Context::default();
    context.limits = limits;
    template.execute(&data, &mut context).map_err(|error| error.to_string())
}

fn rejects(text: &str, message: &str) {
    rejects_within(Limits::default(), text, message);
}

/// The same with fewer steps, for a build without optimization.
fn rejects_soon(text: &str) {
    rejects_within(Limits { steps: 20_000, ..Limits::default() }, text, "takes more than 20000");
}

fn rejects_within(limits: Limits, text: &str, message: &str) {
    match render_within(limits, text) {
        Ok(output) => panic!("{text}: {} bytes", output.len()),
        Err(problem) => assert!(problem.contains(message), "{text}: {problem}"),
    }
}

#[test]
fn loops_end() {
    rejects("{{ range until 1000000000 }}{{ end }}", "takes more than");
    rejects("{{ range 9223372036854775807 }}x{{ end }}", "takes more than");
    rejects("{{ seq 1000000000 }}", "takes more than");
    rejects("{{ seq 0 -1 -1000000000 }}", "takes more than");
    rejects("{{ until 1000000000 }}", "takes more than");
    rejects("{{ untilStep 0 9223372036854775807 1 }}", "takes more than");
    rejects("{{ range 2000 }}{{ range 2000 }}{{ end }}{{ end }}", "takes more than");
}

#[test]
fn texts_are_bounded() {
    rejects("{{ repeat 1000000000 \"x\" }}", "longer than");
    rejects("{{ indent 1000000000 \"x\" }}", "longer than");
    rejects("{{ nindent 9223372036854775807 \"x\" }}", "longer than");
    rejects("{{ $s := repeat 1000000 \"x\" }}{{ replace \"x\" $s $s }}", "longer than");
    rejects("{{ $s := \"x\" }}{{ range 40 }}{{ $s = print $s $s }}{{ end }}", "longer than");
    rejects(
        "{{ $s := \"x\" }}{{ range 40 }}{{ $s = join $s (list $s $s) }}{{ end }}",
        "longer than",
    );
    rejects("{{ $s := repeat 99999 \"x\" }}{{ range 999 }}{{ $s }}{{ end }}", "output is longer");
    rejects("{{ regexReplaceAll \"\" (repeat 9999 \"x\") (repeat 9999 \"y\") }}", "longer than");
    rejects("{{ randAlpha 1000000000 }}", "longer than");
    rejects("{{ repeat 9223372036854775807 \"xy\" }}", "longer than");
    rejects("{{ indent 4000000 (repeat 100 \"x\\n\") }}", "longer than");
    rejects("{{ range 99 }}{{ printf \"%1000000d\" 1 }}{{ end }}", "longer than");
}

#[test]
fn values_of_values_are_bounded() {
    let doubled = "{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}";
    for function in ["print", "toJson", "toYaml", "toPrettyJson", "quote", "js"] {
        rejects(&format!("{doubled}{{{{ {function} $l }}}}"), "");
    }
    rejects(&format!("{doubled}{{{{ deepEqual $l (deepCopy $l) }}}}"), "takes more than");
    rejects("{{ $l := list 1 }}{{ range 60 }}{{ $l = concat $l $l }}{{ end }}", "takes more than");
}

#[test]
fn deep_values_do_not_overflow_the_stack() {
    let deep = "{{ $l := list }}{{ $d := dict }}{{ range 90000 }}{{ $l = list $l }}{{ end }}";
    assert_eq!(render(&format!("{deep}{{{{ len $l }}}}")), Ok("1".to_owned()));
    for function in ["print", "toJson", "toYaml", "deepCopy", "omitNil", "printf \"%#v\""] {
        rejects(&format!("{deep}{{{{ {function} $l }}}}"), "nested deeper than");
    }
    rejects(&format!("{deep}{{{{ deepEqual $l $l }}}}"), "nested deeper than");
    let chain = "{{ $d := dict }}{{ $leaf := $d }}{{ range 2000 }}{{ $next := dict }}\
                 {{ $_ := set $leaf \"k\" $next }}{{ $leaf = $next }}{{ end }}";
    assert_eq!(render(&format!("{chain}{{{{ len $d }}}}")), Ok("1".to_owned()));
    rejects(&format!("{chain}{{{{ $d }}}}"), "nested deeper than");
    rejects(
        "{{ fromJson (repeat 100000 \"[\") }}{{ mustFromJson (repeat 100000 \"[\") }}",
        "depth",
    );
}

#[test]
fn texts_of_loops_take_steps_by_their_length() {
    let long = "{{ $s := repeat 80000 \"x\" }}";
    for call in
        ["upper $s", "sha256sum $s", "b64dec $s", "eq $s (print $s)", "contains \"y\" $s", "len $s"]
    {
        rejects_soon(&format!("{long}{{{{ range 1000 }}}}{{{{ $_ := {call} }}}}{{{{ end }}}}"));
    }
    let kept = "{{ $l = append $l (repeat 8000 (printf \"%010d\" .)) }}";
    rejects_soon(&format!("{{{{ $l := list }}}}{{{{ range 1000 }}}}{kept}{{{{ end }}}}"));
}

#[test]
fn parts_of_texts_take_steps_before_they_take_memory() {
    let long = "{{ $s := repeat 40000 \"1,\" }}";
    for call in [
        "splitList \",\" $s",
        "split \"\" $s",
        "splitn \"\" 80000 $s",
        "regexFindAll \"\" $s -1",
        "regexSplit \"\" $s -1",
        "fromJson (print \"[\" $s \"1]\")",
        "fromJSON (print \"[\" $s \"1]\")",
    ] {
        rejects_soon(&format!("{long}{{{{ $_ := {call} }}}}"));
    }
}

#[test]
fn lists_and_maps_of_loops_take_steps_by_their_length() {
    let list = "{{ $l := until 8000 }}";
    for call in ["join \"\" $l", "compact $l", "chunk 8000 $l", "toString $l", "len $l"] {
        rejects_soon(&format!("{list}{{{{ range 1000 }}}}{{{{ $_ := {call} }}}}{{{{ end }}}}"));
    }
    let map = "{{ $d := dict }}{{ range 1000 }}{{ $_ := set $d (toString .) \"\" }}{{ end }}";
    rejects_soon(&format!("{map}{{{{ range 500 }}}}{{{{ $_ := deepCopy $d }}}}{{{{ end }}}}"));
    rejects_soon(&format!(
        "{map}{{{{ range 500 }}}}{{{{ $_ := set (dict) \"a\" $d }}}}{{{{ end }}}}"
    ));
    let changed = "{{ range $k, $v := $d }}{{ $_ := set $d $k 1 }}{{ break }}{{ end }}";
    rejects_soon(&format!("{map}{{{{ range 500 }}}}{changed}{{{{ end }}}}"));
}

#[test]
fn regular_expressions_are_bounded() {
    rejects("{{ mustRegexMatch \"((x{1,100}){1,100}){1,100}\" \"x\" }}", "invalid or too large");
    rejects_soon("{{ range 100 }}{{ $_ := regexMatch \"[a-z]{9}\" \"x\" }}{{ end }}");
    // With backtracking, this takes exponential time.
    let rendered = render("{{ regexMatch \"(x+x+)+y\" (repeat 100000 \"x\") }}");
    assert_eq!(rendered, Ok("false".to_owned()));
}

#[test]
fn trimming_is_linear() {
    // Quadratic, this takes a minute.
    let text = "{{ $cut := \"\" }}{{ range untilStep 20000 30000 1 }}\
                {{ $cut = print $cut (printf \"%c\" .) }}{{ end }}\
                {{ trimAll $cut (repeat 100000 \"ab\") | len }}";
    let limits = Limits { steps: 100_000_000, ..Limits::default() };
    assert_eq!(render_within(limits, text), Ok("200000".to_owned()));
}

#[test]
fn templates_that_make_or_use_secrets_are_refused_by_name() {
    for call in
        ["bcrypt \"x\"", "genPrivateKey \"rsa\"", "(genCA \"x\" 1).Cert", "decryptAES \"k\" \"\""]
    {
        let text = format!("{{{{ if .never }}}}{{{{ {call} }}}}{{{{ end }}}}");
        let refused = Template::parse("t", &text, &Functions::istio()).map(|_| ());
        let refused = refused.expect_err(call).to_string();
        let name = call.trim_start_matches('(').split(' ').next().expect("a name");
        assert!(
            refused.starts_with(&format!("template: t:1: function \"{name}\" is not available"))
        );
    }
}

#[test]
fn a_map_does_not_contain_itself() {
    rejects("{{ $d := dict }}{{ $_ := set $d \"a\" (list $d) }}", "cannot contain itself");
    rejects("{{ $d := dict }}{{ $_ := merge $d (dict \"a\" $d) }}", "cannot contain itself");
}

#[test]
fn templates_do_not_call_themselves_for_ever() {
    rejects("{{ define \"x\" }}{{ template \"x\" }}{{ end }}{{ template \"x\" }}", "maximum");
    let nested = |depth: usize| "{{ if 1 }}".repeat(depth) + &"{{ end }}".repeat(depth);
    assert_eq!(render(&nested(MAX_NESTING)), Ok(String::new()));
    rejects(&nested(MAX_NESTING + 1), "max expression depth");
    let parens = |depth: usize| format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(render(&parens(MAX_NESTING)), Ok("1".to_owned()));
    rejects(&parens(MAX_NESTING + 1), "max expression depth");
}

/// The stack of a thread of a server is 2 MiB.
#[test]
fn the_greatest_depth_fits_a_stack() {
    let inner = "{{ if (((((((((1))))))))) }}".repeat(9) + "{{ template \"x\" . }}";
    let text = format!("{{{{ define \"x\" }}}}{inner}{}{{{{ end }}}}", "{{ end }}".repeat(9));
    let text = text + "{{ template \"x\" . }}";
    let small = std::thread::Builder::new().stack_size(2 << 20);
    let thread = small.spawn(move || rejects(&text, "maximum")).expect("a thread must start");
    thread.join().expect("the stack must be large enough");
    const { assert!(MAX_DEPTH >= 2 * MAX_NESTING) };
}

#[test]
fn limits_are_those_of_the_context() {
    let template = Template::parse("t", "{{ range 100 }}x{{ end }}", &Functions::istio());
    let template = template.expect("it must parse");
    let mut context = Context::default();
    context.limits.output_bytes = 50;
    assert!(template.execute(&Value::Nil, &mut context).is_err());
    context.limits = Limits { steps: 50, ..Limits::default() };
    assert!(template.execute(&Value::Nil, &mut context).is_err());
    context.limits = Limits::default();
    assert_eq!(template.execute(&Value::Nil, &mut context), Ok("x".repeat(100)));
}

#[test]
fn one_rendering_does_not_change_the_data_of_the_next() {
    let text = "{{ $_ := set .a \"n\" (add1 (default 0 .a.n)) }}{{ .a.n }}{{ .a.b }}";
    let template = Template::parse("t", text, &Functions::istio()).expect("it must parse");
    let data = Value::from_json(&serde_json::json!({"a": {"b": 1}}));
    for _ in 0..3 {
        assert_eq!(template.execute(&data, &mut Context::default()), Ok("11".to_owned()));
    }
}
