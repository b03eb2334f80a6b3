//! Makes a module of the page, and the JavaScript glue that loads it, from what the compiler wrote.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::mem;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use wasm_bindgen_cli_support::Bindgen;
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{CodeSection, FunctionSection};
use wasmparser::{CodeSectionReader, CustomSectionReader, FunctionSectionReader, Parser, Payload, TypeRef};

use crate::compile::Module;
#[cfg(feature = "published-page")]
use crate::split;
use crate::{Finish, finish};

/// How the names begin by which a module exports what calls its closures. Each holds a hash, which no compression makes smaller.
const CLOSURE: &str = "wasm_bindgen__convert__closures";

/// Writes a module and its glue as `NAME_bg.wasm` and `NAME.js`.
pub(crate) fn bind(module: &Module, wasm: &Path, folder: &Path) -> Result<()> {
    let is_debug = finish()? == Finish::Debug;
    #[cfg(feature = "published-page")]
    let halves = (module.name == "page").then(|| split::split(wasm, &folder.with_extension("halves"))).transpose()?;
    #[cfg(feature = "published-page")]
    let wasm = halves.as_ref().map_or(wasm, |halves| &halves.first);
    let mut output = Bindgen::new()
        .input_path(wasm)
        .web(true)?
        .typescript(false)
        // The second half of the page has the table of functions from the first.
        .keep_lld_exports(cfg!(feature = "published-page"))
        // Names of functions are a third of the module, and only a debugger needs them.
        .remove_name_section(!is_debug)
        .remove_producers_section(true)
        // The scripts that load a module name its file.
        .omit_default_module_path(true)
        .out_name(module.name)
        .generate_output()
        .with_context(|| format!("writing the JavaScript glue of the package `{}`", module.package))?;
    if is_debug {
        return output.emit(folder);
    }
    // Those of wasm-bindgen.
    let imports = output.wasm_mut().imports.iter_mut().filter(|import| import.module.ends_with("_bg.js")).zip(0_u32..);
    let numbers =
        imports.map(|(import, number)| (mem::replace(&mut import.name, number.to_string()), number.to_string()));
    let numbers = numbers.collect();
    let exports = output.wasm_mut().exports.iter_mut().filter(|export| export.name.starts_with(CLOSURE)).zip(0_u32..);
    let closures: BTreeMap<String, String> = exports
        .map(|(export, number)| {
            let short = format!("closure{number}");
            (mem::replace(&mut export.name, short.clone()), short)
        })
        .collect();
    output.emit(folder)?;
    let glue = folder.join(module.name).with_extension("js");
    let text = fs::read_to_string(&glue)?;
    #[cfg(feature = "published-page")]
    let text = match halves {
        Some(halves) => {
            fs::write(folder.join("later_bg.wasm"), sort(&halves.second)?)?;
            split::link(&text)?
        }
        None => text,
    };
    // The last ones first: some begin with the whole of another.
    let text = closures.iter().rev().fold(text, |text, (name, short)| text.replace(name, short));
    fs::write(&glue, shorten(&text, &numbers)?)?;
    let wasm = folder.join(format!("{}_bg.wasm", module.name));
    fs::write(&wasm, sort(&fs::read(&wasm)?)?).with_context(|| format!("writing {}", wasm.display()))
}

/// Returns glue without comments and indentation, and with numbers in place of the names by which a module imports its functions:
/// each holds a hash, which no compression makes smaller.
fn shorten(glue: &str, numbers: &BTreeMap<String, String>) -> Result<String> {
    let mut short = String::new();
    let mut named = 0;
    let is_code = |line: &&str| !["//", "/*", "*"].iter().any(|start| line.starts_with(start));
    for line in glue.lines().map(str::trim).filter(is_code) {
        match line.split_once(':').and_then(|(name, rest)| Some((numbers.get(name)?, rest))) {
            Some((number, rest)) => {
                named += 1;
                short.extend([number, ":", rest]);
            }
            None => short.push_str(line),
        }
        short.push('\n');
    }
    ensure!(named == numbers.len(), "the JavaScript glue has {named} of {} imported functions", numbers.len());
    Ok(short)
}

/// Returns a module with its functions sorted by their types and then by their code: the list of types becomes a few runs, and what is
/// alike is compressed better side by side.
fn sort(wasm: &[u8]) -> Result<Vec<u8>> {
    let (mut imported, mut types, mut bodies) = (0, Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                }
            }
            Payload::FunctionSection(section) => types = section.into_iter().collect::<Result<Vec<u32>, _>>()?,
            Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes()),
            _ => {}
        }
    }
    let mut order: Vec<usize> = (0..bodies.len()).collect();
    order.sort_by_key(|&place| (types[place], bodies[place]));
    let mut places = vec![0; order.len()];
    for (new, &old) in (imported..).zip(&order) {
        places[old] = new;
    }
    let mut module = wasm_encoder::Module::new();
    Sorted { imported, order, places }.parse_core_module(&mut module, Parser::new(0), wasm)?;
    Ok(module.finish())
}

/// Writes a module again, with its functions in another order.
struct Sorted {
    /// The number of imported functions, which come before the module's own.
    imported: u32,
    /// The functions, each by its place among the module's own before.
    order: Vec<usize>,
    /// The new index of each.
    places: Vec<u32>,
}

impl Reencode for Sorted {
    type Error = Infallible;

    fn function_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(index.checked_sub(self.imported).map_or(index, |own| self.places[own as usize]))
    }

    /// Names of functions and of the tools that made a module are for people only.
    fn parse_custom_section(
        &mut self,
        _: &mut wasm_encoder::Module,
        _: CustomSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        let types: Vec<u32> = section.into_iter().collect::<Result<_, _>>()?;
        for place in self.order.clone() {
            functions.function(self.type_index(types[place])?);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        let bodies: Vec<_> = section.into_iter().collect::<Result<_, _>>()?;
        for place in self.order.clone() {
            self.parse_function_body(code, bodies[place].clone())?;
        }
        Ok(())
    }
}
