use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn window(text: &str) -> Window {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Length of the window that begins next, in minutes.
fn minutes_from(window: &Window, now: &str) -> i64 {
    let begin = window.next_begin(at(now)).expect("a window");
    let mut end = begin;
    while window.contains(end) {
        end += jiff::SignedDuration::from_mins(1);
    }
    end.duration_since(begin).as_mins()
}

#[test]
fn a_window_over_midnight_belongs_to_the_day_on_which_it_begins() {
    let window = window("Mon-Fri 22:00-04:00 Europe/Berlin");
    // 2026-11-27 is a Friday, and Berlin is an hour ahead of UTC.
    for (time, is_open) in [
        ("2026-11-27T20:59:59Z", false),
        ("2026-11-27T21:00:00Z", true),
        ("2026-11-28T02:59:59Z", true),
        ("2026-11-28T03:00:00Z", false),
        ("2026-11-28T21:00:00Z", false),
        ("2026-11-29T23:00:00Z", false),
        ("2026-11-30T02:00:00Z", false),
        ("2026-11-30T21:00:00Z", true),
    ] {
        assert_eq!(window.contains(at(time)), is_open, "{time}");
    }
    let next = window.next_begin(at("2026-11-28T12:00:00Z"));
    assert_eq!(next, Some(at("2026-11-30T21:00:00Z")));
    // Inside of a window, the next one is that of another day.
    let next = window.next_begin(at("2026-11-26T21:30:00Z"));
    assert_eq!(next, Some(at("2026-11-27T21:00:00Z")));
}

#[test]
fn a_window_once_a_week_is_found_from_any_time() {
    let window = window("Sat 01:00-02:00");
    assert_eq!(window.next_begin(at("2026-11-28T01:00:00Z")), Some(at("2026-12-05T01:00:00Z")));
    assert_eq!(window.next_begin(at("2026-11-28T00:59:59Z")), Some(at("2026-11-28T01:00:00Z")));
}

#[test]
fn the_whole_day_has_no_gap() {
    let window = window("00:00-24:00 Europe/Berlin");
    let mut now = at("2026-03-28T00:00:00Z");
    while now < at("2026-03-31T00:00:00Z") {
        assert!(window.contains(now), "{now}");
        now += jiff::SignedDuration::from_mins(30);
    }
}

#[test]
fn a_window_with_the_change_of_clocks_is_longer_or_shorter() {
    let berlin = window("22:00-04:00 Europe/Berlin");
    assert_eq!(minutes_from(&berlin, "2026-03-28T12:00:00Z"), 5 * 60);
    assert_eq!(minutes_from(&berlin, "2026-10-24T12:00:00Z"), 7 * 60);
    // 02:10 does not exist on 2026-03-29 in Berlin: the next night has it.
    let skipped = window("02:10-02:40 Europe/Berlin");
    let next = skipped.next_begin(at("2026-03-28T12:00:00Z")).expect("a window");
    assert!([at("2026-03-29T01:10:00Z"), at("2026-03-30T00:10:00Z")].contains(&next), "{next}");
    // 02:10 exists twice on 2026-10-25: the first one counts.
    let next = skipped.next_begin(at("2026-10-24T12:00:00Z"));
    assert_eq!(next, Some(at("2026-10-25T00:10:00Z")));
    assert_eq!(minutes_from(&skipped, "2026-10-24T12:00:00Z"), 30);
}

#[test]
fn days_are_ranges_and_lists_in_any_case() {
    let sunday = at("2026-11-29T12:00:00Z");
    for (days, contains) in [
        ("Fri-Mon", true),
        ("sat,SUN", true),
        ("Mon-Fri", false),
        ("Mon,Wed-Sat", false),
        ("Mon-Sun", true),
        ("", true),
    ] {
        assert_eq!(window(&format!("{days} 00:00-24:00")).contains(sunday), contains, "{days}");
    }
}

#[test]
fn restarts_are_allowed_in_any_window_and_always_without_one() {
    let now = at("2026-11-29T12:00:00Z");
    assert!(Windows::default().contain(now));
    let windows = Windows::parse("Mon 01:00-02:00; Sun 11:00-13:00 UTC").expect("windows");
    assert!(windows.contain(now));
    let night = at("2026-11-29T23:00:00Z");
    assert!(!windows.contain(night));
    assert_eq!(windows.next_begin(night), Some(at("2026-11-30T01:00:00Z")));
}

#[test]
fn a_wrong_window_says_what_is_expected() {
    for (text, problem) in [
        ("", "\"\" has no times"),
        ("always", "\"always\" has no times"),
        ("Mo 01:00-02:00", "\"Mo\" is not a day: Mon"),
        ("Mon Tue 01:00-02:00", "\"Tue\" is not a time; separate days by commas"),
        ("1:00-02:00", "\"1:00\" is not a time of the day"),
        ("24:00-02:00", "\"24:00\" is not a time of the day"),
        ("01:00-02:60", "\"02:60\" is not a time of the day"),
        ("01:00", "\"01:00\" has no end"),
        ("01:00-01:00", "the whole day is 00:00-24:00"),
        ("01:00-02:00 Europe/Berlinn", "the time zone \"Europe/Berlinn\" is unknown"),
        ("01:00-02:00 UTC x", "\"x\" follows the time zone"),
    ] {
        let error = text.parse::<Window>().expect_err(text).to_string();
        assert!(error.contains(problem), "{text}: {error}");
        assert!(error.ends_with("such as \"Mon-Fri 22:00-04:00 Europe/Berlin\""), "{error}");
    }
}

#[test]
fn the_zones_are_part_of_the_binary() {
    for zone in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/GMT+5"] {
        window(&format!("01:00-02:00 {zone}"));
    }
}
