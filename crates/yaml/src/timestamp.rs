//! Whether a scalar with the tag `!!timestamp` is a time, as Go's `time.Parse` decides.

/// One of `2006-1-2T15:4:5.999999999Z07:00` (also with `t`), `2006-1-2 15:4:5.999999999` and
/// `2006-1-2`.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let mut rest = Rest(text);
    let Some(day) = rest.date() else {
        return false;
    };
    if !day {
        return false;
    }
    match rest.0.as_bytes().first() {
        None => true,
        Some(b'T' | b't') => {
            rest.0 = &rest.0[1..];
            rest.time() == Some(true) && rest.zone() && rest.0.is_empty()
        }
        Some(b' ') => {
            rest.0 = rest.0.trim_start_matches(' ');
            rest.time() == Some(true) && rest.0.is_empty()
        }
        Some(_) => false,
    }
}

struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// A number of one or two digits.
    fn short(&mut self) -> Option<u32> {
        let digits = self.0.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let number = self.0[..digits].parse().ok()?;
        self.0 = &self.0[digits..];
        Some(number)
    }

    fn skip(&mut self, mark: char) -> Option<()> {
        self.0 = self.0.strip_prefix(mark)?;
        Some(())
    }

    fn date(&mut self) -> Option<bool> {
        let (year, rest) = self.0.split_once('-')?;
        if year.len() != 4 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let year: u32 = year.parse().ok()?;
        self.0 = rest;
        let month = self.short()?;
        self.skip('-')?;
        let day = self.short()?;
        let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        Some((1..=days).contains(&day))
    }

    fn time(&mut self) -> Option<bool> {
        let hour = self.short()?;
        self.skip(':')?;
        let minute = self.short()?;
        self.skip(':')?;
        let second = self.short()?;
        if let Some(fraction) = self.0.strip_prefix(['.', ',']) {
            let rest = fraction.trim_start_matches(|letter: char| letter.is_ascii_digit());
            if rest.len() < fraction.len() {
                self.0 = rest;
            }
        }
        Some(hour < 24 && minute < 60 && second < 60)
    }

    fn zone(&mut self) -> bool {
        if self.skip('Z').is_some() {
            return true;
        }
        let [b'+' | b'-', hour @ .., b':', _, _] = self.0.as_bytes() else {
            return false;
        };
        let fits = |digits: &str, most| {
            digits.len() == 2
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && digits.parse::<u32>().is_ok_and(|number| number <= most)
        };
        let fits = hour.len() == 2 && fits(&self.0[1..3], 24) && fits(&self.0[4..], 60);
        self.0 = "";
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::is_timestamp;

    #[test]
    fn four_forms_are_times() {
        for text in
            ["2001-1-2", "2024-02-29 3:4:5.6", "2001-01-02t03:04:05Z", "2001-1-2T3:4:5-05:30"]
        {
            assert!(is_timestamp(text), "{text}");
        }
        for text in ["2001", "2001-13-1", "2001-02-29", "2001-1-2T3:4:5", "2001-1-2 3:4:5 -5", "x"]
        {
            assert!(!is_timestamp(text), "{text}");
        }
    }
}
