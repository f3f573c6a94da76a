//! The classes of diagnostics: a stable identifier, a severity, a title and an explanation each.
//!
//! Identifiers never change their meaning; a class that is no longer reported leaves a gap. Groups: 01 files,
//! 02 syntax, 03 literals, 04 names, 05 undefined values, 06 types, 07 values, 08 calls, 09 address schemes, 10
//! probabilities, 11 robots, 12 servers, 13 content, 14 other parts, 15 schedule, 16 limits of this
//! implementation, 17 hosts and networks.

use serde::{Serialize, Serializer};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information for the reader.
    Note,
    /// The workload can run, but probably not as meant.
    Warning,
    /// The workload cannot run.
    Error,
}

macro_rules! codes {
    ($($name:ident $id:literal $severity:ident $title:literal $text:literal)*) => {
        /// A class of diagnostics.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// All classes in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The stable identifier, such as `E0402`.
            pub fn id(self) -> &'static str {
                match self { $(Code::$name => $id),* }
            }

            /// The severity of this class.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity),* }
            }

            /// A short description of the class.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title),* }
            }

            /// A detailed explanation of the class.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$name => $text),* }
            }
        }
    };
}

codes! {
FileNotFound "E0101" Error "a file cannot be found"
"The main file and every `#include` are looked up as written (relative to the current directory of the process), then in each \
directory given with --cfg_dirs, in order, then in the directory of the including file and in its subdirectory `include`. The \
message lists every place that was tried, and the chain of inclusions."
BadDirective "E0102" Error "a line that starts with `#` is not a directive"
"A `#` as the very first character of a line starts a directive, and the only directive is\n\n    #include \
\"file\"\n\n\
A line that contains only `#` is ignored. A `#` anywhere else is an error; comments start with `//`."
IncludeTooDeep "E0103" Error "files include each other too deeply or too often"
"At most 256 files may be open at once, and the total number of inclusions is limited. A file that includes itself, directly \
or through other files, always reaches one of these limits. There is no include-once rule."
CommandNotAllowed "E0104" Error "a command would have to be run"
"Back-quoted commands and system() run a program when the workload is read. Workloads often come from other people, so \
commands are run only with --allow_exec."
CommandFailed "E0105" Error "a command failed"
"A back-quoted command or system() ended with a status other than zero or could not be started."
SourceTooLarge "E0106" Error "the program is too large"
"All files of a program together may have at most 64 MB."
UnterminatedComment "E0107" Error "a block comment has no end"
"Block comments nest: each `/*` needs its own `*/`. The message shows where the open comment starts."
NestedComment "W0108" Warning "a block comment inside a block comment"
"Block comments nest, so the inner `/*` needs its own `*/`. This is legal but often an accident."
Unreadable "E0109" Error "a file cannot be read"
"The file exists but reading it failed, or it is not a plain file."
BadDataFile "E0110" Error "a data file is unusable"
"A file named in a call (a table of a distribution, a zone file, a trace) could not be read or does not have the \
expected form."
Unexpected "E0201" Error "an unexpected word or sign"
"The parser found a word or sign that is not allowed here. Statements end with `;`, also `Type x = { ... };`. There are \
no loops, no user-defined functions, and no trailing commas."
IllegalCharacter "E0202" Error "an illegal character"
"Outside comments only tabs and the characters ASCII 32 to 126 are allowed, also inside strings."
UnterminatedString "E0203" Error "a string has no end on its line"
"Strings \"...\", quoted constants '...', back-quoted commands and regular expressions end on the line they start on."
MissingSemicolon "E0204" Error "a `;` is missing"
"Every statement ends with `;`, also a declaration with a block: `Robot R = { ... };`. No `;` is needed after `if`, \
`every` and bare blocks."
NestingTooDeep "E0205" Error "brackets are nested too deeply"
"Blocks, arrays, parentheses and prefix operators may be nested at most 100 levels deep."
ElseIf "E0206" Error "there is no `else if`"
"Both branches of an `if` are blocks. Put the second `if` inside the block of `else`."
TokenTooLong "E0207" Error "a word is too long"
"One word, string or constant has at most 4096 characters."
BadAddress "E0301" Error "a malformed address"
"An address is `[ifname::]host[:port][/subnet]`. The host is an IPv4 address, an IPv6 address in brackets or a name. \
A subnet is 1..32 for IPv4 and 1..128 for IPv6 and not allowed for names. A port is a number up to 65535."
BadRange "E0302" Error "a malformed range"
"Ranges are written `n-m` where n is not greater than m: in all octets of an IPv4 address but the first, in the groups of \
an IPv6 address (hexadecimal), in ports, and in brackets in names and strings: `www[1-5].org`, \"user[1-100]\". One range \
per group, no lists, no steps."
BadTime "E0303" Error "a malformed absolute time"
"An absolute time is 'YYYY/MM/DD', 'YYYY/MM/DD HH:MM' or 'YYYY/MM/DD HH:MM:SS', in UTC, with exactly that many digits."
BadHeader "E0304" Error "a malformed MIME header"
"A quoted constant with a colon and a blank is a MIME header 'Name: value'. The first colon must be that one, and the \
name must not be empty."
BadNumber "E0305" Error "a malformed number"
"Numbers start with a digit. A unit or `%` directly follows a number without an exponent: `1.5sec`, `10KB`, `55%`."
PartialByte "E0306" Error "a number of bits that is not a whole number of bytes"
"Sizes are whole bytes, so a number of bits must be a multiple of 8."
IntTooLarge "E0307" Error "an integer is too large"
"Integers have 32 bits: up to 2147483647. Write `3000000000.0` for a float or use a unit (3GB)."
BadRegex "E0308" Error "a malformed regular expression"
"A regular expression is written after its scope: `url =~/re/flags` searches, `url == /re/flags` compares, with `/` or \
`@` as the delimiter directly after the operator. Scopes are url, url_host, url_host_ip, url_path and user_group; flags are `i` \
(ignore case) and `C` (case matters)."
UnknownUnit "E0309" Error "an unknown unit"
"A number may be directly followed by a unit, or by `%` for a share:\n\n    time   msec ms sec s min hour hr day year    10sec, 1.5min\n    \
size   bit Byte Kb KB Mb MB Gb GB            13KB, 1GB (small b: bits)\n    share  %                                     \
80% (the same as 0.8)\n\nRates and bandwidths are written as divisions: `10/sec`, `55Kb/sec`. Plain numbers, such \
as counts, have no unit."
UnknownScope "W0310" Warning "an unknown scope of a regular expression"
"The scopes are url, url_host, url_host_ip, url_path and user_group. Any other word is taken as url."
UnknownType "E0401" Error "an unknown type"
"The name before a declared name must be a type: a basic type (bool, int, time, ...), a record type (Robot, Server, \
...), a distribution (time_distr), or an array of one of them (addr[])."
UndeclaredName "E0402" Error "a name that was not declared"
"A variable must be declared before it is used:\n\n    rate Rate = 10/sec;\n    print(Rate * 2);\n\nInside a block `name = { ... }` the fields of that record come first, \
then variables of the block, then those of the enclosing blocks, up to the global variables."
UnknownField "E0403" Error "a field that does not exist"
"The name is not a field of the record and, inside a block, not a variable either. On the left of `=` it is probably \
misspelt, or belongs to a record inside this one (`goal.duration`). On the right it may be a variable that is not declared, \
or that is declared further down. Declare it before it is used:\n\n    rate Rate = 10/sec;\n    Robot R = { req_rate = Rate / 2; };\n\n\
The message lists similar names; the language reference lists all fields."
DottedDeclaration "E0404" Error "a dotted name cannot be declared"
"Fields exist already; assign them: `B.peak_req_rate = 5/sec;`. Only a plain name can be declared."
Redeclared "E0405" Error "a name is declared twice"
"A name can be declared once in a scope. Bare blocks and branches of `if` do not open a scope; only the block \
after `name =` does. A file that is included twice declares everything twice."
Shadows "W0406" Warning "a local name hides another one"
"A variable declared inside a block has the name of a variable or field outside, which it hides in this block. A \
variable with the name of a field of its own block is never read, because fields come first."
BadSetting "E0407" Error "a setting cannot be applied"
"A setting NAME=VALUE gives a value to a top-level name or one of its fields: `--set TheBench.peak_req_rate=100/sec`. \
NAME must be declared at the top level of the program, and VALUE is an expression in PGL notation."
Undefined "E0501" Error "an undefined value is used"
"A variable or field was read before it had a value, or after it had been set to undef(). Workload templates leave the parameters of the test undefined; give them in the file or with --set NAME=VALUE. Inside a \
block, a field hides a variable of the same name, even while the field is undefined."
UndefOperand "E0502" Error "undef() is not a value"
"undef() is only allowed as the whole right-hand side of an assignment. In an array or argument list it marks a \
place that must be filled in before the workload can run."
NoConversion "E0601" Error "a value of the wrong type"
"Values are converted automatically only from int to float and bool, from int 0 to time, size, rate, bwidth and any distribution, \
from ranges to arrays, and from Robot to ClientBehavior. There is no conversion from float to int (use int(x)), \
from a constant to a distribution (use const(x)), or from a value to an array (use [x]). Values are written as follows:\n\n    \
bool         yes, no\n    int          5\n    float        0.8, or as a share 80%\n    string       \"text\"\n    \
time         3sec, 500ms, 10min\n    size         13KB, 500Byte, 1GB\n    rate         100/sec\n    bwidth       55Kb/sec\n    \
addr         '10.0.0.1:80'\n    addr[]       [ '10.0.0.1:80', '10.0.0.2-9:80' ]\n    T[]          [ x, y ], with shares [ x: 30%, y ]\n    \
time_distr   const(3sec), exp(3sec), unif(1sec, 5sec), norm(3sec, 1sec), logn(3sec, 1sec)\n    size_distr   exp(13KB), logn(13KB, 20KB)\n    \
int_distr    const(5), zipf(64), seq(1)\n    float_distr  const(4.0), unif(0.1, 0.9)\n    PopDistr     popUnif(), popZipf(1)\n    \
re           url_host =~/example/\n    DynamicName  dynamicName('*.example.com', 10%)\n    uniq_id      uniqId()\n    \
a record     Goal g = { duration = 10min; };\n\nThe type of the first argument determines what a distribution draws. zipf() and \
unif() are distributions of numbers; popZipf() and popUnif() describe the popularity of objects."
NoOperator "E0602" Error "an operator that does not exist for these types"
"See the table of operators in the language reference. Times, sizes, rates and bandwidths can be added to values of the \
same type, multiplied by numbers, and divided; strings have no operators."
BadCondition "E0603" Error "a condition that is neither true nor false"
"The condition of an `if` is a bool (or an int, where 0 is false)."
WrongArgument "E0604" Error "an argument of the wrong type"
"The call does not accept an argument of this type."
BadNumberString "E0605" Error "a string that is not a number"
"int(\"...\") and float(\"...\") accept a number with blanks around it and nothing else."
BadQualifier "E0606" Error "a qualifier without a time distribution"
"`lmt`, `now` and `nmt` are allowed only to the left of `+` before a time distribution (or 0): `nmt + const(1hour)`."
BadCloneFactor "E0607" Error "the factor of `**` is not an integer"
"`x ** n` makes an array of n copies of x; n is an int, not negative. `**` binds weakest of all operators."
WrongElement "E0608" Error "an array element of the wrong type"
"All elements of an array must have its element type; elements are not converted."
NotFillable "E0609" Error "a block cannot be assigned here"
"`name = { ... }` sets fields of an existing record. A plain value, an array, or a record that is undefined cannot be \
filled like that: declare a variable of the type, fill it, and assign it."
Overflow "E0701" Error "a number is out of range"
"The result does not fit its type: 32 bits for int, about 290,000 years for time, 2^63 bytes for size."
ZeroDivision "E0702" Error "division by zero"
"The divisor is zero (for floats: closer to zero than 0.00000001)."
BadCount "E0703" Error "a count that is too small"
"A cloning factor must not be negative; counts given to select(), credentials() and the like must be at least 1."
BadPort "E0704" Error "a port that does not exist"
"Ports are 1..65535. A negative port given to setAddrPort() removes the port."
NotDivisible "E0705" Error "a group assignment that cannot be divided evenly"
"Without probabilities the items on the right are distributed in equal consecutive slices, so their number must be a \
multiple of the number of targets on the left."
TooManyItems "E0706" Error "too many items"
"The number of items of a range, a clone or an array is limited, and so is the total number of items that a program may \
compute. Millions of agents are possible, billions are not."
TooDeep "E0707" Error "values are nested too deeply"
"Arrays in arrays and records in records may be nested at most 64 levels deep."
BadDistribution "E0708" Error "a distribution with impossible parameters"
"The parameters of the distribution contradict each other or its nature, such as a mean that is not positive or an \
upper bound below the lower one."
IntDivision "W0710" Warning "a division of ints whose result is 0"
"`55/80` is 0, because the quotient of two ints is an int. For a fraction, one of the two must be a float: `55.0/80`, or \
shares: `55%/80%`."
Accounts "N0711" Note "credentials() creates accounts of its own"
"Names and passwords that credentials() creates depend on its arguments and on the global seed. They differ from those \
of Polygraph 4, whose random numbers are not reproduced, so accounts made for Polygraph 4 do not work. To get accounts \
for the device, run\n\n    polygraph accounts FILE --format htpasswd\n    polygraph accounts FILE --format ldif"
SelectCycles "W0709" Warning "select() returns items repeatedly"
"More items are requested than there are. After each item has been returned once, items are repeated."
UnknownCall "E0801" Error "an unknown call"
"No function or procedure has this name. PGL has no user-defined functions."
WrongArgumentCount "E0802" Error "a wrong number of arguments"
"The call takes a different number of arguments; the message shows its form."
NotAllowedHere "E0803" Error "a call that is not allowed here"
"Functions are used in expressions; procedures are statements. Some calls exist only in phase scripts, a few only \
inside `every`, and use(), schedule() and the like only outside of scripts."
NotUsable "E0804" Error "a value that cannot be used or scheduled"
"use() takes Robot, Server, Proxy, AddrMap, Bench, MembershipMap, NetPipe and SslWrap values, schedule() takes Phase and \
StatsSample values. Neither takes arrays."
EveryInStatic "E0805" Error "`every` outside of a phase script"
"`every G do { ... }` watches a running phase, so it is only allowed in the script of a Phase."
ShareAsNumber "W0807" Warning "a share compared with a number above 1"
"Ratios and relative deviations are shares: `3%` is 0.03 and `100%` is 1. In Polygraph 4 they were percentages, and a bound of \
3 percent was written `3`; here it is written `3%`."
UselessUse "W0806" Warning "use() of something without effect"
"An agent without addresses, or a map without names or addresses, is skipped. Only the last Bench counts."
SchemeIncomplete "E0901" Error "an address scheme lacks settings"
"The scheme computes addresses from settings of the bench and of its own. Those named in the message are undefined. Set them \
before the call, or with --set NAME=VALUE:\n\n    Bench TheBench = {\n        peak_req_rate = 100/sec;\n        client_side = {\n            \
max_host_load = 500/sec; max_agent_load = 0.4/sec;\n            addr_space = [ '10.101.0-123.1-250/22' ];\n        \
};\n    };\n    PolyMix4As scheme = { agents_per_addr = 1; };\n    addr[] robots = robotAddrs(scheme, TheBench);"
SchemeImpossible "E0902" Error "an address scheme cannot be satisfied"
"The settings of the bench contradict each other: the request rate needs more agents than the hosts or the \
address space can hold."
SchemeIgnores "W0903" Warning "an address scheme ignores a setting"
"The setting has no effect with this scheme."
Probabilities "W1001" Warning "probabilities that do not add up to 100%"
"If every item has a probability, the probabilities should add up to 100%. They were scaled to do so."
RobotConflict "E1101" Error "settings of a robot contradict each other"
"For example a request rate and an inter-arrival distribution, or both ways of pausing request bodies."
RobotIncomplete "E1102" Error "a robot lacks settings"
"A setting of the robot requires another setting, which is undefined; the message names it. Every robot needs \
addresses and origins, and a robot with recurrence needs a popularity model:\n\n    Robot R = {\n        \
addresses = [ '127.0.0.1' ];\n        origins = S.addresses;              // of a Server S\n        req_rate = 5/sec;\n        \
recurrence = 55%;\n        pop_model.pop_distr = popUnif();    // or popZipf(1)\n    };"
BadOrigins "E1103" Error "unusable origins of a robot"
"Each origin must be the visible name of a server: an address of a used Server, or a name in a used AddrMap. It must \
be listed once. The simplest way to make both sides agree is\n\n    origins = S.addresses;"
RobotIgnores "W1104" Warning "a setting of a robot has no effect"
"The setting is accepted for old workloads but has no effect."
ServerIncomplete "E1201" Error "a server lacks settings"
"A server needs contents, including those that its pages embed, and addresses with ports; the message names what \
is missing."
BadServerAddress "E1202" Error "an unusable server address"
"A server address is an IP with a port, and each is used once in a test:\n\n    addresses = [ '127.0.0.1:9090', '127.0.0.2-9:9090' ];"
DirectAccess "E1203" Error "direct_access does not match contents"
"Unless direct_access has its own probabilities, each of its entries must occur exactly once in contents, from which \
it takes its share."
ServerAdvice "W1204" Warning "a server with a questionable setting"
"The server can run but a setting has less effect than it seems."
ContentIncomplete "E1301" Error "a content lacks settings"
"A content needs a size distribution, a content database or a document root, and some settings need a companion; the \
message names what is missing."
ContentConflict "E1302" Error "settings of a content contradict each other"
"For example a content database together with a document root."
MissingFile "W1303" Warning "a file that the workload names is missing"
"Content databases, document roots, texts to insert and traces are read when a test starts, from the directory in which the \
program is started. `check` verifies that they exist on this machine; they may still exist on another machine."
UnknownWord "E1401" Error "an unknown word in a selector"
"Some string arrays select among known words; the message lists them."
UnqualifiedExpires "E1402" Error "an expiration time without a base"
"Expiration times need a base: `lmt` (last modification), `now` or `nmt` (next modification): \
`expires = [ nmt + 0 ];`."
BadPart "E1403" Error "unusable settings of a record"
"The settings of the record contradict each other, are out of bounds or are incomplete; the message says which."
BadMap "E1404" Error "an unusable address map"
"A map has either one name for many addresses, or at least as many names as addresses. Maps must not overlap, and \
addresses must be IPs."
PartAdvice "W1405" Warning "a questionable setting of a record"
"The setting is legal but probably not intended."
BadAddresses "E1406" Error "unusable agent addresses"
"Robots have IP addresses without ports; servers have IP addresses with ports."
Deprecated "W1407" Warning "an old form"
"The form still works. The message shows the current one."
NeverUsed "W1408" Warning "a definition that is never used"
"A Robot, Server, Proxy or Phase takes part in the test only if it is given to use() or schedule(), and a Content only if it is \
among the contents of a server or the parts of another content. One that serves as a template, `Robot R2 = R;`, counts as \
used. Definitions in included files may be left out.\n\n    use(S, R);\n    schedule(warm, meas);"
BadPhase "E1501" Error "an unusable phase"
"Factors are at most 100%, and a factor that varies needs a phase with a positive goal (duration, xactions or fill_size), along which \
it varies."
NoSchedule "W1502" Warning "no phase was scheduled"
"Without schedule(), the test has one endless phase named dflt. Define a schedule as follows:\n\n    Phase p = { name = \"p1\"; goal.duration = 10min; };\n    schedule(p);"
NothingUsed "W1503" Warning "the program uses no agents"
"Without use() of a Robot or Server there is nothing to run."
NotSupported "E1601" Error "not supported by this implementation"
"The language has this feature, but this program does not implement it. It is an error, so that no setting is ignored silently. The \
reference says \"(not implemented)\" of such fields. Leave the setting out, or write its default."
TooManyFindings "N1602" Note "more findings"
"The list of findings is limited; correct some of them and check again."
Ports "W1701" Warning "few ports for many connections"
"A client address has about 28,000 ports to one server address, and each closed connection keeps its port for a minute. \
Use more addresses, longer connections, or a larger port range."
Memory "W1702" Warning "memory may run short"
"The estimate of memory for agents and open connections exceeds what typical machines have."
Bandwidth "W1703" Warning "bandwidth may run short"
"The offered traffic of one host is close to or above what typical network cards carry."
Load "W1704" Warning "hosts or agents are loaded beyond what the bench says"
"Robots offer more than the bench allows: more than peak_req_rate in total, or more than max_host_load of one host. The \
total rate is the rate of a robot, req_rate, times the number of robots."
}

impl Code {
    /// The class with this identifier; letter case does not matter.
    pub fn from_id(id: &str) -> Option<Code> {
        Self::ALL.iter().copied().find(|code| code.id().eq_ignore_ascii_case(id))
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// The text that `explain ID` prints, or `None` for an unknown identifier.
pub fn explain(id: &str) -> Option<String> {
    let code = Code::from_id(id)?;
    Some(format!("{}: {}\n\n{}\n", code.id(), code.title(), wrap(code.explanation(), 96)))
}

/// Breaks long lines at blanks; lines that start with blanks are examples and stay as they are.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        if paragraph.starts_with(' ') {
            lines.push(paragraph.to_owned());
            continue;
        }
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.len() + 1 + word.len() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_name_their_severity() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.id()), "{} twice", code.id());
            let letter = match code.severity() {
                Severity::Error => 'E',
                Severity::Warning => 'W',
                Severity::Note => 'N',
            };
            assert!(code.id().starts_with(letter), "{}", code.id());
            assert!(explain(code.id()).is_some_and(|text| text.len() > code.title().len() + 20));
        }
        assert_eq!(Code::from_id("e0402"), Some(Code::UndeclaredName));
        assert_eq!(explain("E9999"), None);
    }
}
