//! Builds the tree of an expression and evaluates it.

use serde_json::{Map, Value};

use super::lexer::{Lexer, Token};
use super::value::Term;
use super::{EXPRESSION_DEPTH_MAX, ExpressionError, ExpressionFault};

/// A part of an expression. A chain of `and` or `or` is one node, so that depth is nesting alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    All(Vec<Self>),
    Any(Vec<Self>),
    Compare(Box<Self>, Comparison, Box<Self>),
    Literal(Value),
    Member(Root, Vec<String>),
    Not(Box<Self>),
}

/// Where a member is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Claims,
    Params,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Contains,
    Equal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Unequal,
}

impl Node {
    /// True, false, or neither: see the module above.
    pub(super) fn truth(
        &self,
        claims: &Map<String, Value>,
        params: &Map<String, Value>,
    ) -> Option<bool> {
        let truth = |node: &Self| node.truth(claims, params);
        match self {
            Self::All(nodes) => combine(nodes.iter().map(truth), false),
            Self::Any(nodes) => combine(nodes.iter().map(truth), true),
            Self::Not(node) => truth(node).map(|is_true| !is_true),
            Self::Compare(left, comparison, right) => {
                let left = left.term(claims, params);
                let right = right.term(claims, params);
                compare(left, *comparison, right)
            }
            Self::Literal(_) | Self::Member(..) => self.term(claims, params).truth(),
        }
    }

    fn term<'a>(
        &'a self,
        claims: &'a Map<String, Value>,
        params: &'a Map<String, Value>,
    ) -> Term<'a> {
        match self {
            Self::Literal(value) => Term::Of(value),
            Self::Member(root, path) => {
                let root = match root {
                    Root::Claims => claims,
                    Root::Params => params,
                };
                member(root, path).map_or(Term::NULL, Term::Of)
            }
            _ => Term::from_truth(self.truth(claims, params)),
        }
    }

    /// The first members that are looked up in the params.
    pub(super) fn params(&self) -> Vec<&str> {
        match self {
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().flat_map(Self::params).collect(),
            Self::Compare(left, _, right) => {
                [left, right].into_iter().flat_map(|n| n.params()).collect()
            }
            Self::Not(node) => node.params(),
            Self::Member(Root::Params, path) => {
                path.first().map(String::as_str).into_iter().collect()
            }
            Self::Literal(_) | Self::Member(Root::Claims, _) => Vec::new(),
        }
    }
}

fn member<'a>(root: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(root.get(first)?, |value, name| value.as_object()?.get(name))
}

/// `decisive` if any is; else neither, if any is neither; else the opposite.
fn combine(truths: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut combined = Some(!decisive);
    for truth in truths {
        match truth {
            Some(truth) if truth == decisive => return Some(decisive),
            Some(_) => {}
            None => combined = None,
        }
    }
    combined
}

fn compare(left: Term<'_>, comparison: Comparison, right: Term<'_>) -> Option<bool> {
    match comparison {
        Comparison::Contains => left.contains(right),
        Comparison::Equal => left.equals(right),
        Comparison::Less => left.order(right).map(|order| order.is_lt()),
        Comparison::LessOrEqual => left.order(right).map(|order| order.is_le()),
        Comparison::More => left.order(right).map(|order| order.is_gt()),
        Comparison::MoreOrEqual => left.order(right).map(|order| order.is_ge()),
        Comparison::Unequal => left.equals(right).map(|is_equal| !is_equal),
    }
}

/// Reads a whole text as one expression.
pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    let mut lexer = Lexer::new(text);
    let (at, token) = lexer.next()?;
    let mut parser = Parser {
        lexer,
        at,
        token,
        depth: 0,
    };
    let node = parser.any()?;
    match parser.token {
        Token::End => Ok(node),
        _ => Err(parser.fault(ExpressionFault::Trailing)),
    }
}

