//! The notation of addresses: members in order, the way back, and what is said about mistakes.

use polygraph_addr::{Addr, AddrRange, TextRange, compact, count, expand, join};

fn range(text: &str) -> AddrRange {
    AddrRange::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn members_come_in_odometer_order() {
    #[track_caller]
    fn check(text: &str, members: &[&str]) {
        let found: Vec<String> = range(text).iter().map(|addr| addr.to_string()).collect();
        assert_eq!(found, members, "{text}");
        assert_eq!(range(text).len(), members.len() as u64, "{text}");
    }
    check("10.0.1-2.1-2", &["10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2"]);
    check("h[1-2].x:80-81", &["h1.x:80", "h1.x:81", "h2.x:80", "h2.x:81"]);
    check("lo0::10.1.0.7:80/22", &["lo0::10.1.0.7:80/22"]);
    check("fxp0::10.1.0.7-8/22", &["fxp0::10.1.0.7/22", "fxp0::10.1.0.8/22"]);
    check("10-11.0.0.1", &["10.0.0.1", "11.0.0.1"]);
    check("10.0.0.[1-2]", &["10.0.0.1", "10.0.0.2"]);
    check("[fe80::f-10]:80", &["[fe80::f]:80", "[fe80::10]:80"]);
    check("[1:2:3:4:5:6:7:8-9]/64", &["[1:2:3:4:5:6:7:8]/64", "[1:2:3:4:5:6:7:9]/64"]);
    check("eth0::[::1]:80", &["eth0::[::1]:80"]);
    check("[::ffff:10.0.0.1]", &["[::ffff:10.0.0.1]"]);
    check("www.example.com", &["www.example.com"]);
    check("my-host.x.org:80", &["my-host.x.org:80"]);
    check("3x.org", &["3x.org"]);
    check("*.foo.com", &["*.foo.com"]);
    check(".foo.com:80", &[".foo.com:80"]);
    check("x[01-02].y", &["x1.y", "x2.y"]);
    check("h.1-2.org", &["h.1.org", "h.2.org"]);
    check("h.\\1-2.org", &["h.1-2.org"]);
    check("www.24-7support.com", &["www.24-7support.com"]);
    check("h.007.org", &["h.007.org"]);
}

#[test]
fn counts() {
    #[track_caller]
    fn check(text: &str, members: u64) {
        assert_eq!(range(text).len(), members, "{text}");
    }
    check("lo0::10.1.0-3.1-250:80/22", 1000);
    check("w[1-3].x.com:80-81", 6);
    check("127.0.0.1:7001-7030", 30);
    check("[fe80::10-1f]:80", 16);
    check("0-255.0-255.0-255.0-255", 1 << 32);
    check(&format!("[{}]:1-65535", ["0-ffff"; 8].join(":")), u64::MAX);
    assert_eq!(count(&[range("10.0.0.1-3"), range("a.b")]), 4);
}

#[test]
fn expansion_has_a_limit() {
    let ranges = [range("10.0.0-255.0-255")];
    assert_eq!(expand(&ranges, 65536).map(|addrs| addrs.len()), Ok(65536));
    let error = expand(&ranges, 65535).unwrap_err();
    assert_eq!(error.to_string(), "these are 65536 addresses, but the limit is 65535");
}

#[test]
fn strings_have_bracket_groups() {
    #[track_caller]
    fn check(text: &str, members: &[&str]) {
        let range = TextRange::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(range.iter().collect::<Vec<_>>(), members, "{text}");
        assert_eq!(TextRange::parse(&range.to_string()), Ok(range), "{text}");
    }
    check("abc", &["abc"]);
    check("[1-2]x", &["1x", "2x"]);
    check("\\[1-2]x", &["[1-2]x"]);
    check("FOO\\\\user[0-1]:p[8-9]", &["FOO\\user0:p8", "FOO\\user0:p9", "FOO\\user1:p8", "FOO\\user1:p9"]);
    check("a.1-2.b", &["a.1-2.b"]);
    assert_eq!(TextRange::parse("r[1-100]").map(|range| range.len()), Ok(100));
}

#[test]
fn lists_become_short_again_in_their_order() {
    #[track_caller]
    fn check(members: &str, ranges: &str) {
        let addrs: Vec<Addr> =
            members.split(' ').flat_map(|text| range(text).iter().collect::<Vec<_>>()).collect();
        let compacted = compact(addrs.clone());
        assert_eq!(join(&compacted, " "), ranges);
        assert_eq!(expand(&compacted, 1 << 20), Ok(addrs));
    }
    check("10.0.1.1 10.0.1.2 10.0.2.1 10.0.2.2", "10.0.1-2.1-2");
    check("10.0.1.2 10.0.1.1", "10.0.1.2 10.0.1.1");
    check("10.0.1.1 10.0.1.1", "10.0.1.1 10.0.1.1");
    check("10.101.0-1.1-250 10.101.2.1-125", "10.101.0-1.1-250 10.101.2.1-125");
    check("lo0::10.0.0.1:80/22 lo0::10.0.0.2:80/22", "lo0::10.0.0.1-2:80/22");
    check("10.0.0.1/22 10.0.0.2/23", "10.0.0.1/22 10.0.0.2/23");
    check("10.0.0.1:80 10.0.0.1:81 10.0.0.2:80 10.0.0.2:81", "10.0.0.1-2:80-81");
    check("w9.x:80 w10.x:80 w11.x:80", "w[9-11].x:80");
    check("a.1-2.c", "a.[1-2].c");
    check("w09.x w10.x", "w09.x w10.x");
    check("[fe80::9] [fe80::a]", "[fe80::9-a]");
    check("10.0.1-3.7", "10.0.1-3.7");
    check("10.0.1-2.1-5 10.0.3.1-2 10.0.4-5.1-5", "10.0.1-2.1-5 10.0.3.1-2 10.0.4-5.1-5");
}

#[test]
fn mistakes_are_explained_where_they_are() {
    #[track_caller]
    fn check(text: &str, place: &str, message: &str) {
        let error = AddrRange::parse(text).expect_err(text);
        assert_eq!(&text[error.span.clone()], place, "{text}");
        assert_eq!(error.to_string(), message);
    }
    check("", "", "the host is missing in ''; write '10.1.0.7:80' or 'www.example.com:80'");
    check(
        "::x.org",
        "::",
        "the interface name before '::' is empty in '::x.org'; write 'lo0::10.1.0.7', or no '::' at all",
    );
    check(
        "fe80::1",
        "fe80::1",
        "an IPv6 address has no brackets in 'fe80::1'; write IPv6 addresses as '[fe80::1]:80'",
    );
    check("300.1.0.1", "300", "the octet 300 is above 255 in '300.1.0.1'; use a smaller number");
    check(
        "10.1.0",
        "10.1.0",
        "an IPv4 address has four numbers, not 3 in '10.1.0'; write '10.1.0.7' or, as a range, '10.1.0-3.1-250'",
    );
    check(
        "10.1.0.9-8",
        "9-8",
        "the range 9-8 ends before it begins in '10.1.0.9-8'; put the smaller number first",
    );
    check(
        "10.1.0.1-",
        "",
        "'1-' is neither a number nor a range of numbers in '10.1.0.1-'; write 'n' or 'n-m'",
    );
    check(
        "10.1.0.1:",
        "",
        "the port after ':' is missing in '10.1.0.1:'; write ':80' or, as a range, ':80-89'",
    );
    check("x.org:http", "http", "'http' is not a port in 'x.org:http'; write ':80' or, as a range, ':80-89'");
    check("x.org:70000", "70000", "the port 70000 is above 65535 in 'x.org:70000'; use a smaller number");
    check("x.org:0", "0", "port 0 cannot be used in 'x.org:0'; ports are 1 to 65535");
    check(
        "10.0.0.1/33",
        "33",
        "'33' is not a subnet in '10.0.0.1/33'; the subnet is the last part: '/1' to '/32', with IPv6 to '/128'",
    );
    check(
        "10.0.0.1/24:80",
        "24:80",
        "'24:80' is not a subnet in '10.0.0.1/24:80'; the subnet is the last part: '/1' to '/32', with IPv6 to '/128'",
    );
    check(
        "x.org/24",
        "24",
        "a name cannot have a subnet in 'x.org/24'; leave the subnet out, or give an IP address",
    );
    check(
        "[fe80::1",
        "[fe80::1",
        "the bracket of the IPv6 address is not closed in '[fe80::1'; write IPv6 addresses as '[fe80::1]:80'",
    );
    check(
        "[fe80::1]80",
        "80",
        "unexpected text '80' after the address in '[fe80::1]80'; after ']' only ':port' and '/subnet' may follow",
    );
    check(
        "[1:2:3]",
        "1:2:3",
        "'1:2:3' is not an IPv6 address in '[1:2:3]'; an IPv6 address is up to eight groups of hex digits, \
         '[fe80::10-1f]'",
    );
    check(
        "my host.org",
        " ",
        "' ' cannot be part of a host name in 'my host.org'; a host name has letters, digits and '-', '_', '.', '*'",
    );
    check(
        "w[1-3.org",
        "[1-3.org",
        "the bracket is not closed in 'w[1-3.org'; write '[n-m]'; a plain bracket is written '\\['",
    );
    let error = Addr::parse("10.0.0.1-5").unwrap_err();
    assert_eq!(error.to_string(), "this is a range of addresses in '10.0.0.1-5'; give one address");
}
