//! Random templates from a seed: expressions of functions, values and control structures. Most have
//! arguments of the right types, some do not.

/// A generator of numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

/// Values by their type: `s`tring, `i`nt, `n`umber, `b`ool, `l`ist, `d`ict, `a`ny.
#[expect(clippy::too_many_lines, reason = "a table")]
fn atoms(kind: u8) -> &'static [&'static str] {
    match kind {
        b's' => &[
            "\"\"",
            "\"a\"",
            "\"héllo\"",
            "\"A b-c_d\"",
            "\"12\"",
            "\"0x1f\"",
            "\"1.50\"",
            "\"a,b,c\"",
            "`raw \\n`",
            "\"\\xff\\x01\"",
            "\" x \"",
            "\"true\"",
            "\"1.2.3-rc.1\"",
            "\"/a/../b.c\"",
            "\"[1,{\\\"k\\\":null}]\"",
            "\"%v|%5d\"",
            "\",\"",
            ".name",
            ".empty",
            ".text",
            ".words",
            ".camel",
            ".uni",
            ".html",
            ".json",
            ".num",
            ".oct",
            ".csv",
            ".map.b.c",
            ".map.s",
            "(index .list 1)",
            "$w",
        ],
        b'i' => &["0", "1", "2", "3", "5", "-1", "-2", "'b'", "0x1f", "(len .list)", "(int .n)"],
        b'n' => &[
            "0",
            "1",
            "-2",
            "7",
            "1.5",
            "-0.25",
            "1e3",
            "1e6",
            "0.00001",
            "123456789.0",
            "1e21",
            ".n",
            ".big",
            ".f",
            ".neg",
            ".zero",
            ".small",
            ".map.a",
            "$v",
            "\"12.5\"",
            "'a'",
        ],
        b'b' => &["true", "false", ".t", ".fa", "(eq 1 1)", "(empty .name)"],
        b'l' => &[
            ".list",
            ".nums",
            ".mixed",
            ".elist",
            ".people",
            ".map.z",
            "(list)",
            "(list 1 2 1)",
            "(list 1 \"a\" nil)",
            "(splitList \",\" .csv)",
            "(until 3)",
            "(list .map (dict))",
            "(list (list 1) (list 1))",
        ],
        b'd' => &[
            ".map",
            ".emap",
            ".map.b",
            "$",
            "(dict)",
            "(dict \"k\" 1 \"l\" (list 1 2))",
            "(dict \"k\" (dict \"k\" 2))",
            "(index .people 0)",
            "(dict \"a\" nil \"b\" \"\")",
        ],
        _ => &["nil", ".", "$", ".nil", ".missing", ".missing.deep", ".map.b.n", "1i", "'\\n'"],
    }
}