/// One token of look-ahead over the text.
struct Parser<'a> {
    lexer: Lexer<'a>,
    at: usize,
    token: Token<'a>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<Node, ExpressionError> {
        self.chain("or", Self::all, Node::Any)
    }

    fn all(&mut self) -> Result<Node, ExpressionError> {
        self.chain("and", Self::not, Node::All)
    }

    fn chain(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Node, ExpressionError>,
        join: fn(Vec<Node>) -> Node,
    ) -> Result<Node, ExpressionError> {
        let first = part(self)?;
        if self.token != Token::Word(word) {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.token == Token::Word(word) {
            self.advance()?;
            nodes.push(part(self)?);
        }
        Ok(join(nodes))
    }

    fn not(&mut self) -> Result<Node, ExpressionError> {
        if self.token != Token::Word("not") {
            return self.comparison();
        }
        self.advance()?;
        self.nested(|parser| Ok(Node::Not(Box::new(parser.not()?))))
    }

    fn comparison(&mut self) -> Result<Node, ExpressionError> {
        let left = self.value()?;
        let comparison = match self.token {
            Token::Word("contains") => Comparison::Contains,
            Token::Mark("==") => Comparison::Equal,
            Token::Mark("<") => Comparison::Less,
            Token::Mark("<=") => Comparison::LessOrEqual,
            Token::Mark(">") => Comparison::More,
            Token::Mark(">=") => Comparison::MoreOrEqual,
            Token::Mark("!=") => Comparison::Unequal,
            _ => return Ok(left),
        };
        self.advance()?;
        let right = self.value()?;
        Ok(Node::Compare(Box::new(left), comparison, Box::new(right)))
    }

    fn value(&mut self) -> Result<Node, ExpressionError> {
        let at = self.at;
        let literal = match self.advance()? {
            Token::Mark("(") => return self.nested(Self::closed),
            Token::Word("claims") => return self.member(Root::Claims),
            Token::Word("params") => return self.member(Root::Params),
            Token::Word("null") => Value::Null,
            Token::Word("true") => Value::Bool(true),
            Token::Word("false") => Value::Bool(false),
            Token::Text(text) => Value::String(text),
            Token::Number(number) => Value::Number(number),
            Token::Word(word) if !is_keyword(word) => {
                return Err(ExpressionError::new(at, ExpressionFault::Root));
            }
            _ => return Err(ExpressionError::new(at, ExpressionFault::Value)),
        };
        Ok(Node::Literal(literal))
    }

    /// What follows an opening parenthesis.
    fn closed(&mut self) -> Result<Node, ExpressionError> {
        let node = self.any()?;
        if self.token != Token::Mark(")") {
            return Err(self.fault(ExpressionFault::Parenthesis));
        }
        self.advance()?;
        Ok(node)
    }

    /// The path after `claims` or `params`, which has one step at least.
    fn member(&mut self, root: Root) -> Result<Node, ExpressionError> {
        let mut path = Vec::new();
        loop {
            let is_bracket = match self.token {
                Token::Mark(".") => false,
                Token::Mark("[") => true,
                _ if path.is_empty() => return Err(self.fault(ExpressionFault::Member)),
                _ => return Ok(Node::Member(root, path)),
            };
            self.advance()?;
            let at = self.at;
            path.push(match (self.advance()?, is_bracket) {
                (Token::Word(name), false) => name.to_owned(),
                (Token::Text(name), true) => name,
                _ => return Err(ExpressionError::new(at, ExpressionFault::Member)),
            });
            if is_bracket {
                let at = self.at;
                if self.advance()? != Token::Mark("]") {
                    return Err(ExpressionError::new(at, ExpressionFault::Member));
                }
            }
        }
    }

    fn nested(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<Node, ExpressionError>,
    ) -> Result<Node, ExpressionError> {
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            return Err(self.fault(ExpressionFault::TooDeep));
        }
        let node = part(self)?;
        self.depth -= 1;
        Ok(node)
    }

    /// Takes the current token and reads the next.
    fn advance(&mut self) -> Result<Token<'a>, ExpressionError> {
        let (at, token) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    const fn fault(&self, fault: ExpressionFault) -> ExpressionError {
        ExpressionError::new(self.at, fault)
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "and" | "or" | "not" | "contains")
}
