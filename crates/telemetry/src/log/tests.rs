use super::*;

#[test]
fn the_time_of_a_line_is_not_that_of_one_before() {
    let then = "1970-01-01T00:00:01";
    let mut line = Line { second: 1, time: then.to_owned(), ..Line::default() };
    let text = String::from_utf8_lossy(line.finish(Level::INFO, Format::Text)).into_owned();
    assert!(text.starts_with("time=\"20") && !text.contains(then), "{text}");
    assert!(line.second > 1);
}

/// The lines that `events` logs, without their times.
fn lines(format: Format, events: impl FnOnce()) -> String {
    let waiting = Arc::new(Waiting::default());
    let layer = LineLayer { waiting: Arc::clone(&waiting), format };
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
    let text = String::from_utf8(waiting.lock().text.clone()).expect("a log is text");
    text.lines().map(without_time).collect::<Vec<_>>().join("\n")
}

fn without_time(line: &str) -> String {
    let begin = line.find("time=\"").map(|at| at + 6);
    let begin = begin.or_else(|| line.find("\"time\":\"").map(|at| at + 8)).expect("a time");
    let time = &line[begin..begin + 20];
    assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
    line.replace(time, "T")
}

#[test]
fn lines_look_like_those_of_logrus() {
    let events = || {
        tracing::info!(name = "web-1", kind = "pod", "reviewed");
        tracing::warn!(error = %"it was \"no\"", tries = 3, "cannot do it");
    };
    assert_eq!(
        lines(Format::Text, events),
        "time=\"T\" level=info msg=reviewed name=web-1 kind=pod\n\
         time=\"T\" level=warning msg=\"cannot do it\" error=\"it was \\\"no\\\"\" tries=3"
    );
    assert_eq!(
        lines(Format::Json, events),
        "{\"level\":\"info\",\"msg\":\"reviewed\",\"name\":\"web-1\",\"kind\":\"pod\",\"time\":\"T\"}\n\
         {\"level\":\"warning\",\"msg\":\"cannot do it\",\"error\":\"it was \\\"no\\\"\",\"tries\":3,\"time\":\"T\"}"
    );
}

#[test]
fn json_lines_escape_what_is_not_printable() {
    let events = || tracing::info!(name = "web\u{202e}", "reviewed\u{9b}");
    assert_eq!(
        lines(Format::Json, events),
        r#"{"level":"info","msg":"reviewed\u009b","name":"web\u202e","time":"T"}"#
    );
}

#[test]
fn a_long_field_is_cut_and_a_message_is_not() {
    let name = "ü".repeat(MAX_FIELD_BYTES);
    let kept = "ü".repeat(MAX_FIELD_BYTES / 2);
    for format in [Format::Text, Format::Json] {
        let of = |name: &str, error: &str, message: &str| {
            lines(format, || tracing::info!(name, %error, "{message}"))
        };
        let cut = format!("{kept}…");
        let whole = of("n", "e", &name);
        assert!(whole.contains(&name), "{whole}");
        let line = of(&name, &name, "m");
        assert_eq!(line.matches(&cut).count(), 2, "{line}");
        assert_eq!(line.matches(&*format!("{kept}ü")).count(), 0, "{line}");
        let line = of(&kept, &kept, "m");
        assert!(!line.contains('…') && line.matches(&kept).count() == 2, "{line}");
        let odd = format!("x{name}");
        let kept = &kept[..kept.len() - 2];
        assert!(of(&odd, "e", "m").contains(&format!("x{kept}…")));
    }
}

#[test]
fn a_value_that_writes_on_when_it_is_cut_is_marked_once() {
    struct Obstinate;
    impl fmt::Display for Obstinate {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for _ in 0..MAX_FIELD_BYTES {
                let _ = f.write_str("xyz");
            }
            Ok(())
        }
    }
    let line = lines(Format::Text, || tracing::info!(name = %Obstinate, "m"));
    assert_eq!(line.matches('…').count(), 1);
    assert!(line.len() < MAX_FIELD_BYTES + 100, "{line}");
}

#[test]
fn dropped_lines_are_counted_in_a_warning() {
    let waiting = Waiting::default();
    let line = [b'x'; 1 << 10];
    for _ in 0..MAX_WAITING_BYTES / line.len() + 7 {
        waiting.push(&line);
    }
    waiting.lock().is_closed = true;
    let mut written = Vec::new();
    waiting.write_to(&mut written, Format::Text);
    let warning = &written[MAX_WAITING_BYTES..];
    let warning = str::from_utf8(warning).expect("a log is text");
    let message = "dropped 7 log lines: stderr was not read in time";
    assert!(warning.ends_with(&format!("level=warning msg=\"{message}\"\n")), "{warning}");
}

#[test]
fn repeated_warnings_of_a_library_are_left_out_unless_they_are_asked_for() {
    let filter = |text: &str| without_repetitions(text.parse().expect("a filter"));
    for (text, is_shown) in [
        ("info", false),
        ("warn", false),
        ("info,hyper=debug", false),
        ("debug", true),
        ("info,kube_runtime=info", true),
    ] {
        let shown = filter(text).would_enable("kube_runtime::watcher", &Level::WARN);
        assert_eq!(shown, is_shown, "{text}");
    }
    assert!(!filter("off").would_enable("kube_runtime", &Level::ERROR));
    let sender = "kube_client::client::builder";
    for (text, is_shown) in [("info", false), ("debug", true), ("info,kube_client=warn", true)] {
        assert_eq!(filter(text).would_enable(sender, &Level::ERROR), is_shown, "{text}");
    }
    assert!(filter("info").would_enable("kube_client::client", &Level::WARN));
}

#[test]
fn a_word_that_is_no_level_is_rejected() {
    for filter in ["info", "WARN", "off", "info,hyper=debug", "hyper=debug", ""] {
        assert!(targets(filter).is_ok(), "{filter}");
    }
    for filter in ["loud", "info,hyper", "hyper=loud"] {
        assert!(targets(filter).is_err(), "{filter}");
    }
}
