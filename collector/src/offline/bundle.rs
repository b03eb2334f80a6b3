//! Joins a script with the JavaScript glue that it imports, since a page from disk can't import another file.

/// Returns `entry` with the module that it imports inside. `entry` has one line `import init, { NAME } from "…";`, and
/// `glue` exports NAME and, as its default, the function that loads the WebAssembly. The error is a sentence.
///
/// The glue becomes the body of a function, so that its names and those of the entry can't meet.
pub(super) fn bundle(entry: &str, glue: &str) -> Result<String, String> {
    let import =
        entry.lines().find(|line| line.starts_with("import ")).ok_or("a script of the page imports nothing")?;
    let name = import
        .strip_prefix("import init, { ")
        .and_then(|rest| rest.split_once(" } from "))
        .map(|(name, _)| name)
        .ok_or_else(|| format!("the import of a script of the page is not understood: {import}"))?;
    let mut body = String::with_capacity(glue.len());
    for line in glue.lines() {
        if line == "export { initSync, __wbg_init as default };" {
            continue;
        }
        let line = line.strip_prefix("export ").filter(|line| line.starts_with("function ")).unwrap_or(line);
        if line.starts_with("export ") || line.starts_with("import ") {
            return Err(format!("a line of the page's JavaScript glue is not understood: {line}"));
        }
        body.push_str(line);
        body.push('\n');
    }
    let module = format!("const {{ init, {name} }} = (() => {{\n{body}return {{ init: __wbg_init, {name} }};\n}})();");
    Ok(entry.replacen(import, &module, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLUE: &str = "let wasm;\nexport function start_page(a) {\n    wasm.start(a);\n}\nasync function __wbg_init() \
                        {}\nexport { initSync, __wbg_init as default };\n";

    #[test]
    fn the_glue_becomes_the_body_of_a_function() {
        let entry = "// Starts.\nimport init, { start_page } from \"./page-00.js\";\nawait init();\nstart_page(1);\n";
        let want = "// Starts.\nconst { init, start_page } = (() => {\nlet wasm;\nfunction start_page(a) {\n    \
                    wasm.start(a);\n}\nasync function __wbg_init() {}\nreturn { init: __wbg_init, start_page };\n})();\n\
                    await init();\nstart_page(1);\n";
        assert_eq!(bundle(entry, GLUE).unwrap(), want);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let entry = "import init, { start_page } from \"./page-00.js\";\n";
        for (entry, glue) in [
            ("start();\n", GLUE),
            ("import * as page from \"./page-00.js\";\n", GLUE),
            (entry, "import { x } from \"./snippets/x.js\";\n"),
            (entry, "export const x = 1;\n"),
            (entry, "export { x };\n"),
        ] {
            assert!(bundle(entry, glue).is_err(), "{entry} {glue}");
        }
    }
}
