/** YAML syntax errors in words of their own, at the place where the mistake begins. */
import { type Document, isAlias, isCollection, isScalar, type Node, visit, type YAMLParseError } from 'yaml';
import { didYouMean } from '../tools/near-names.ts';

/** The fault, and its offset in the text. */
interface SyntaxProblem {
  readonly offset: number;
  readonly message: string;
}

/** The first error of a document that cannot be read; the others follow from it. */
export function describeSyntaxError(document: Document, text: string): SyntaxProblem {
  const error = document.errors[0] as YAMLParseError;
  const [offset] = error.pos;
  const here = (message: string): SyntaxProblem => ({ offset, message });
  if (text[offset] === '{' && text[offset - 1] === '$') return here(unquotedVariable(text, offset));
  const open = openedAndNotClosed(document, error);
  if (open !== undefined) return open;
  const [start = '', dash] = /^(?:\s*(?:#.*)?\n)*(- )?/.exec(text) ?? [];
  if (dash !== undefined) return { offset: start.length - dash.length, message: beginsWithDash };
  return here(sentenceOf(error, text));
}

const beginsWithDash = 'a gateway file is a mapping (name: value); this one begins with a dash';

function unquotedVariable(text: string, offset: number): string {
  const variable = /^\$\{[^}\n]*\}?/.exec(text.slice(offset - 1))![0];
  return `${variable} stands inside { } or [ ]: quote it, as in "${variable}"`;
}

/** A quote or bracket without its end: the error is found at the end of the file, the mistake is where it opens. */
function openedAndNotClosed(document: Document, { message, pos: [end] }: YAMLParseError): SyntaxProblem | undefined {
  const [, quote] = /^Missing closing (["'])/.exec(message) ?? [];
  const [, bracket] = /end with a ([\]}])/.exec(message) ?? [];
  if (quote === undefined && bracket === undefined) return undefined;
  let offset = end;
  visit(document, {
    Node(_key, node) {
      const isMeant = quote === undefined ? isCollection(node) && node.flow === true : isScalar(node);
      if (isMeant && node.range?.[1] === end) offset = node.range[0];
    },
  });
  const opening = quote ?? (bracket === ']' ? '[' : '{');
  return { offset, message: `a ${opening} opens here, and no ${quote ?? bracket} closes it` };
}

function sentenceOf({ code, message, pos: [offset] }: YAMLParseError, text: string): string {
  const line = lineAt(text, offset);
  switch (code) {
    case 'TAB_AS_INDENT':
      return 'this line is indented by a tab; YAML is indented by spaces';
    case 'DUPLICATE_KEY':
      return `"${/^[^:\n]*/.exec(text.slice(offset))![0].trim()}" stands twice in this mapping; keep one of them`;
    case 'BAD_INDENT':
      return 'this line is indented differently from the lines that it belongs to';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return (line.match(/: /g) ?? []).length > 1
        ? 'this line has two colons: quote the value if one belongs to it, otherwise write one setting in each line'
        : 'the line below this one is indented too far';
    case 'BAD_SCALAR_START':
      return `a value that begins with ${text[offset]} must be quoted`;
    case 'BAD_ALIAS':
      return `a value that begins with ${text[offset - 1] === '&' || text[offset] === '&' ? '&' : '*'} must be quoted`;
    case 'BAD_DQ_ESCAPE':
      return 'a backslash between double quotes begins an escape, and this is none: use single quotes';
    case 'MULTIPLE_DOCS':
      return 'a second document begins here (---); a gateway is one document';
    default:
      return otherSentence(message, line);
  }
}

function otherSentence(message: string, line: string): string {
  if (/mplicit (map )?keys need/.test(message))
    return /^\S+:\S/.test(line)
      ? `a space is missing behind the colon in "${line}"`
      : `"${line}" is no setting: write "name: value"`;
  return 'this line cannot be read as YAML: look for a missing or spare quote, comma, dash or bracket in it or above it';
}

function lineAt(text: string, offset: number): string {
  const begin = text.lastIndexOf('\n', offset - 1) + 1;
  const end = text.indexOf('\n', offset);
  return text.slice(begin, end === -1 ? undefined : end).trim();
}

/** The first alias of no anchor. */
export function unknownAlias(document: Document): { alias: Node; message: string } | undefined {
  const anchors = new Set<string>();
  let found: { alias: Node; message: string } | undefined;
  visit(document, {
    Node(_key, node) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.add(node.anchor);
        return undefined;
      }
      if (anchors.has(node.source)) return undefined;
      const near = didYouMean(node.source, anchors);
      found = {
        alias: node,
        message: `*${node.source} stands for what is marked as &${node.source}, but nothing above is marked so${near}`,
      };
      return visit.BREAK;
    },
  });
  return found;
}
