//! Names made from IP addresses.

use polygraph_addr::{AddrRange, NameTemplate, count, expand, join};

fn names(addresses: &str, template: &str) -> Result<Vec<AddrRange>, String> {
    let addrs = expand(&AddrRange::parse_list(addresses).unwrap(), 10_000).unwrap();
    let template = NameTemplate::parse(template).map_err(|error| error.to_string())?;
    template.names(addrs, 3).map_err(|error| error.to_string())
}

#[test]
fn names_from_addresses() {
    #[track_caller]
    fn check(addresses: &str, template: &str, expected: &str) {
        let found = names(addresses, template).map_or_else(|error| error, |names| join(&names, " "));
        assert_eq!(found, expected);
    }
    check("10.16.129.1-2:80", "z", "w[1001-1002].h[1129]o[1016]s[1010].z:80");
    check("10.16.129.1", "bench.tst", "w[1001].h[1129]o[1016]s[1010].bench.tst");
    check("10.16.129.1-2:80", "h${dashed_ip}.org", "h[10]-[16]-[129]-[1-2].org");
    check("10.16.129.1-2:80", "h${dashed_ip}.org:${port}", "h[10]-[16]-[129]-[1-2].org:80");
    check("10.16.129.1-2:80", "h${dashed_ip}.org:8080", "h[10]-[16]-[129]-[1-2].org:8080");
    check("10.0.0.1:80-81", "p${port}.w${worker}.org", "p[80-81].w[3].org");
    check("[fe80::1]:80", "z", "w-fe80-0-0-0-0-0-0-1.z:80");
    check("10.0.0.1", "x:${port}", "the template contains the port, but 10.0.0.1 has none");
    check("a.org", "x", "a.org is already a name; names are made from IP addresses");
    let macros = "macros are ${dashed_ip}, ${port} and ${worker}";
    check("10.0.0.1", "${ip}.x", &format!("there is no macro ${{ip}}; {macros}"));
    check("10.0.0.1", "$x", &format!("'$' begins a macro; {macros}"));
    check(
        "10.0.0.1",
        "a b",
        "' ' cannot be part of a host name in the template 'a b'; a host name has letters, digits and '-', '_', '.', '*'",
    );
    check(
        "10.0.0.1",
        "x:http",
        "'http' is not a port in the template 'x:http'; write ':80' or, as a range, ':80-89'",
    );
}

#[test]
fn names_keep_the_order_of_addresses() {
    let dashed = names("10.16.129-134.1-126", "h-${dashed_ip}.org").unwrap();
    assert_eq!(join(&dashed, " "), "h-[10]-[16]-[129-134]-[1-126].org");
    let at_the_front = names("10.16.129-134.1-126:80", "${dashed_ip}.org").unwrap();
    assert_eq!(join(&at_the_front, " "), "[10]-[16]-[129-134]-[1-126].org");
    let plain = names("10.16.129-134.1-126", "z").unwrap();
    assert_eq!(count(&plain), 756);
    let members = expand(&plain, 1000).unwrap();
    assert_eq!(members[126].to_string(), "w1001.h1130o1016s1010.z");
    for name in plain.iter().chain(&dashed) {
        assert_eq!(AddrRange::parse(&name.to_string()).as_ref(), Ok(name));
    }
}