/// There are no conversions to `int`, with which `until` takes all memory of Go. Maps that are
/// changed get only strings: Go cannot print a map that contains itself.
///
/// Functions: their name (perhaps with arguments), the types of their arguments, their own type.
const FUNCTIONS: &[(&str, &str, u8)] = &[
    ("add", "nn", b'i'),
    ("add1", "n", b'i'),
    ("sub", "nn", b'i'),
    ("mul", "nnn", b'i'),
    ("div", "nn", b'i'),
    ("mod", "nn", b'i'),
    ("max", "nn", b'i'),
    ("min", "nnn", b'i'),
    ("maxf", "nn", b'n'),
    ("minf", "nn", b'n'),
    ("floor", "n", b'n'),
    ("ceil", "n", b'n'),
    ("round", "ni", b'n'),
    ("int64", "n", b'n'),
    ("float64", "n", b'n'),
    ("addf", "nn", b'n'),
    ("subf", "nn", b'n'),
    ("mulf", "nn", b'n'),
    ("divf", "nn", b'n'),
    ("toDecimal", "a", b'n'),
    ("until", "i", b'l'),
    ("untilStep", "iii", b'l'),
    ("seq", "ii", b's'),
    ("seq", "iii", b's'),
    ("upper", "s", b's'),
    ("lower", "s", b's'),
    ("title", "s", b's'),
    ("untitle", "s", b's'),
    ("swapcase", "s", b's'),
    ("initials", "s", b's'),
    ("trim", "s", b's'),
    ("trimAll", "ss", b's'),
    ("trimPrefix", "ss", b's'),
    ("trimSuffix", "ss", b's'),
    ("nospace", "s", b's'),
    ("abbrev", "is", b's'),
    ("abbrevboth", "iis", b's'),
    ("repeat", "is", b's'),
    ("substr", "iis", b's'),
    ("trunc", "is", b's'),
    ("contains", "ss", b'b'),
    ("hasPrefix", "ss", b'b'),
    ("hasSuffix", "ss", b'b'),
    ("quote", "aa", b's'),
    ("squote", "aa", b's'),
    ("cat", "aaa", b's'),
    ("indent", "is", b's'),
    ("nindent", "is", b's'),
    ("replace", "sss", b's'),
    ("plural", "ssi", b's'),
    ("wrap", "is", b's'),
    ("wrapWith", "iss", b's'),
    ("join", "sl", b's'),
    ("join", "sa", b's'),
    ("sortAlpha", "l", b'l'),
    ("split", "ss", b'd'),
    ("splitList", "ss", b'l'),
    ("splitn", "sis", b'd'),
    ("toString", "a", b's'),
    ("toStrings", "a", b'l'),
    ("camelcase", "s", b's'),
    ("snakecase", "s", b's'),
    ("kebabcase", "s", b's'),
    ("default", "aa", b'a'),
    ("default", "ss", b's'),
    ("empty", "a", b'b'),
    ("coalesce", "aaa", b'a'),
    ("all", "aa", b'b'),
    ("any", "aa", b'b'),
    ("ternary", "aab", b'a'),
    ("list", "aaa", b'l'),
    ("append", "la", b'l'),
    ("prepend", "la", b'l'),
    ("concat", "ll", b'l'),
    ("first", "l", b'a'),
    ("last", "l", b'a'),
    ("rest", "l", b'l'),
    ("initial", "l", b'l'),
    ("reverse", "l", b'l'),
    ("uniq", "l", b'l'),
    ("without", "la", b'l'),
    ("has", "al", b'b'),
    ("compact", "l", b'l'),
    ("slice", "li", b'l'),
    ("slice", "lii", b'l'),
    ("chunk", "il", b'l'),
    ("dict", "sa", b'd'),
    ("dict", "sas", b'd'),
    ("dict \"k\"", "d", b'd'),
    ("get", "ds", b'a'),
    ("set", "dss", b'd'),
    ("unset", "ds", b'd'),
    ("hasKey", "ds", b'b'),
    ("pluck", "sd", b'l'),
    ("pick", "ds", b'd'),
    ("omit", "ds", b'd'),
    ("merge (dict)", "dd", b'd'),
    ("merge (dict \"k\" 0 \"a\" (dict))", "dd", b'd'),
    ("mergeOverwrite (dict \"k\" 1)", "dd", b'd'),
    ("dig \"a\" \"b\"", "ad", b'a'),
    ("dig", "sad", b'a'),
    ("deepCopy", "d", b'd'),
    ("keys", "d | sortAlpha", b'l'),
    ("typeOf", "a", b's'),
    ("kindOf", "a", b's'),
    ("typeIs", "sa", b'b'),
    ("kindIs", "sa", b'b'),
    ("deepEqual", "aa", b'b'),
    ("deepEqual", "ll", b'b'),
    ("eq", "ss", b'b'),
    ("eq", "iii", b'b'),
    ("eq", "aa", b'b'),
    ("ne", "nn", b'b'),
    ("lt", "ii", b'b'),
    ("le", "ss", b'b'),
    ("gt", "nn", b'b'),
    ("ge", "ii", b'b'),
    ("and", "aa", b'a'),
    ("or", "aaa", b'a'),
    ("not", "a", b'b'),
    ("len", "a", b'i'),
    ("len", "l", b'i'),
    ("index", "li", b'a'),
    ("index", "ds", b'a'),
    ("index", "dss", b'a'),
    ("print", "aaa", b's'),
    ("println", "aa", b's'),
    ("html", "a", b's'),
    ("js", "a", b's'),
    ("urlquery", "a", b's'),
    ("printf", "saa", b's'),
    ("printf \"%v\"", "a", b's'),
    ("printf \"%d\"", "i", b's'),
    ("printf \"%s|%q\"", "aa", b's'),
    ("printf \"%6.2f\"", "n", b's'),
    ("printf \"%-8v|\"", "a", b's'),
    ("printf \"%x\"", "a", b's'),
    ("printf \"%#v\"", "a", b's'),
    ("printf \"%T\"", "a", b's'),
    ("printf \"%05d\"", "i", b's'),
    ("printf \"%+v %v\"", "aaa", b's'),
    ("printf \"%t\"", "b", b's'),
    ("printf \"%[2]v %[1]v\"", "aa", b's'),
    ("printf \"%g\"", "n", b's'),
    ("printf \"%e\"", "n", b's'),
    ("printf \"%.3g|%8.1e\"", "nn", b's'),
    ("printf \"%c|%U\"", "ii", b's'),
    ("printf \"%*d\"", "ii", b's'),
    ("printf \"%+q|% x\"", "ss", b's'),
    ("printf \"%#x %X\"", "si", b's'),
    ("b64enc", "s", b's'),
    ("b64dec", "s", b's'),
    ("b32enc", "s", b's'),
    ("b32dec", "s", b's'),
    ("sha1sum", "s", b's'),
    ("sha256sum", "s", b's'),
    ("adler32sum", "s", b's'),
    ("toJson", "a", b's'),
    ("toJson", "d", b's'),
    ("toPrettyJson", "a", b's'),
    ("toPrettyJson", "l", b's'),
    ("toRawJson", "a", b's'),
    ("fromJson", "s", b'a'),
    ("mustToJson", "a", b's'),
    ("mustFromJson", "s", b'a'),
    ("base", "s", b's'),
    ("dir", "s", b's'),
    ("clean", "s", b's'),
    ("ext", "s", b's'),
    ("isAbs", "s", b'b'),
    ("duration", "a", b's'),
    ("durationRound", "s", b's'),
    ("semverCompare", "ss", b'b'),
    ("semver", "s", b'a'),
    ("regexMatch", "ss", b'b'),
    ("regexReplaceAll \"[a-c]+\"", "ss", b's'),
    ("regexFindAll \"\\\\w+\"", "si", b'l'),
    ("regexSplit \",\"", "si", b'l'),
    ("regexQuoteMeta", "s", b's'),
    ("urlParse", "s", b'd'),
    ("date \"2006-01-02 15:04\"", "i", b's'),
    ("toDate \"2006-01-02\"", "s", b'a'),
    ("fail", "s", b's'),
];

