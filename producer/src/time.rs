//! Times and durations as text. Stricter than RFC 3339 where a reader could take a text for two
//! times; called for command line options and for the JSON of requests.

use std::{fmt, time::Duration};

use chrono::{DateTime, NaiveDate};
use holdpoint_graph::{Code, Refusal, shown};
use serde::{Serialize, Serializer};

const YEARS: std::ops::RangeInclusive<i32> = 1970..=2100;
/// The end of the year 9999: the last time that has four digits for its year.
const SHOWN_MS_MAX: i64 = 253_402_300_799_999;

/// A point in time in ms since 1970; shown as RFC 3339 in UTC with ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_time(self.0))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a duration: digits and one of `ms s m h d`, as in `500ms`, `48h`. `field` is named in the
/// refusal.
///
/// ```
/// use std::time::Duration;
/// use holdpoint_producer::parse_duration;
/// assert_eq!(parse_duration("delay", "2m").unwrap(), Duration::from_secs(120));
/// assert_eq!(parse_duration("delay", "1").unwrap_err().code().as_str(), "E_DURATION");
/// ```
///
/// # Errors
/// `E_DURATION` with the text.
pub fn parse_duration(field: &str, text: &str) -> Result<Duration, Refusal> {
    let bad = |why: &str| {
        let message = format!("is {}, {why}", shown(text, 40));
        Refusal::new(Code::Duration, field, message)
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or((text, ""));
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad("a duration is digits and one of ms, s, m, h, d")),
    };
    if number.is_empty() {
        return Err(bad("a duration begins with digits"));
    }
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    match ms {
        Some(ms) if i64::try_from(ms).is_ok() => Ok(Duration::from_millis(ms)),
        Some(_) | None => Err(bad("which is too long to be counted in ms")),
    }
}

/// Reads a time: RFC 3339 with an offset, of the years 1970 to 2100; gives ms since 1970. Digits
/// beyond ms are cut. `field` is named in the refusal.
///
/// ```
/// use holdpoint_producer::parse_time;
/// assert_eq!(parse_time("at", "1970-01-01T01:00:00.5+01:00").unwrap(), 500);
/// assert!(parse_time("at", "2026-10-25T02:30:00").is_err());
/// ```
///
/// # Errors
/// `E_TIME` with the text.
pub fn parse_time(field: &str, text: &str) -> Result<i64, Refusal> {
    read_time(text).map_err(|why| {
        let message = format!("is {}, {why}", shown(text, 40));
        Refusal::new(Code::Time, field, message)
    })
}

fn read_time(text: &str) -> Result<i64, &'static str> {
    const SHAPE: &str = "a time is RFC 3339 with an offset, as in 2026-10-25T02:30:00Z";
    if !text.is_ascii() || text.len() > 35 {
        return Err(SHAPE);
    }
    let (date_time, rest) = text.split_at_checked(19).ok_or(SHAPE)?;
    let is_shaped = date_time.bytes().zip("0000-00-00T00:00:00".bytes()).all(|(byte, shape)| {
        if shape == b'0' { byte.is_ascii_digit() } else { byte.eq_ignore_ascii_case(&shape) }
    });
    if !is_shaped {
        return Err(SHAPE);
    }
    let number = |from: usize, to: usize| {
        date_time.get(from..to).and_then(|digits| digits.parse::<u32>().ok()).ok_or(SHAPE)
    };
    let year = i32::try_from(number(0, 4)?).map_err(|_| SHAPE)?;
    if !YEARS.contains(&year) {
        return Err("the year must be 1970 to 2100");
    }
    let day = NaiveDate::from_ymd_opt(year, number(5, 7)?, number(8, 10)?);
    let day = day.ok_or("there is no such day")?;
    let second = number(17, 19)?;
    if second == 60 {
        return Err("a leap second is no time that can be stored");
    }
    let (fraction, offset) = split_fraction(rest).ok_or(SHAPE)?;
    let time = day.and_hms_milli_opt(number(11, 13)?, number(14, 16)?, second, fraction);
    let time = time.ok_or("there is no such time of day")?;
    let ms = time.and_utc().timestamp_millis() - offset_ms(offset).ok_or(SHAPE)?;
    if ms < 0 { Err("it is before 1970") } else { Ok(ms) }
}

