/** What is changed at a node of the syntax tree: one small mistake each, as people make them. */
import { type Node, SyntaxKind } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';

export interface Edit {
  /** What is changed, where it is a part of the node. */
  readonly part?: Node;
  readonly operator: string;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const swapped = new Map<SyntaxKind, readonly [operator: string, ...texts: string[]]>([
  [SyntaxKind.LessThanToken, ['comparison', '<=', '>=']],
  [SyntaxKind.LessThanEqualsToken, ['comparison', '<', '>']],
  [SyntaxKind.GreaterThanToken, ['comparison', '>=', '<=']],
  [SyntaxKind.GreaterThanEqualsToken, ['comparison', '>', '<']],
  [SyntaxKind.EqualsEqualsEqualsToken, ['comparison', '!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['comparison', '===']],
  [SyntaxKind.AmpersandAmpersandToken, ['condition', '||']],
  [SyntaxKind.BarBarToken, ['condition', '&&']],
  [SyntaxKind.PlusToken, ['arithmetic', '-']],
  [SyntaxKind.MinusToken, ['arithmetic', '+']],
  [SyntaxKind.AsteriskToken, ['arithmetic', '/']],
  [SyntaxKind.SlashToken, ['arithmetic', '*']],
  [SyntaxKind.PercentToken, ['arithmetic', '/']],
  [SyntaxKind.PlusEqualsToken, ['arithmetic', '-=', '=']],
  [SyntaxKind.MinusEqualsToken, ['arithmetic', '+=', '=']],
  [SyntaxKind.QuestionQuestionEqualsToken, ['condition', '=']],
]);

const otherMethods = new Map([
  ['min', 'max'],
  ['max', 'min'],
  ['ceil', 'floor'],
  ['floor', 'ceil'],
  ['round', 'floor'],
  ['some', 'every'],
  ['every', 'some'],
  ['startsWith', 'endsWith'],
  ['endsWith', 'startsWith'],
  ['indexOf', 'lastIndexOf'],
  ['lastIndexOf', 'indexOf'],
  ['push', 'unshift'],
  ['unshift', 'push'],
  ['shift', 'pop'],
  ['pop', 'shift'],
  ['find', 'findLast'],
  ['findLast', 'find'],
  ['then', 'finally'],
]);
/** Calls of a method without which the receiver itself is a value of the same kind. */
const leftOut =
  /^(?:filter|toSorted|sort|toReversed|slice|trim|toLowerCase|toUpperCase|concat|flat|replace|replaceAll|padStart|padEnd)$/;

/** All edits at this node itself, not those within it. */
export function editsAt(node: Node): Edit[] {
  return [
    ...operatorEdits(node),
    ...branchEdits(node),
    ...statementEdits(node),
    ...valueEdits(node),
    ...memberEdits(node),
    ...methodEdits(node),
  ];
}

function operatorEdits(node: Node): Edit[] {
  if (is.isBinaryExpression(node)) {
    const { operatorToken, left, right } = node;
    const [operator, ...texts] = swapped.get(operatorToken.kind) ?? ['' as string];
    const edits = texts.map((text) => replaced(operator!, operatorToken, text));
    // An operand of what it is mixed with may bind otherwise.
    if (operatorToken.kind === SyntaxKind.QuestionQuestionToken) {
      return [replaced('fallback', node, left.getText()), replaced('fallback', node, right.getText())];
    }
    const isMixed = operator === 'condition' && (isLogical(node.parent) || isLogical(left) || isLogical(right));
    return isMixed ? [replaced('condition', node, `(${left.getText()})`)] : edits;
  }
  if (is.isPrefixUnaryExpression(node)) {
    const { operator, operand } = node;
    if (operator === SyntaxKind.ExclamationToken) return [replaced('condition', node, operand.getText())];
    if (operator === SyntaxKind.MinusToken) return [replaced('arithmetic', node, operand.getText())];
    if (operator === SyntaxKind.PlusPlusToken) return [replaced('arithmetic', node, `--${operand.getText()}`)];
    if (operator === SyntaxKind.MinusMinusToken) return [replaced('arithmetic', node, `++${operand.getText()}`)];
  }
  return [];
}

function isLogical(node: Node): boolean {
  return (
    is.isBinaryExpression(node) &&
    [SyntaxKind.AmpersandAmpersandToken, SyntaxKind.BarBarToken, SyntaxKind.QuestionQuestionToken].includes(
      node.operatorToken.kind,
    )
  );
}

function branchEdits(node: Node): Edit[] {
  if (is.isIfStatement(node)) {
    const { expression, elseStatement } = node;
    const edits = ['true', 'false', `!(${expression.getText()})`].map((text) => replaced('branch', expression, text));
    if (elseStatement === undefined) return edits;
    return [...edits, { operator: 'branch', start: node.thenStatement.getEnd(), end: node.getEnd(), text: '' }];
  }
  if (is.isConditionalExpression(node)) {
    const { condition, whenTrue, whenFalse } = node;
    const other = `${condition.getText()} ? ${whenFalse.getText()} : ${whenTrue.getText()}`;
    return [other, whenTrue.getText(), whenFalse.getText()].map((text) => replaced('branch', node, `(${text})`));
  }
  return [];
}

function statementEdits(node: Node): Edit[] {
  if (is.isExpressionStatement(node)) return [replaced('statement', node, ';')];
  if (is.isThrowStatement(node) || is.isContinueStatement(node)) return [replaced('statement', node, ';')];
  if (is.isReturnStatement(node) && node.expression === undefined) return [replaced('statement', node, ';')];
  if (is.isBreakStatement(node) && !is.isCaseClause(node.parent)) return [replaced('statement', node, ';')];
  if (is.isAwaitExpression(node)) return [replaced('await', node, node.expression.getText())];
  return [];
}

function valueEdits(node: Node): Edit[] {
  switch (node.kind) {
    case SyntaxKind.TrueKeyword:
      return [replaced('constant', node, 'false')];
    case SyntaxKind.FalseKeyword:
      return [replaced('constant', node, 'true')];
    case SyntaxKind.NumericLiteral:
    case SyntaxKind.BigIntLiteral:
      return numberEdits(node);
    case SyntaxKind.StringLiteral:
      return isText(node) ? [replaced('constant', node, node.getText() === "''" ? "'x'" : "''")] : [];
    default:
      return [];
  }
}

function numberEdits(node: Node): Edit[] {
  const text = node.getText();
  const whole = /^([\d_]+)(n?)$/.exec(text);
  if (whole === null) return [replaced('constant', node, `(${text} * 2)`)];
  const [, digits, suffix] = whole;
  const value = BigInt(digits!.replaceAll('_', ''));
  // A large number that is one larger is seldom a mistake that matters.
  if (value > 12n) return [replaced('constant', node, `0${suffix}`)];
  const off = [value + 1n, ...(value > 0n ? [value - 1n] : [])].map((number) => `${number}${suffix}`);
  return off.map((other) => replaced('off by one', node, other));
}

/** Not the name of a module, a member or a type, and no sentence. */
function isText(node: Node): boolean {
  const { parent } = node;
  if (node.getText().includes(' ')) return false;
  return is.isBinaryExpression(parent) || is.isArrayLiteralExpression(parent) || is.isPropertyAssignment(parent);
}

function memberEdits(node: Node): Edit[] {
  if (is.isObjectLiteralExpression(node)) {
    return listEdits('member', node.properties);
  }
  if (is.isArrayLiteralExpression(node)) return listEdits('element', node.elements);
  // Without the radix it is the same.
  if (is.isCallExpression(node) && node.arguments.length > 1 && !/parseInt$/.test(node.expression.getText())) {
    const [last, before] = [node.arguments.at(-1)!, node.arguments.at(-2)!];
    return [{ operator: 'argument', start: before.getEnd(), end: last.getEnd(), text: '' }];
  }
  return [];
}

function listEdits(operator: string, list: ArrayLike<Node>): Edit[] {
  return Array.from(list, (node, index) => {
    const next = list[index + 1];
    const before = list[index - 1];
    if (next !== undefined) return { operator, part: node, start: node.getStart(), end: next.getStart(), text: '' };
    return { operator, part: node, start: before?.getEnd() ?? node.getStart(), end: node.getEnd(), text: '' };
  });
}

function methodEdits(node: Node): Edit[] {
  if (!is.isCallExpression(node) || !is.isPropertyAccessExpression(node.expression)) return [];
  const { name, expression: receiver } = node.expression;
  const other = otherMethods.get(name.getText());
  const operator = /^(?:min|max|ceil|floor|round)$/.test(name.getText()) ? 'rounding' : 'method';
  if (other !== undefined) return [replaced(operator, name, other)];
  return leftOut.test(name.getText()) ? [replaced('method', node, receiver.getText())] : [];
}

function replaced(operator: string, node: Node, text: string): Edit {
  return { operator, start: node.getStart(), end: node.getEnd(), text };
}
