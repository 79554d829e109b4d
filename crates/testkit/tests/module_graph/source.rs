//! One source file: the paths it names and the modules that only tests have.
//!
//! Tokens are enough for that, and unlike a syntax tree they also show what stands inside macros.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path that code names, as it is written: `["super", "span", "Span"]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedPath {
    /// The module it is written in.
    pub(crate) module: Vec<String>,
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    /// The name under which a `use` brings it into the module; `*` for all names.
    pub(crate) import: Option<String>,
}

/// What one file says of modules, `#[cfg(test)]` left out.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) paths: Vec<NamedPath>,
    /// Names that are defined, each in its module.
    pub(crate) items: BTreeSet<(Vec<String>, String)>,
    /// Modules declared here that only tests have.
    pub(crate) test_modules: BTreeSet<Vec<String>>,
}

impl Source {
    /// Reads a file that holds the module of this path; the crate's root has the empty one.
    pub(crate) fn read(text: &str, module: &[String]) -> Result<Self, String> {
        let tokens: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
        let mut source = Self::default();
        source.walk(tokens, module);
        Ok(source)
    }

    fn walk(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            at += match word(&tokens[at]).as_deref() {
                None if is_test_attribute(rest) => self.skip_item(rest, module),
                Some("use") => self.import(rest, module),
                Some("mod") => self.inline_module(rest, module),
                Some("crate" | "super" | "self") => self.path(rest, module),
                Some("const" | "enum" | "fn" | "static" | "struct" | "trait" | "type") => {
                    self.items.extend(rest.get(1).and_then(word).map(|name| (module.to_vec(), name)));
                    1
                }
                _ => {
                    if let TokenTree::Group(group) = &tokens[at] {
                        self.walk(group.stream(), module);
                    }
                    1
                }
            };
        }
    }

    /// Leaves out the item behind a test attribute; gives back how many tokens that are.
    fn skip_item(&mut self, tokens: &[TokenTree], module: &[String]) -> usize {
        let ends_with_semicolon = tokens.iter().skip(2).take(3).any(|token| word(token).as_deref() == Some("use"));
        for (at, token) in tokens.iter().enumerate().skip(2) {
            match token {
                TokenTree::Ident(ident) if ident == "mod" => {
                    let name = tokens.get(at + 1).and_then(word);
                    self.test_modules.extend(name.map(|name| child(module, name)));
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !ends_with_semicolon => {
                    return at + 1;
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => return at + 1,
                _ => {}
            }
        }
        tokens.len()
    }

    fn inline_module(&mut self, tokens: &[TokenTree], module: &[String]) -> usize {
        if let [_, name, TokenTree::Group(body), ..] = tokens
            && let Some(name) = word(name)
        {
            self.walk(body.stream(), &child(module, name));
            return 3;
        }
        1
    }

    fn path(&mut self, tokens: &[TokenTree], module: &[String]) -> usize {
        let (segments, length) = leading_path(tokens);
        if segments.len() > 1 {
            let line = tokens[0].span().start().line;
            self.paths.push(NamedPath { module: module.to_vec(), segments, line, import: None });
        }
        length
    }

    fn import(&mut self, tokens: &[TokenTree], module: &[String]) -> usize {
        let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';');
        // `impl Trait + use<'a>` has no end before the body.
        let Some(end) = tokens.iter().position(is_end).filter(|_| !is_punct(tokens.get(1), '<')) else { return 1 };
        self.import_tree(&tokens[1..end], &[], module);
        end + 1
    }

    /// Takes a use tree apart: `a::{b, c as d}` imports `a::b` as `b` and `a::c` as `d`.
    fn import_tree(&mut self, tokens: &[TokenTree], prefix: &[String], module: &[String]) {
        for branch in tokens.split(|token| is_punct(Some(token), ',')).filter(|branch| !branch.is_empty()) {
            let (segments, length) = leading_path(branch);
            let mut segments = [prefix, &segments].concat();
            let line = branch[0].span().start().line;
            let mut import = segments.last().cloned();
            match &branch[length..] {
                [TokenTree::Group(group), ..] => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    self.import_tree(&inner, &segments, module);
                    continue;
                }
                [star, ..] if is_punct(Some(star), '*') => import = Some("*".to_owned()),
                [_, alias, ..] => import = word(alias),
                _ if prefix.len() + 1 == segments.len() && segments.last().is_some_and(|last| last == "self") => {
                    segments.pop();
                    import = segments.last().cloned();
                }
                _ => {}
            }
            self.paths.push(NamedPath { module: module.to_vec(), segments, line, import });
        }
    }
}

/// The words that `::` joins at the start, and how many tokens they take with what joins them to the next.
fn leading_path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut segments = Vec::new();
    let mut at = 0;
    while let Some(segment) = tokens.get(at).and_then(word) {
        segments.push(segment);
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        at += 2;
    }
    (segments, at.max(1))
}

/// `#[cfg(test)]`, alone or with more conditions that must hold too.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(attribute), ..] = tokens else { return false };
    let condition = |group: &Group, name: &str| match group.stream().into_iter().collect::<Vec<_>>().as_slice() {
        [TokenTree::Ident(ident), TokenTree::Group(inner)] if ident == name => Some(inner.clone()),
        _ => None,
    };
    let has_test = |group: &Group| group.stream().into_iter().any(|token| word(&token).as_deref() == Some("test"));
    is_punct(Some(hash), '#')
        && condition(attribute, "cfg").is_some_and(|cfg| has_test(&condition(&cfg, "all").unwrap_or(cfg)))
}

fn word(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(ident) = token { Some(ident.to_string()) } else { None }
}

fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn child(module: &[String], name: String) -> Vec<String> {
    module.iter().cloned().chain([name]).collect()
}
