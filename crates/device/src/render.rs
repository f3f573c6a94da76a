//! Makes configuration files and command lines from a description and parameters.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value, context};

use crate::error::{Error, Result};
use crate::params::Params;
use crate::spec::{DeviceRole, Spec};

/// Values of one started device that are not parameters.
#[derive(Clone, Debug)]
pub(crate) struct RenderContext {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The work directory.
    pub work: PathBuf,
    /// The directory of the store.
    pub store: PathBuf,
    /// A name of letters and digits that is unique on this machine.
    pub service: String,
    /// Descriptors that each of its processes may open.
    pub descriptors: u64,
}

/// The rendered templates of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// Configuration files by path in the work directory.
    pub files: Vec<(String, String)>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Arguments that prepare an empty store, if that is necessary.
    pub prepare: Option<Vec<String>>,
    /// Arguments of the logger.
    pub logger: Vec<String>,
    /// Arguments of the program in front, if there is one.
    pub front: Option<Vec<String>>,
    /// Arguments of the flush command.
    pub flush: Vec<String>,
    /// The versions of HTTP that it speaks with robots; `None`: nobody says.
    pub http_versions: Option<Vec<String>>,
    /// What it would speak if one of its settings had another value (`http2=on`).
    pub other_versions: Vec<(String, Vec<String>)>,
    /// Files to remove after the end.
    pub leftovers: Vec<String>,
}

impl Rendered {
    /// The first setting with which the device would speak this version.
    pub fn setting_for_version(&self, version: &str) -> Option<&str> {
        let speaks = |(_, versions): &&(String, Vec<String>)| versions.iter().any(|word| word == version);
        self.other_versions.iter().find(speaks).map(|(setting, _)| setting.as_str())
    }
}

/// Renders all templates of a device.
///
/// # Errors
/// If a template is invalid or rejects its parameters, or if a given parameter has no effect.
pub(crate) fn render(
    device: &str,
    spec: &Spec,
    templates: &[(String, String)],
    params: &Params,
    context: &RenderContext,
) -> Result<Rendered> {
    if spec.role != DeviceRole::Forward && params.origins.is_empty() {
        return Err(setting(device, format!("a {} needs the addresses of origin servers", spec.role.word())));
    }
    let mut renderer = Renderer {
        device,
        environment: environment(),
        context: parameters(device, spec, params, context)?,
        used: HashSet::new(),
    };
    let mut files = Vec::new();
    for (name, source) in templates {
        files.push((name.clone(), renderer.text(name, source)?));
    }
    let prepare = match &spec.prepare {
        Some(prepare) if renderer.holds(&prepare.when)? => Some(renderer.all("prepare", &prepare.args)?),
        _ => None,
    };
    let front = match &spec.front {
        Some(front) if renderer.holds(&front.when)? => Some(renderer.all("front", &front.args)?),
        _ => None,
    };
    let rendered = Rendered {
        files,
        args: renderer.all("args", &spec.args)?,
        prepare,
        front,
        logger: spec
            .logger
            .iter()
            .map(|l| renderer.all("logger", &l.args))
            .collect::<Result<Vec<_>>>()?
            .concat(),
        flush: spec
            .flush
            .iter()
            .map(|f| renderer.all("flush", &f.args))
            .collect::<Result<Vec<_>>>()?
            .concat(),
        http_versions: match &spec.http_versions {
            Some(versions) => Some(renderer.all("http_versions", versions)?),
            None => None,
        },
        other_versions: other_versions(device, spec, params, context)?,
        leftovers: renderer.all("leftovers", &spec.leftovers)?,
    };
    let own = spec.options.keys().map(String::as_str);
    params.check(device, |variable| renderer.used.contains(variable), own)?;
    Ok(rendered)
}

/// The versions of HTTP that a device speaks with other values of its settings, one setting at a time.
fn other_versions(
    device: &str,
    spec: &Spec,
    params: &Params,
    context: &RenderContext,
) -> Result<Vec<(String, Vec<String>)>> {
    let mut all = Vec::new();
    let Some(versions) = &spec.http_versions else { return Ok(all) };
    for (name, setting) in &spec.options {
        for value in &setting.values {
            let mut params = params.clone();
            params.options.insert(name.clone(), value.clone());
            let context = parameters(device, spec, &params, context)?;
            let mut renderer = Renderer { device, environment: environment(), context, used: HashSet::new() };
            all.push((format!("{name}={value}"), renderer.all("http_versions", versions)?));
        }
    }
    Ok(all)
}