/// The ms of a fraction of a second, and what follows it.
fn split_fraction(rest: &str) -> Option<(u32, &str)> {
    let Some(after) = rest.strip_prefix('.') else { return Some((0, rest)) };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, offset) = after.split_at_checked(digits)?;
    if !(1..=9).contains(&digits) {
        return None;
    }
    let ms = format!("{fraction}00");
    Some((ms.get(..3)?.parse().ok()?, offset))
}

fn offset_ms(offset: &str) -> Option<i64> {
    if offset.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match offset.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let number = |text: &str, max: i64| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| is_number && *number <= max)
    };
    Some(sign * (number(hours, 23)? * 60 + number(minutes, 59)?) * 60_000)
}

/// A time in ms since 1970 as RFC 3339 in UTC with ms: `2026-10-25T00:30:00.000Z`.
#[must_use]
pub fn format_time(ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(ms.clamp(0, SHOWN_MS_MAX)).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_digits_and_one_unit() {
        let good = [
            ("0s", 0),
            ("500ms", 500),
            ("5s", 5_000),
            ("2m", 120_000),
            ("48h", 172_800_000),
            ("30d", 2_592_000_000),
            ("2147483648ms", 2_147_483_648),
        ];
        for (text, ms) in good {
            let got = parse_duration("delay", text).unwrap();
            assert_eq!(got, Duration::from_millis(ms), "{text}");
        }
        let bad = [
            "",
            "1",
            "s",
            "1m1",
            "1h30m",
            "-5s",
            "+5s",
            "1e9h",
            "1.5s",
            "٣s",
            "5 s",
            " 5s",
            "5S",
            "5y",
            "5µs",
            "99999999999999999999s",
            "9223372036854775808ms",
            "200000000000d",
        ];
        for text in bad {
            let refusal = parse_duration("delay", text).expect_err(text);
            assert_eq!((refusal.code(), refusal.field()), (Code::Duration, "delay"), "{text}");
        }
    }

    #[test]
    fn equal_instants_are_equal_and_shown_in_utc() {
        let same = [
            "2026-10-25T00:30:00Z",
            "2026-10-25t00:30:00z",
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T06:15:00.000+05:45",
            "2026-10-24T23:30:00.0009-01:00",
            "2026-10-25T00:30:00-00:00",
        ];
        for text in same {
            let got = parse_time("at", text).map(format_time);
            assert_eq!(got.as_deref(), Ok("2026-10-25T00:30:00.000Z"), "{text}");
        }
        assert_eq!(parse_time("at", "2100-12-31T23:59:59.123456789Z").unwrap() % 1_000, 123);
        assert_eq!(parse_time("at", "2028-02-29T00:00:00Z").map(format_time).unwrap().len(), 24);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let bad = [
            "",
            "2026-10-25",
            "2026-10-25T02:30:00",
            "2026-10-25 02:30:00Z",
            "2026-10-25T02:30Z",
            "2026-06-30T23:59:60Z",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-10-25T24:00:00Z",
            "2026-10-25T02:60:00Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "2101-01-01T00:00:00Z",
            "2026-10-25T02:30:00+2:00",
            "2026-10-25T02:30:00+24:00",
            "2026-10-25T02:30:00.Z",
            "2026-10-25T02:30:00.1234567890Z",
            "2026-10-25T02:30:00Zx",
            "+2026-10-25T02:30:00Z",
            "Sun, 25 Oct 2026 02:30:00 +0200",
            "2026-10-25T02:30:00+０2:00",
            "1761352200",
        ];
        for text in bad {
            let refusal = parse_time("at", text).expect_err(text);
            assert_eq!((refusal.code(), refusal.field()), (Code::Time, "at"), "{text}");
        }
        assert!(parse_time("at", &"(".repeat(100_000)).is_err());
    }

    #[test]
    fn a_time_beyond_what_can_be_shown_is_clamped() {
        assert_eq!(format_time(i64::MIN), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_time(i64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