const ALL_KINDS: &[u8] = b"sinblda";

/// An argument: usually of the type, seldom of another.
fn expression(random: &mut Random, kind: u8, depth: usize) -> String {
    let kind = match random.below(30) {
        0 => ALL_KINDS[random.below(ALL_KINDS.len())],
        _ if kind == b'a' => ALL_KINDS[random.below(ALL_KINDS.len())],
        _ => kind,
    };
    if depth == 0 || random.below(3) == 0 {
        return random.pick(atoms(kind)).to_owned();
    }
    format!("({})", call(random, kind, depth - 1))
}

fn call(random: &mut Random, kind: u8, depth: usize) -> String {
    let fits: Vec<_> =
        FUNCTIONS.iter().filter(|(_, _, result)| kind == b'a' || *result == kind).collect();
    let (name, params, _) = fits[random.below(fits.len())];
    let (params, tail) = match params.split_once(" | ") {
        Some((params, tail)) => (params, format!(" | {tail}")),
        None => (*params, String::new()),
    };
    let mut text = (*name).to_owned();
    let piped = random.below(4) == 0;
    let fixed = if piped { &params[..params.len() - 1] } else { params };
    for param in fixed.bytes() {
        text += " ";
        text += &expression(random, param, depth);
    }
    if random.below(100) == 0 {
        text += " 1";
    }
    if !piped {
        return text + &tail;
    }
    let last = expression(random, params.as_bytes()[params.len() - 1], depth);
    let last = if last == "nil" { ".nil".to_owned() } else { last };
    format!("{last} | {text}{tail}")
}

fn node(random: &mut Random, depth: usize) -> String {
    let pipe = |random: &mut Random| call(random, b'a', 2);
    match random.below(if depth == 0 { 3 } else { 10 }) {
        0..=2 => format!("{{{{ {} }}}}", pipe(random)),
        3 => format!(
            "{{{{ if {} }}}}{}{{{{ else }}}}{}{{{{ end }}}}",
            pipe(random),
            node(random, depth - 1),
            node(random, depth - 1)
        ),
        4 => format!(
            "{{{{- with {} -}}}} {} {{{{- . }}}}{{{{ end }}}}",
            expression(random, b'a', 1),
            node(random, depth - 1)
        ),
        5 => {
            let kind = if random.below(3) == 0 { b'd' } else { b'l' };
            let over = expression(random, kind, 1);
            let inner = node(random, depth - 1);
            format!(
                "{{{{ range $i, $e := {over} }}}}{{{{ $i }}}}:{{{{ $e }}}}{inner}{{{{ else }}}}none\
                 {{{{ end }}}}"
            )
        }
        6 => {
            format!("{{{{ range {} }}}}{{{{ . }}}},{{{{ end }}}}", expression(random, b'l', 2))
        }
        7 => format!("{{{{ $v = {} }}}}{{{{ $v }}}}", expression(random, b'n', 2)),
        8 => format!("{{{{ template \"x\" {} }}}}", expression(random, b'a', 1)),
        _ => format!("text {{{{ {}.name }}}}\n", expression(random, b'd', 1)),
    }
}

/// The template of a seed.
pub(crate) fn template(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        random.below(2);
    }
    let declarations = "{{ $v := .n }}{{ $w := \"w\" }}{{ define \"x\" }}<{{ . }}>{{ end }}";
    let nodes: String = (0..=random.below(3)).map(|_| node(&mut random, 2)).collect();
    format!("{declarations}{nodes}")
}
