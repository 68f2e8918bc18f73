/** `connect` as a program of one file, which gateways serve to machines that have Node and nothing else (plugins/docs/connect). */
import { openSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { parseArgs } from 'node:util';
import { programAddress } from '../../tools/client-programs.ts';
import { ownCommands } from '../own-commands.ts';
import { atTerminal, type ConnectOptions, connect } from './connect.ts';

const { options, summary } = ownCommands.find((own) => own.name === 'connect')!;
const flags = Object.entries(options).map(([flag, text]) => {
  const [name, value] = flag.slice('--'.length).split(' ');
  return { flag, text, name: name!, type: value === undefined ? ('boolean' as const) : ('string' as const) };
});

/** How this program was started. From a pipe it has no file. */
function words(base: string): string {
  const file = process.argv[1];
  if (file !== undefined && file !== '-') return `node ${/\s/.test(file) ? `"${file}"` : file}`;
  return `curl -fsS ${programAddress(base)} | node -`;
}

/** Its own text may come by the standard input: the person is at the terminal all the same. */
function keyboard(): ReadStream | undefined {
  if (process.stdin.isTTY || process.platform === 'win32') return undefined;
  try {
    return new ReadStream(openSync('/dev/tty', 'r'));
  } catch {
    return undefined;
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(flags.map(({ name, type }) => [name, { type }])),
  });
  const [client] = positionals;
  if (client === undefined) {
    const lines = flags.map(({ flag, text }) => `  ${flag.padEnd(16)} ${text}`);
    process.stderr.write(`connect CLIENT: ${summary}\n${lines.join('\n')}\n`);
    process.exitCode = 1;
    return;
  }
  const { text } = await connect(client, values as ConnectOptions, atTerminal(false, words, keyboard));
  process.stdout.write(`${text}\n`);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
