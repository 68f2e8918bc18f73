/** All mutants of a file, each named by what it changes, so that it is found again where its function has moved. */
import { createHash } from 'node:crypto';
import type { Node, SourceFile } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';
import { type Edit, editsAt } from './operators.ts';

export interface Mutant {
  /** Made of the function, the change and the code around it, and not of the file. */
  readonly id: string;
  /** The same without the function. */
  readonly looseId: string;
  readonly file: string;
  readonly line: number;
  /** `Balance.release`; empty: not in a function. */
  readonly owner: string;
  readonly operator: string;
  readonly start: number;
  readonly end: number;
  /** What is replaced, and by what. */
  readonly from: string;
  readonly to: string;
  /** For people: the code around it, and what it becomes. */
  readonly original: string;
  readonly changed: string;
}

const longestContext = 160;

export function mutantsOf(file: string, tree: SourceFile): Mutant[] {
  const found: Mutant[] = [];
  const times = new Map<string, number>();
  visit(tree, '');
  return found;

  function visit(node: Node, owner: string): void {
    if (isLeftOut(node)) return;
    const inner = ownerOf(node, owner);
    for (const edit of editsAt(node)) {
      if (tree.text.slice(edit.start, edit.end) !== edit.text) found.push(mutantOf(node, edit, inner));
    }
    node.forEachChild((child) => visit(child, inner));
  }

  function mutantOf(node: Node, edit: Edit, owner: string): Mutant {
    const { operator, start, end, text: to } = edit;
    const context = contextOf(edit.part ?? node);
    // A list loses what stands between two parts, too.
    const before = tree.text.slice(Math.min(context.getStart(), start), start);
    const after = tree.text.slice(end, Math.max(context.getEnd(), end));
    const from = tree.text.slice(start, end);
    const change = [operator, ...[before, from, to, after].map(withoutSpace)];
    const [id, looseId] = [digest(owner, ...change), digest(...change)];
    const time = (times.get(id) ?? 0) + 1;
    times.set(id, time);
    return {
      id: time === 1 ? id : `${id}-${time}`,
      looseId,
      file,
      line: tree.getLineAndCharacterOfPosition(start).line + 1,
      owner,
      operator,
      start,
      end,
      from,
      to,
      original: oneLine(before, from, after),
      changed: oneLine(before, to, after),
    };
  }
}

/** The largest piece of code around a node that is short, within its statement. */
function contextOf(node: Node): Node {
  let context = node;
  for (;;) {
    const { parent } = context;
    if (parent === undefined || is.isBlock(parent) || is.isSourceFile(parent)) return context;
    if (parent.getEnd() - parent.getStart() > longestContext) return context;
    context = parent;
  }
}

/** Types and names of modules, words for people. */
function isLeftOut(node: Node): boolean {
  if (is.isImportDeclaration(node) || is.isExportDeclaration(node)) return true;
  if (is.isInterfaceDeclaration(node) || is.isTypeAliasDeclaration(node) || is.isTypeNode(node)) return true;
  const call = is.isExpressionStatement(node) ? node.expression : node;
  if (!is.isCallExpression(call)) return false;
  const callee = call.expression.getText();
  return /(?:^|\.)log\w*\.(?:trace|debug|info|warn|error)$|^log$/.test(callee);
}

function ownerOf(node: Node, outer: string): string {
  const name = nameOf(node);
  return name === undefined ? outer : outer === '' ? name : `${outer}.${name}`;
}

function nameOf(node: Node): string | undefined {
  if (is.isConstructorDeclaration(node)) return 'constructor';
  if (
    is.isFunctionDeclaration(node) ||
    is.isMethodDeclaration(node) ||
    is.isClassDeclaration(node) ||
    is.isGetAccessorDeclaration(node)
  )
    return node.name?.getText();
  if (!is.isArrowFunction(node) && !is.isFunctionExpression(node)) return undefined;
  const { parent } = node;
  return is.isVariableDeclaration(parent) || is.isPropertyAssignment(parent) ? parent.name.getText() : undefined;
}

function withoutSpace(text: string): string {
  return text.replace(/\s+/g, '').replace(/,(?=[)\]}])/g, '');
}

/** Short enough to read: the change itself may be a long one. */
function oneLine(...parts: readonly string[]): string {
  const [before, change, after] = parts.map((part) => part.replace(/\s+/g, ' ')) as [string, string, string];
  const shown = change.length > 300 ? `${change.slice(0, 200)} … ${change.slice(-80)}` : change;
  return `${before.slice(-200)}${shown}${after.slice(0, 200)}`.trim();
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 16);
}