struct Renderer<'a> {
    device: &'a str,
    environment: Environment<'static>,
    context: Value,
    /// The variables that the templates use.
    used: HashSet<String>,
}

impl Renderer<'_> {
    fn text(&mut self, name: &str, source: &str) -> Result<String> {
        let wrong = |error| template_error(self.device, name, &error);
        let template = self.environment.template_from_str(source).map_err(wrong)?;
        self.used.extend(template.undeclared_variables(false));
        template.render(&self.context).map_err(wrong)
    }

    fn all(&mut self, name: &str, sources: &[String]) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        for source in sources {
            texts.push(self.text(name, source)?);
        }
        texts.retain(|text| !text.is_empty());
        Ok(texts)
    }

    fn holds(&mut self, expression: &str) -> Result<bool> {
        let wrong = |error| template_error(self.device, "prepare", &error);
        let compiled = self.environment.compile_expression(expression).map_err(wrong)?;
        self.used.extend(compiled.undeclared_variables(false));
        Ok(compiled.eval(&self.context).map_err(wrong)?.is_true())
    }
}

/// The variables of templates, see `devices/README.md`.
fn parameters(device: &str, spec: &Spec, params: &Params, context: &RenderContext) -> Result<Value> {
    let address = |address: &SocketAddr| {
        context! { address => address.to_string(), ip => address.ip().to_string(), port => address.port() }
    };
    let path = |path: &Path| path.display().to_string();
    let hosts_file = if params.hosts.is_empty() { String::new() } else { path(&context.work.join("hosts")) };
    let common = context! {
        address => context.address.to_string(),
        ip => context.address.ip().to_string(),
        port => context.address.port(),
        mem => params.memory.unwrap_or(Params::MEMORY),
        disk => params.disk.unwrap_or(0),
        store => path(&context.store),
        max_object => params.max_object.unwrap_or(Params::MAX_OBJECT),
        workers => params.workers.unwrap_or(1),
        origins => params.origins.iter().map(address).collect::<Vec<_>>(),
        dns => params.nameservers.iter().map(address).collect::<Vec<_>>(),
        hosts_file => hosts_file,
        work => path(&context.work),
        log => path(&context.work.join(&spec.log.file)),
        service => context.service.clone(),
        descriptors => context.descriptors,
    };
    let own = options(device, spec, params, &context.work)?;
    Ok(context! { ..common, ..Value::from_pairs(own) })
}

/// The settings that only this device has, with their values. Those of files are the paths of the copies in `work`.
fn options(device: &str, spec: &Spec, params: &Params, work: &Path) -> Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for (name, option) in &spec.options {
        let value = params.options.get(name).unwrap_or(&option.default);
        if !option.values.is_empty() && !option.values.contains(value) {
            let list = option.values.join(" or ");
            return Err(setting(device, format!("`{name}` must be {list}, not `{value}`")));
        }
        let is_file = option.file && !value.is_empty();
        let copy = is_file.then(|| work.join(name).display().to_string());
        values.insert(name.clone(), copy.unwrap_or_else(|| value.clone()));
    }
    Ok(values)
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(syntax());
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    // Templates call this function for what the device cannot do.
    environment.add_function("fail", |text: String| -> std::result::Result<String, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, text))
    });
    environment
}

/// The template syntax: a line that consists of a statement produces no output.
fn syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    builder.build().expect("the usual delimiters can be told apart")
}

fn setting(device: &str, problem: String) -> Error {
    Error::Setting { device: device.to_owned(), problem }
}

fn template_error(device: &str, name: &str, error: &minijinja::Error) -> Error {
    let line = error.line().map_or_else(String::new, |line| format!(" (line {line})"));
    let text = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    Error::Template { device: device.to_owned(), template: name.to_owned(), problem: format!("{text}{line}") }
}
