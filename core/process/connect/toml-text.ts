/** Sets members in a text of TOML and leaves the rest, comments too. Pure. */
import { isObject, type Members, tomlLine } from '../../tools/client-programs.ts';

/** Members with an object are tables; the others stand above the first table. */
export function inToml(text: string, members: Members): string {
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  let lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
  for (const [name, value] of Object.entries(members))
    if (isObject(value)) lines = withTable(lines, name, value);
    else
      lines = withLines(lines, { from: 0, until: firstTable(lines), isTop: true }, Object.fromEntries([[name, value]]));
  return `${lines.join(line)}${line}`;
}

const piece = /"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[[\]{}\n]/g;

/** For each line whether a statement begins there: not within brackets of a value, or within a text of several lines. */
function beginnings(lines: readonly string[]): boolean[] {
  const begins = lines.map(() => false);
  begins[0] = true;
  let [row, depth] = [0, 0];
  for (const [found] of lines.join('\n').matchAll(piece)) {
    row += found.split('\n').length - 1;
    depth = Math.max(0, depth + (deeper[found] ?? 0));
    if (found === '\n' && depth === 0) begins[row] = true;
  }
  return begins;
}

const deeper: Readonly<Record<string, number>> = Object.assign(Object.create(null), {
  '[': 1,
  '{': 1,
  ']': -1,
  '}': -1,
});

const isHeader = (line: string) => /^\s*\[/.test(line);
/** `[ a."b" ]` is `a.b`. */
const headerName = (line: string) =>
  /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/
    .exec(line)?.[1]
    ?.replace(/\s*\.\s*/g, '.')
    .replace(/["']/g, '')
    .trim();

function firstTable(lines: readonly string[]): number {
  const begins = beginnings(lines);
  const first = lines.findIndex((line, index) => begins[index] && isHeader(line));
  return first === -1 ? lines.length : first;
}

interface Range {
  readonly from: number;
  readonly until: number;
  readonly isTop?: boolean;
}

const keyOf = (line: string) =>
  /^\s*(?:"([^"]+)"|'([^']+)'|([\w-]+))\s*=/
    .exec(line)
    ?.slice(1)
    .find((name) => name !== undefined);

function withLines(lines: readonly string[], range: Range, members: Members): string[] {
  let [all, until] = [[...lines], range.until];
  for (const [name, value] of Object.entries(members)) {
    const begins = beginnings(all);
    const isIts = (line: string, index: number) =>
      index >= range.from && index < until && begins[index] === true && keyOf(line) === name;
    const at = all.findIndex(isIts);
    const changed =
      at === -1
        ? added(all, { ...range, until }, tomlLine(name, value))
        : replaced(all, at, begins, tomlLine(name, value));
    until += changed.length - all.length;
    all = changed;
  }
  return all;
}

/** Behind the last line that is not empty. */
function added(all: readonly string[], { from, until, isTop = false }: Range, line: string): string[] {
  let place = until;
  while (place > from && all[place - 1]!.trim() === '') place -= 1;
  const isBeforeTable = isTop && place === until && until < all.length;
  return [...all.slice(0, place), line, ...(isBeforeTable ? [''] : []), ...all.slice(place)];
}

/** The whole statement, however many lines it has; a comment behind it stays. */
function replaced(all: readonly string[], at: number, begins: readonly boolean[], line: string): string[] {
  let next = at + 1;
  while (next < all.length && begins[next] !== true) next += 1;
  const behind = /^(?:"(?:\\.|[^"\\])*"|'[^']*'|[^#"'])*?(\s+#.*)$/;
  const comment = next === at + 1 ? (behind.exec(all[at]!)?.[1] ?? '') : '';
  return [...all.slice(0, at), line + comment, ...all.slice(next)];
}

function withTable(lines: readonly string[], name: string, members: Members): string[] {
  const begins = beginnings(lines);
  const [outer] = name.split('.') as [string];
  const inline = lines
    .slice(0, firstTable(lines))
    .find((line, index) => begins[index] && new RegExp(`^\\s*["']?${outer}["']?\\s*[.=]`).test(line));
  if (inline !== undefined) throw new Error(`write its member ${outer} as a table, [${name}]`);
  const at = lines.findIndex((line, index) => begins[index] && headerName(line) === name);
  if (at === -1) {
    const table = [`[${name}]`, ...Object.entries(members).map(([key, value]) => tomlLine(key, value))];
    return [...lines, ...(lines.length === 0 || lines.at(-1)!.trim() === '' ? [] : ['']), ...table];
  }
  const next = lines.findIndex((line, index) => index > at && begins[index] && isHeader(line));
  return withLines(lines, { from: at + 1, until: next === -1 ? lines.length : next }, members);
}
