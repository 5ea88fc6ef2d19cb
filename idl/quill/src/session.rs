//! What a run owns: options, files, names, messages, and how much it has used of its limits.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::cursor::Ident;
use crate::diag::Diags;
use crate::intern::{Interner, Symbol};
use crate::lex::Token;
use crate::limits;
use crate::source::{SourceMap, Span};

/// Which language a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OMG IDL 4.2, as CORBA and DDS write it.
    Corba,
    /// DCE IDL and its Microsoft descendant.
    Dce,
}

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directories for `#include` and `import`, in order.
    pub include_dirs: Vec<PathBuf>,
    /// `NAME` or `NAME=VALUE`, defined before the first line.
    pub defines: Vec<String>,
    /// The dialect, when the user named it.
    pub dialect: Option<Dialect>,
    /// The attribute file, when the user named it.
    pub acf: Option<PathBuf>,
}

/// The state of a run that every stage shares.
#[derive(Debug, Default)]
pub struct Session {
    /// What the user asked for.
    pub options: Options,
    /// Files and places.
    pub map: SourceMap,
    /// Spellings.
    pub names: Interner,
    /// Messages.
    pub diags: Diags,
    /// Files by path, as it is written and as the file system has it, so that a file that is included often is kept once.
    pub files: HashMap<PathBuf, usize>,
    /// Files opened, repetitions counted.
    pub includes: usize,
    /// Bytes that the preprocessor has been given, repetitions counted.
    pub read_bytes: usize,
    /// A file is missing, so names that it would declare are, too: silence about unknown names.
    pub incomplete: bool,
    /// The file is in a dialect of L4's own compilers; see [`crate::l4`].
    pub l4: bool,
    /// Attributes of these dialects of which a warning has said that they have no effect.
    pub told: HashSet<Symbol>,
    /// Tokens that macros produced.
    pub expanded_tokens: usize,
    /// Annotations, wherever they stand.
    pub annotations: Vec<Ident>,
    /// Names of annotations that a file declares.
    pub own_annotations: HashSet<Symbol>,
    /// Files given as text and not on disk, for tests, editors and embedding: they are found before the disk is asked. One
    /// that is on disk, too, is found under each of its names, if the path here is what the file system has.
    pub virtual_files: HashMap<PathBuf, Vec<u8>>,
}

impl Session {
    /// A run with the given options.
    pub fn new(options: Options) -> Session {
        Session { options, ..Session::default() }
    }

    /// The spelling of a token.
    pub fn text(&self, token: &Token) -> &str {
        self.names.text(token.text)
    }

    /// The spelling of a name.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.names.text(symbol)
    }

    /// Whether a file exists, virtual ones included.
    pub fn exists(&self, path: &Path) -> bool {
        self.virtual_files.contains_key(path) || path.is_file()
    }

    /// Reads a file, or finds it among those already read.
    pub fn load(&mut self, path: &Path, from: Option<Span>) -> Result<usize, String> {
        self.includes += 1;
        if self.includes > limits::INCLUDES_MAX {
            return Err(format!("more than {} files are included", limits::INCLUDES_MAX));
        }
        if let Some(&index) = self.files.get(path) {
            return Ok(index);
        }
        if let Some(bytes) = self.virtual_files.get(path) {
            let bytes = bytes.clone();
            return self.load_bytes(path, &bytes, from);
        }
        let real = std::fs::canonicalize(path).map_err(|e| e.to_string())?;
        if let Some(&index) = self.files.get(&real) {
            self.files.insert(path.into(), index);
            return Ok(index);
        }
        if let Some(bytes) = self.virtual_files.get(&real) {
            let bytes = bytes.clone();
            let index = self.load_bytes(path, &bytes, from)?;
            self.files.insert(real, index);
            return Ok(index);
        }
        let size = std::fs::metadata(path).map_err(|e| e.to_string())?;
        if size.is_dir() {
            return Err("it is a directory".into());
        }
        // A device or a pipe has no size and perhaps no end.
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
        let limit = limits::SOURCE_BYTES_MAX as u64;
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        if bytes.len() as u64 > limit {
            return Err(format!("it is larger than {limit} bytes"));
        }
        let index = self.load_bytes(path, &bytes, from)?;
        self.files.insert(real, index);
        Ok(index)
    }

    /// Takes a file's content from memory.
    pub fn load_bytes(&mut self, path: &Path, bytes: &[u8], from: Option<Span>) -> Result<usize, String> {
        let Some(index) = self.map.add(path, bytes, from) else {
            return Err(format!("all files together exceed {} bytes", limits::SOURCE_BYTES_MAX));
        };
        self.files.insert(path.into(), index);
        Ok(index)
    }
}
