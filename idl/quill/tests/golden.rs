//! Messages as a user reads them: `idl/golden/diagnostics/*.idl` against the `.txt` beside each.

use std::path::Path;

use quill::driver;
use quill::session::Options;

#[test]
fn diagnostics() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/diagnostics");
    let bless = std::env::var_os("QUILL_BLESS").is_some();
    let mut seen = 0;
    let mut entries: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries.iter().filter(|p| p.extension().is_some_and(|e| e == "idl")) {
        let text = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap();
        // Under its bare name, so that messages hold no path of this machine.
        let out = driver::compile_text(Path::new(name), &text, Options::default());
        let messages = out.messages();
        assert!(!out.accepted(), "{} is accepted", path.display());
        let golden = path.with_extension("txt");
        if bless {
            std::fs::write(&golden, &messages).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(messages, expected, "{}: QUILL_BLESS=1 writes it anew", path.display());
        seen += 1;
    }
    assert!(seen >= 4);
}
