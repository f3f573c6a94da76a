//! Character references in attribute values, as `&amp;` in links.

/// Replaces `&amp;`, `&lt;`, `&gt;`, `&quot;`, `&apos;` and the numeric forms `&#38;`, `&#x26;`. Other
/// references stay unchanged, since a bare `&` is common in links.
pub fn decode(value: &mut Vec<u8>) {
    let Some(first) = memchr::memchr(b'&', value) else { return };
    let text = value.split_off(first);
    let mut rest = text.as_slice();
    while let Some(&byte) = rest.first() {
        let known = reference(rest);
        let taken = match known {
            Some((character, len)) => {
                value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                len
            }
            None => {
                value.push(byte);
                1
            }
        };
        rest = &rest[taken..];
    }
}

/// The character of a reference at the start of `text`, and the length of the reference.
fn reference(text: &[u8]) -> Option<(char, usize)> {
    let body = text.strip_prefix(b"&")?;
    let end = body.iter().take(10).position(|&b| b == b';')?;
    let name = std::str::from_utf8(&body[..end]).ok()?;
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((character, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn references_by_example() {
        for (text, expected) in [
            ("/a", "/a"),
            ("/a?b&amp;c", "/a?b&c"),
            ("&lt;&gt;&quot;&apos;&#38;&#x26;", "<>\"'&&"),
            ("&amp;amp;", "&amp;"),
            ("a&b=c;d", "a&b=c;d"),
            ("&#233;&#xD800;&#;&;&", "\u{e9}&#xD800;&#;&;&"),
            ("&#99999999999;", "&#99999999999;"),
        ] {
            let mut value = text.as_bytes().to_vec();
            decode(&mut value);
            assert_eq!(String::from_utf8_lossy(&value), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_round_trips(text in "[ -~]{0,40}") {
            let mut value = text.replace('&', "&amp;").into_bytes();
            decode(&mut value);
            prop_assert_eq!(String::from_utf8_lossy(&value), text);
        }

        #[test]
        fn random_text_never_panics(mut value in prop::collection::vec(any::<u8>(), 0..40), text in "[&#x0-9;]{0,30}") {
            decode(&mut value);
            decode(&mut text.into_bytes());
        }
    }
}
