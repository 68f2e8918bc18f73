/** Sets members in the settings files of programs and leaves the rest as it is: JSON, YAML, TOML, lines of variables. Pure. */
import { parseDocument } from 'yaml';
import { type Format, type Members, newText, variableLine } from '../../tools/client-programs.ts';
import { inJson } from './json-text.ts';
import { inToml } from './toml-text.ts';

/** The text with these members; `text` is empty where there is no file. Throws an Error with a sentence if it cannot be read. */
export function withMembers(text: string, format: Format, members: Members): string {
  return text.trim() === '' ? newText(format, members) : writers[format](text, members);
}

const writers: Readonly<Record<Format, (text: string, members: Members) => string>> = {
  json: inJson,
  yaml: inYaml,
  toml: inToml,
  env: (text, members) => inLines(text, 'env', members),
  sh: (text, members) => inLines(text, 'sh', members),
  fish: (text, members) => inLines(text, 'fish', members),
  powershell: (text, members) => inLines(text, 'powershell', members),
};

const setters = { env: '(?:export\\s+)?', sh: 'export\\s+', fish: 'set -gx ', powershell: '\\$env:' } as const;

function inYaml(text: string, members: Members): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) throw new Error('it is no valid YAML');
  for (const [name, value] of Object.entries(members)) document.set(name, value);
  return document.toString();
}

function inLines(text: string, format: keyof typeof setters, members: Members): string {
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  for (const [name, value] of Object.entries(members)) {
    const line = variableLine(name, String(value), format);
    const set = new RegExp(`^\\s*${setters[format]}${name}\\b`);
    const at = lines.findIndex((one) => set.test(one));
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
