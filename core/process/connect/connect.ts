/** `connect CLIENT`: writes the settings of a client program for a gateway, shows them first, tries one call, and takes them back. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { CommandResult } from '../../contract/commands.ts';
import { GatewayError } from '../../contract/errors.ts';
import {
  type ClientProgram,
  clientPrograms,
  entriesOf,
  type Filling,
  formatOf,
  isConnectable,
  membersOf,
  setVariable,
  variablesOf,
} from '../../tools/client-programs.ts';
import { didYouMean } from '../../tools/near-names.ts';
import { difference, withMembers } from './settings-files.ts';

export interface ConnectOptions {
  readonly gateway?: string;
  readonly key?: string;
  readonly model?: string;
  readonly small?: string;
  readonly undo?: boolean;
  readonly yes?: boolean;
}

/** Where it runs, for tests. */
export interface Surroundings {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absent: no person is there to answer. */
  confirm?(question: string): Promise<boolean>;
  show(text: string): void;
}

export const atTerminal = (): Surroundings => ({
  home: homedir(),
  environment: process.env,
  ...(process.stdin.isTTY && process.stdout.isTTY ? { confirm: ask } : {}),
  show: (text) => void process.stdout.write(`${text}\n`),
});

async function ask(question: string): Promise<boolean> {
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await reader.question(`${question} [y/N] `)).trim());
  } finally {
    reader.close();
  }
}

export async function connect(name: string, options: ConnectOptions, at: Surroundings): Promise<CommandResult> {
  const client = clientOf(name);
  if (options.undo === true) return undo(client, at);
  const values = valuesOf(options, at);
  await refuseUnlessSold(values);
  const plan = planOf(client, values, at.home);
  for (const { path, before, after } of plan)
    at.show([path, ...difference(before ?? '', after)].join('\n').replaceAll(values.key, masked(values.key)));
  for (const line of shownOf(client, values)) at.show(line);
  if (plan.length > 0 && options.yes !== true) {
    if (at.confirm === undefined) throw invalid('Nothing is written: repeat the command with --yes.');
    if (!(await at.confirm('Write this?'))) return { json: { written: [] }, text: 'Nothing is written.' };
  }
  // Before anything is written: settings that do not work help no one.
  await tryCall(values);
  for (const change of plan) write(change);
  const written = plan.map(({ path }) => path);
  const back = written.length === 0 ? '' : `\nTake it back: model-gateway connect ${name} --undo`;
  const next = client.run ?? (client.enter === undefined ? 'set the variables above' : 'enter the values above');
  return { json: { written, model: values.model }, text: `${values.model} has answered. Next: ${next}${back}` };
}

function clientOf(name: string): ClientProgram {
  const client = clientPrograms.get(name);
  if (client !== undefined && isConnectable(client)) return client;
  const known = [...clientPrograms].filter(([, one]) => isConnectable(one)).map(([one]) => one);
  throw invalid(`There is no client "${name}"${didYouMean(name, known)}: ${known.join(', ')}.`);
}

/** What a person enters, and variables that no file of the program holds. */
function shownOf(client: ClientProgram, values: Filling): string[] {
  const isKept = client.files?.some(({ variables_in }) => variables_in !== undefined);
  const variables = isKept === true ? [] : variablesOf(client, values);
  return [...entriesOf(client, values), ...variables.map(([name, value]) => setVariable(name, value, 'sh'))];
}

const invalid = (message: string) => new GatewayError('invalid_request', message);

export type Values = Filling & { readonly small: string };

function valuesOf({ gateway, key, model, small }: ConnectOptions, { environment }: Surroundings): Values {
  const address = gateway ?? environment['GATEWAY_URL'] ?? 'http://localhost:8080';
  if (!URL.canParse(address) || !/^https?:/.test(address))
    throw invalid('--gateway must be an address such as https://gateway.example.');
  const base = address.replace(/\/+$/, '').replace(/\/v1$/, '');
  const secret = key ?? environment['GATEWAY_KEY'] ?? '';
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw invalid(`There is no key: make one at ${base}/console/, then --key KEY, or the variable GATEWAY_KEY.`);
  return { base, key: secret, model: model ?? '', small: small ?? model ?? '', name: 'gateway' };
}

