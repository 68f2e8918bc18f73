/** The scripted model that the loopback vendor plays: it reads a file with a tool of the client's, and quotes it. */
import { basename } from 'node:path';

/** What a protocol's reader has found in a request. */
export interface AgentRequest {
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly tools: readonly Offer[];
  /** What the last tool result of the conversation says. */
  readonly result: string | undefined;
  /** JSON Schema that the answer must follow. */
  readonly schema: Schema | undefined;
}

/** A tool on offer. */
export interface Offer {
  readonly name: string;
  readonly namespace?: string | undefined;
  /** It takes free text. */
  readonly custom?: boolean;
}

interface Schema {
  readonly type?: string | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
}

export type Move =
  | { readonly kind: 'text'; readonly text: string }
  /** `input` is a text for tools that take free text. */
  | { readonly kind: 'call'; readonly tool: Offer; readonly input: object | string };

/** What the model thinks before it calls; its signature is what only this vendor may be given back. */
export const thought = 'The file must be read first.';
export const signature = Buffer.from('only for the vendor that signed it').toString('base64');

/** What every answer reports: totals, with `cached` in `input` and `reasoning` in `output`. */
export const reported = { input: 1_200, cached: 200, output: 50, reasoning: 10 } as const;

/** The file that is to be read, or the tool of a server that is to be called, whatever the client puts before its name. */
export type Task = string | { readonly tool: string; readonly input: object };

/** Reads the file with the first tool that can; quotes the result; edits a file that a request without tools brings along; answers side requests (a title) in the form asked for. */
export function moveFor({ tools, result, schema }: AgentRequest, task: Task, prompt: string): Move {
  const hasSearched = typeof task !== 'string' && result?.startsWith('Tools loaded:') === true;
  if (result !== undefined && !hasSearched) return { kind: 'text', text: `The file says: ${result}` };
  if (typeof task !== 'string') return callOf(tools, task);
  for (const [name, input] of waysToRead(task)) {
    const tool = tools.find((offer) => offer.name === name || offer.name.endsWith(`__${name}`));
    if (tool === undefined) continue;
    // A free-text tool may be offered as a function of one text.
    const isWrapped = typeof input === 'string' && tool.custom !== true;
    return { kind: 'call', tool, input: isWrapped ? { input } : input };
  }
  const [, secret] = tools.length === 0 ? (/The word of the day is ([\w-]+)/.exec(prompt) ?? []) : [];
  // A whole file, as clients without tools take their edits.
  if (secret !== undefined)
    return { kind: 'text', text: `${basename(task)}\n\`\`\`\nThe word was ${secret}.\n\`\`\`\n` };
  return { kind: 'text', text: schema === undefined ? 'Reading a file' : JSON.stringify(exampleOf(schema)) };
}

function callOf(tools: readonly Offer[], { tool: wanted, input }: Exclude<Task, string>): Move {
  const tool = tools.find(({ name }) => name.endsWith(wanted));
  if (tool !== undefined) return { kind: 'call', tool, input };
  // Qwen Code declares tools of servers by this one.
  const any = tools.find(({ name }) => name === 'tool_call');
  if (any !== undefined)
    return { kind: 'call', tool: any, input: { name: `mcp__gateway__${wanted}`, arguments: input } };
  // Codex has tools of servers looked for, and declares those that were found.
  const search = tools.find(({ name }) => name === 'tool_search');
  if (search !== undefined) return { kind: 'call', tool: search, input: { query: wanted.replaceAll(/_+/g, ' ') } };
  return { kind: 'text', text: `There is no ${wanted} among ${tools.map(({ name }) => name).join(' ')}.` };
}

/** `exec` runs a script that may call other tools. */
function waysToRead(file: string): readonly (readonly [string, object | string])[] {
  const script = `const shown = await tools.exec_command({ cmd: ${JSON.stringify(`cat ${file}`)} });\ntext(shown.output);`;
  return [
    ['Read', { file_path: file }],
    ['Bash', { command: `cat ${file}`, description: 'Show the file' }],
    ['view', { path: file }],
    ['read_file', { file_path: file }],
    ['read', { filePath: file }],
    ['bash', { command: `cat ${file}`, description: 'Show the file' }],
    ['exec_command', { cmd: `cat ${file}` }],
    ['shell', { command: ['cat', file] }],
    ['exec', script],
  ];
}

function exampleOf({ type, properties }: Schema): unknown {
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, exampleOf(schema)]));
  if (type === 'boolean') return false;
  if (type === 'number' || type === 'integer') return 1;
  return type === 'array' ? [] : 'Reading a file';
}

/** The text in pieces, as a model would say it. */
export function pieces(text: string, length = 9): string[] {
  return text.match(new RegExp(`[^]{1,${length}}`, 'gu')) ?? [];
}

/** A request that the vendor refuses, as the real one would; the message names the rule. */
export class Refused extends Error {}

export function must(holds: boolean, sentence: string): asserts holds {
  if (!holds) throw new Refused(sentence);
}
