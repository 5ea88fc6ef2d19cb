//! Options that a client may give when it starts the server.

use std::path::{Path, PathBuf};

use quill::kernel::{self, KernelPart};
use quill::session::{Dialect, Options};
use serde::Deserialize;

/// The options, once they are understood.
pub struct Settings {
    /// The carrier of messages.
    pub kernel: &'static dyn KernelPart,
    /// The client named it, so what it cannot carry is an error.
    pub kernel_is_asked_for: bool,
    /// For each run of quill.
    pub options: Options,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Wishes {
    kernel: Option<String>,
    include: Vec<PathBuf>,
    define: Vec<String>,
    dialect: Option<String>,
}

/// The kernel part of which costs are shown unless the client says another.
const KERNEL: &str = "tern-ipc";

impl Settings {
    /// Reads the `initializationOptions`; relative directories are below `root`. The error is a message.
    pub fn new(wishes: Option<serde_json::Value>, root: Option<&Path>) -> Result<Settings, String> {
        let wishes = match wishes {
            None | Some(serde_json::Value::Null) => Wishes::default(),
            Some(value) => {
                serde_json::from_value(value).map_err(|e| format!("initializationOptions: {e}"))?
            }
        };
        let name = wishes.kernel.as_deref().unwrap_or(KERNEL);
        let kernel = kernel::find(name).ok_or_else(|| {
            let names: Vec<&str> = kernel::ALL.iter().map(|k| k.name()).collect();
            format!(
                "initializationOptions: there is no kernel part `{name}`; there are: {}",
                names.join(", ")
            )
        })?;
        let dialect = match wishes.dialect.as_deref() {
            None => None,
            Some("corba") => Some(Dialect::Corba),
            Some("dce") => Some(Dialect::Dce),
            Some(other) => {
                return Err(format!("initializationOptions: `dialect` is corba or dce, not `{other}`"));
            }
        };
        let below = |dir: PathBuf| root.map_or(dir.clone(), |root| root.join(dir));
        Ok(Settings {
            kernel,
            kernel_is_asked_for: wishes.kernel.is_some(),
            options: Options {
                include_dirs: wishes.include.into_iter().map(below).collect(),
                defines: wishes.define,
                dialect,
                acf: None,
            },
        })
    }
}
