/** `connect CLIENT`: writes the settings of a client program for a gateway, shows them first, tries one call, and takes them back. */
import { spawn } from 'node:child_process';
import { homedir, hostname } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { ReadStream } from 'node:tty';
import type { CommandResult } from '../../contract/commands.ts';
import {
  type ClientProgram,
  clientPrograms,
  entriesOf,
  type Filling,
  isConnectable,
  type Shell,
  setVariable,
  variablesOf,
} from '../../tools/client-programs.ts';
import { didYouMean } from '../../tools/near-names.ts';
import { candidates, invalid, keyByCode, type Sold, smallBeside, soldAs, soldBy, tryCall } from './gateway.ts';
import { difference } from './settings-files.ts';
import { type Change, type Place, planOf, restore, writeAll } from './writing.ts';

export interface ConnectOptions {
  readonly gateway?: string;
  readonly key?: string;
  readonly model?: string;
  readonly small?: string;
  readonly undo?: boolean;
  readonly yes?: boolean;
  readonly browser?: boolean;
}

/** Where it runs, for tests. */
export interface Surroundings extends Place {
  /** How the command is called, up to the client's name, for people who have it from that gateway. */
  command(base: string): string;
  /** Absent: no person is there to answer. */
  confirm?(question: string): Promise<boolean>;
  show(text: string): void;
  wait(ms: number): Promise<void>;
  open?(address: string): void;
}

/** With `asJson` the standard output has the result alone. `keyboard`: where a person answers, if not at the standard input. */
export function atTerminal(
  asJson: boolean,
  command: Surroundings['command'],
  keyboard: () => ReadStream | undefined = () => undefined,
): Surroundings {
  const input = process.stdin.isTTY ? process.stdin : keyboard();
  return {
    command,
    home: homedir(),
    environment: process.env,
    ...(input !== undefined && process.stderr.isTTY ? { confirm: (question) => ask(question, input) } : {}),
    show: (text) => void (asJson ? process.stderr : process.stdout).write(`${text}\n`),
    wait: (ms) => wait(ms),
    open: openBrowser,
  };
}

async function ask(question: string, input: ReadStream): Promise<boolean> {
  const reader = createInterface({ input, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await reader.question(`${question} [y/N] `)).trim());
  } finally {
    reader.close();
    input.destroy();
  }
}

/** The address is shown besides: it does not matter if there is no browser. */
function openBrowser(address: string): void {
  const [command, ...words] =
    process.platform === 'win32' ? ['explorer.exe'] : process.platform === 'darwin' ? ['open'] : ['xdg-open'];
  const child = spawn(command!, [...words, address], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined).unref();
}

export async function connect(name: string, options: ConnectOptions, at: Surroundings): Promise<CommandResult> {
  const client = clientOf(name);
  if (options.undo === true) return undo(client, at);
  const base = baseOf(options, at);
  // Before a person is asked for anything: files that cannot be changed end it.
  planOf(client, { base, key: 'key', model: 'model', name: 'gateway' }, at);
  const key = await keyOf(name, base, options, at);
  const values = await choose(client, { base, key }, options);
  const plan = planOf(client, values, at);
  showAll(client, values, plan, at);
  if (plan.length > 0 && options.yes !== true) {
    if (at.confirm === undefined) throw invalid('Nothing is written: repeat the command with --yes.');
    if (!(await at.confirm('Write this?'))) return { json: { written: [] }, text: 'Nothing is written.' };
  }
  writeAll(plan);
  const written = plan.map(({ path }) => path);
  const next = client.run ?? (client.enter === undefined ? sourceOf(written, shellOf(at)) : 'enter the values above');
  const unattended = client.unattended === undefined ? '' : `\nIn a script: ${client.unattended}`;
  const back = written.length === 0 ? '' : `\nTake it back: ${at.command(base)} ${name} --undo`;
  const { model, small } = values;
  return {
    json: { written, model, small: small ?? model },
    text: `${model} has answered. Next: ${next}${unattended}${back}`,
  };
}

function clientOf(name: string): ClientProgram {
  const client = clientPrograms.get(name);
  if (client !== undefined && isConnectable(client)) return client;
  const known = [...clientPrograms].filter(([, one]) => isConnectable(one)).map(([one]) => one);
  throw invalid(`There is no client "${name}"${didYouMean(name, known)}: ${known.join(', ')}.`);
}

