use super::*;

#[test]
fn the_time_of_a_line_is_not_that_of_one_before() {
    let then = "1970-01-01T00:00:01";
    let mut line = Line { second: 1, time: then.to_owned(), ..Line::default() };
    let text = String::from_utf8_lossy(line.finish(Level::INFO, Format::Text)).into_owned();
    assert!(text.starts_with("time=\"20") && !text.contains(then), "{text}");
    assert!(line.second > 1);
}

/// The lines of what happens in `events`, without their times.
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
        tracing::warn!(error = %"it said \"no\"", tries = 3, "cannot do it");
    };
    assert_eq!(
        lines(Format::Text, events),
        "time=\"T\" level=info msg=reviewed name=web-1 kind=pod\n\
         time=\"T\" level=warning msg=\"cannot do it\" error=\"it said \\\"no\\\"\" tries=3"
    );
    assert_eq!(
        lines(Format::Json, events),
        "{\"level\":\"info\",\"msg\":\"reviewed\",\"name\":\"web-1\",\"kind\":\"pod\",\"time\":\"T\"}\n\
         {\"level\":\"warning\",\"msg\":\"cannot do it\",\"error\":\"it said \\\"no\\\"\",\"tries\":3,\"time\":\"T\"}"
    );
}

#[test]
fn whoever_reads_too_slowly_is_told_what_he_missed() {
    let waiting = Waiting::default();
    let line = [b'x'; 1 << 10];
    for _ in 0..MAX_WAITING_BYTES / line.len() + 7 {
        waiting.push(&line);
    }
    waiting.lock().is_closed = true;
    let mut written = Vec::new();
    waiting.write_to(&mut written, Format::Text);
    let told = &written[MAX_WAITING_BYTES..];
    let told = str::from_utf8(told).expect("a log is text");
    assert!(
        told.ends_with("level=warning msg=\"7 lines of the log were dropped: nobody read them\"\n")
    );
}
