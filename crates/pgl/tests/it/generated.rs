//! Programs of any size, for `make bench`.

use std::fmt::Write;

/// Number of contents in use: a workload can have 253.
const CONTENTS: u32 = 250;

/// A program of at least so many bytes, with many contents, servers, robots, arrays and expressions.
pub fn generated(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 1000);
    let mut index = 0_u32;
    while text.len() < bytes {
        let (a, b) = (index / 250, index % 250 + 1);
        let used = index % CONTENTS;
        let _ = write!(
            text,
            "// Group {index}\nint n{index} = {index} % 7 + 2 * 3;\nrate r{index} = n{index}/sec + 5/min * 2;\n\
             Content C{index} = {{\n    kind = \"kind{index}\";\n    size = exp({index}KB + 1KB);\n    cachable = 80%;\n\
             \u{20}   obj_life_cycle = {{ length = const(7day); with_lmt = 100%; expires = [nmt + 0]; }};\n}};\n\
             Server S{index} = {{\n    contents = [C{used}: 70%, C{used}: 30%];\n    addresses = ['10.{}.{}.{b}:80'];\n}};\n\
             Robot R{index} = {{\n    origins = S{index}.addresses;\n    req_rate = r{index} / 10;\n    recurrence = 55% / 80%;\n\
             \u{20}   pop_model = {{ pop_distr = popUnif(); }};\n    addresses = ['10.{}.{}.{b}' ** 2];\n}};\nuse(S{index}, R{index});\n",
            100 + a / 250,
            a % 250,
            a / 250,
            a % 250,
        );
        index += 1;
    }
    text.push_str("Phase P = { name = \"p\"; goal.duration = 1min; };\nschedule(P);\n");
    text
}

#[cfg(test)]
mod tests {
    use polygraph_pgl::render::Style;
    use polygraph_pgl::{MemoryLoader, Options, compile};

    #[test]
    fn programs_with_more_contents_than_a_workload_can_have_use_some_of_them() {
        let text = super::generated(300_000);
        assert!(text.matches("\nContent ").count() > 253);
        let compilation =
            compile("big.pg", &MemoryLoader::default().with("big.pg", text), &Options::default());
        assert!(!compilation.has_errors(), "{}", compilation.render(Style::Plain));
    }
}
