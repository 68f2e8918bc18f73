/** Sets members in the settings files of programs and leaves the rest as it is: JSON, YAML, TOML, lines of variables. Pure. */
import { parseDocument } from 'yaml';
import {
  envLine,
  type Format,
  isObject,
  type Members,
  newText,
  tomlLine,
  tomlTable,
} from '../../tools/client-programs.ts';

/** The text with these members; `text` is empty where there is no file. Throws an Error with a sentence if it cannot be read. */
export function withMembers(text: string, format: Format, members: Members): string {
  return text.trim() === '' ? newText(format, members) : writers[format](text, members);
}

const writers: Readonly<Record<Format, (text: string, members: Members) => string>> = {
  json: inJson,
  yaml: inYaml,
  toml: inToml,
  env: inLines,
};

function inJson(text: string, members: Members): string {
  let before: unknown;
  try {
    before = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    throw new Error('it is no plain JSON');
  }
  if (!isObject(before)) throw new Error('it is no JSON object');
  const indent = /\n([ \t]+)"/.exec(text)?.[1] ?? '  ';
  return `${JSON.stringify(merged(before, members), undefined, indent)}\n`;
}

/** Own members alone, so that a name such as `__proto__` is one like any other. */
function merged(before: Record<string, unknown>, members: Members): Record<string, unknown> {
  const entries = new Map(Object.entries(before));
  for (const [name, value] of Object.entries(members)) {
    const old = entries.get(name);
    entries.set(name, isObject(old) && isObject(value) ? merged(old, value) : value);
  }
  return Object.fromEntries(entries);
}

function inYaml(text: string, members: Members): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) throw new Error('it is no valid YAML');
  for (const [name, value] of Object.entries(members)) document.set(name, value);
  return document.toString();
}

/** Members with an object are tables; the others stand above the first table. */
function inToml(text: string, members: Members): string {
  let lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  for (const [name, value] of Object.entries(members))
    if (isObject(value)) lines = withTable(lines, name, value);
    else lines = withLine(lines, name, value);
  return `${lines.join('\n')}\n`;
}

const isHeader = (line: string) => /^\s*\[/.test(line);

function withLine(lines: readonly string[], name: string, value: unknown): string[] {
  const end = lines.findIndex(isHeader);
  const above = end === -1 ? [...lines] : lines.slice(0, end);
  const rest = end === -1 ? [] : lines.slice(end);
  const at = above.findIndex((line) => new RegExp(`^\\s*${name}\\s*=`).test(line));
  if (at !== -1 && /"""|'''|\[\s*$/.test(above[at]!)) throw new Error(`its member ${name} takes several lines`);
  if (at === -1) return [tomlLine(name, value), ...above, ...rest];
  return [...above.with(at, tomlLine(name, value)), ...rest];
}

function withTable(lines: readonly string[], name: string, members: Members): string[] {
  const table = tomlTable(name, members);
  const at = lines.findIndex((line) => line.trim() === `[${name}]`);
  if (at === -1) return [...lines, ...(lines.length === 0 ? [] : ['']), ...table];
  const next = lines.findIndex((line, index) => index > at && isHeader(line));
  const rest = next === -1 ? [] : ['', ...lines.slice(next)];
  return [...lines.slice(0, at), ...table, ...rest];
}

function inLines(text: string, members: Members): string {
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  for (const [name, value] of Object.entries(members)) {
    const line = envLine(name, value);
    const at = lines.findIndex((one) => new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`).test(one));
    if (at === -1) lines.push(line);
    else lines[at] = line;
  }
  return `${lines.join('\n')}\n`;
}

/** What has changed: lines that go with `-`, lines that come with `+`, one line around them. */
export function difference(before: string, after: string): string[] {
  const [old, fresh] = [before, after].map((text) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))) as [
    string[],
    string[],
  ];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  return [
    ...old.slice(Math.max(0, start - 1), start).map((line) => `  ${line}`),
    ...old.slice(start, old.length - end).map((line) => `- ${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+ ${line}`),
    ...fresh.slice(fresh.length - end, fresh.length - end + 1).map((line) => `  ${line}`),
  ];
}