/** Throws unless the gateway takes the key and sells the models. */
async function refuseUnlessSold({ base, key, model, small }: Values): Promise<void> {
  const answer = await request(`${base}/v1/models`, key);
  const { data = [] } = (await answer.json()) as { data?: { id: string }[] };
  const ids = data.map(({ id }) => id);
  if (model === '') throw invalid(`--model says which model answers: ${ids.slice(0, 12).join(', ')} …`);
  for (const one of [model, small])
    if (!ids.includes(one)) throw invalid(`The gateway does not sell "${one}"${didYouMean(one, ids)}.`);
}

async function request(url: string, key: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const options = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const answer = await fetch(url, { ...options, headers, signal: AbortSignal.timeout(120_000) }).catch(
    (cause: unknown) => {
      throw new GatewayError(
        'upstream_failed',
        `${new URL(url).origin} does not answer: is it the gateway's address?`,
        { cause },
      );
    },
  );
  if (answer.ok) return answer;
  const text = (await answer.text()).replaceAll(key, masked(key)).slice(0, 500);
  throw new GatewayError('upstream_failed', `The gateway answers ${answer.status}: ${text}`);
}

async function tryCall({ base, key, model }: Values): Promise<void> {
  const messages = [{ role: 'user', content: 'Answer with the word ready.' }];
  const answer = await request(`${base}/v1/chat/completions`, key, { model, messages, max_completion_tokens: 256 });
  await answer.arrayBuffer();
}

const masked = (key: string) => `${key.slice(0, 6)}…`;

// ----------------------------------------------------------------------------------------------------------------- files

/** Writes a client's settings without showing, asking or calling. */
export function writeSettings(name: string, values: Values, home: string): void {
  for (const change of planOf(clientPrograms.get(name)!, values, home)) write(change);
}

interface Change {
  readonly path: string;
  /** undefined: there is no file yet. */
  readonly before: string | undefined;
  readonly after: string;
}

function planOf(client: ClientProgram, values: Filling, home: string): Change[] {
  return (client.files ?? []).map((file) => {
    const path = pathIn(home, file.path);
    const before = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
    try {
      return { path, before, after: withMembers(before ?? '', formatOf(path), membersOf(client, file, values)) };
    } catch (error) {
      throw invalid(`${path} cannot be changed: ${(error as Error).message}. Nothing is written.`);
    }
  });
}

/** Behind links: they stay. */
function pathIn(home: string, written: string): string {
  const path = join(home, written.replace(/^~\//, ''));
  return existsSync(path) ? realpathSync(path) : path;
}

/** Beside the file: what it was, or that there was none. The first one stays, however often a client is connected. */
const backupOf = (path: string) => ({ file: `${path}.before-gateway`, none: `${path}.was-absent-before-gateway` });

function write({ path, before, after }: Change): void {
  const { file, none } = backupOf(path);
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(file) && !existsSync(none))
    if (before === undefined) writeFileSync(none, '');
    else copyFileSync(path, file);
  // It has a key now: for its owner alone. Written beside and renamed, so that no half of it is ever read.
  const beside = `${path}.gateway-new`;
  writeFileSync(beside, after, { mode: 0o600 });
  renameSync(beside, path);
}

function undo({ name, files = [] }: ClientProgram, { home }: Surroundings): CommandResult {
  const restored: string[] = [];
  for (const { path: written } of files) {
    const path = pathIn(home, written);
    const { file, none } = backupOf(path);
    if (existsSync(file)) renameSync(file, path);
    else if (existsSync(none)) for (const gone of [path, none]) rmSync(gone, { force: true });
    else continue;
    restored.push(path);
  }
  const text =
    restored.length === 0 ? `Nothing of ${name} was written by connect.` : `As before: ${restored.join(', ')}`;
  return { json: { restored }, text };
}