function baseOf({ gateway }: ConnectOptions, { environment }: Surroundings): string {
  const address = gateway ?? environment['GATEWAY_URL'] ?? 'http://localhost:8080';
  if (!URL.canParse(address) || !/^https?:/.test(address))
    throw invalid('--gateway must be an address such as https://gateway.example.');
  return address.replace(/\/+$/, '').replace(/\/v1$/, '');
}

async function keyOf(program: string, base: string, options: ConnectOptions, at: Surroundings): Promise<string> {
  const key = options.key ?? at.environment['GATEWAY_KEY'];
  if (key !== undefined && key !== '') {
    if (!/^[\x21-\x7e]+$/.test(key)) throw invalid('The key has characters that no key has: is it copied whole?');
    return key;
  }
  const made = await keyByCode(base, {
    program,
    machine: hostname(),
    wait: at.wait,
    show(address, code) {
      at.show(`Sign in and allow a key at\n\n    ${address}\n\nif the page shows the code ${code}. Waiting …`);
      if (options.browser === true) at.open?.(address);
    },
  });
  at.show('The key is there.');
  return made;
}

/** How many models are tried where none is named: a key may be for some alone. */
const mostTried = 5;

/** The models, after one of them has answered a call: settings that do not work help no one. */
async function choose(
  client: ClientProgram,
  { base, key }: { readonly base: string; readonly key: string },
  options: ConnectOptions,
): Promise<Filling> {
  const sold = await soldBy(base, key);
  const named = options.model === undefined ? undefined : await soldAs(base, key, options.model, sold);
  const small = options.small === undefined ? undefined : await soldAs(base, key, options.small, sold);
  let problem: Error = invalid('The gateway sells no model of conversations: --model ID names one.');
  for (const model of named === undefined ? candidates(client, sold).slice(0, mostTried) : [named]) {
    const error = await tryCall(client, { base, key, model: model.id });
    if (error === undefined) return filling(base, key, model, small ?? (await smallThatAnswers()) ?? model);
    problem = error;

    async function smallThatAnswers(): Promise<Sold | undefined> {
      const found = named === undefined ? smallBeside(model, sold) : model;
      if (found === model) return model;
      return (await tryCall(client, { base, key, model: found.id })) === undefined ? found : undefined;
    }
  }
  throw problem;
}

const filling = (base: string, key: string, model: Sold, small: Sold): Filling => ({
  ...{ base, key, name: 'gateway', model: model.id, context: model.context, output: model.output },
  ...{ small: small.id, smallContext: small.context, smallOutput: small.output },
});

const masked = (key: string) => `${key.slice(0, 6)}…`;

function showAll(client: ClientProgram, values: Filling, plan: readonly Change[], at: Surroundings): void {
  for (const { path, before, after } of plan)
    at.show([path, ...difference(before ?? '', after)].join('\n').replaceAll(values.key, masked(values.key)));
  for (const line of entriesOf(client, values)) at.show(line);
  // Variables that no file of the program holds.
  if (client.files?.some(({ variables_in }) => variables_in !== undefined) === true) return;
  for (const [name, value] of variablesOf(client, values)) at.show(setVariable(name, value, shellOf(at)));
}

function shellOf({ environment, platform = process.platform }: Surroundings): Shell {
  if (/\/fish$/.test(environment['SHELL'] ?? '')) return 'fish';
  return platform === 'win32' && environment['SHELL'] === undefined ? 'powershell' : 'sh';
}

/** How a shell takes variables up from its file. */
function sourceOf(written: readonly string[], shell: Shell): string {
  const file = written.find((path) => path.endsWith(shell === 'powershell' ? '.ps1' : `.${shell}`));
  const command = shell === 'fish' ? 'source' : '.';
  return file === undefined
    ? 'set the variables above'
    : `${command} "${file}", also in the file that your shell starts with`;
}

function undo(client: ClientProgram, at: Surroundings): CommandResult {
  const restored = restore(client, at);
  const text =
    restored.length === 0 ? `Nothing of ${client.name} was written by connect.` : `As before: ${restored.join(', ')}`;
  return { json: { restored }, text };
}
