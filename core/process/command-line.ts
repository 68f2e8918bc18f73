/** The command line: serves gateways, checks their files, and runs their plugins' commands. */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { Command } from 'commander';
import type { CommandResult } from '../contract/commands.ts';
import { boot } from '../gateway/boot.ts';
import { ConfigError } from '../gateway/config.ts';
import { configSchema } from '../gateway/json-schema.ts';
import { createLog } from '../gateway/log.ts';
import { lineOfNotice } from '../gateway/notices/notices.ts';
import { commandsAlone } from '../gateway/registry.ts';
import { endBy, endServing } from './fatal.ts';
import { newPlugin } from './new-plugin.ts';
import { ownCommands, usedMost } from './own-commands.ts';
import { addPluginCommand, commandOf, newProgram } from './programs.ts';
import { serve } from './serve.ts';
import { defaultFile } from './served-files.ts';

const schemaFile = new URL('../../config/schema.json', import.meta.url);

/** Dry run: nothing is opened, written or sent. */
async function check(files: readonly string[]): Promise<CommandResult> {
  const reports = [];
  for (const file of files) {
    try {
      const gateway = await boot(file, { mode: 'check', log: createLog('silent') });
      reports.push({ file, ok: true, problems: [], notices: gateway.notices() });
      await gateway.stop(0);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      reports.push({ file, ok: false, problems: error.problems, notices: [] });
    }
  }
  const text = reports.map(({ file, ok, problems, notices }) =>
    [
      `${file}: ${ok ? 'fits together' : 'cannot run'}`,
      ...problems.map(({ where, message }) => `  ${where}: ${message}`),
      ...notices.map((notice) => `  ${notice.level}: ${lineOfNotice(notice)}`),
    ].join('\n'),
  );
  return { json: reports, text: text.join('\n'), exitCode: reports.every(({ ok }) => ok) ? 0 : 1 };
}

async function writeSchema(): Promise<CommandResult> {
  const text = `${JSON.stringify(await configSchema(), undefined, 2)}\n`;
  await writeFile(schemaFile, text);
  return { json: { file: schemaFile.pathname }, text: 'wrote config/schema.json' };
}

/** Runs one command of the gateway's plugins, beside a serving process or alone. */
async function runPluginCommand(words: readonly string[], config: string): Promise<void> {
  const gateway = await boot(config, { mode: 'command', log: createLog(process.env['LOG_LEVEL'] ?? 'silent') });
  try {
    const program = newProgram();
    for (const command of gateway.commands)
      addPluginCommand(program, command, {
        before() {
          for (const sentence of gateway.beforeCommand(command.name)) process.stderr.write(`${sentence}\n`);
        },
        print,
      });
    await program.parseAsync(words, { from: 'user' });
  } finally {
    await gateway.stop(0);
  }
}

function print({ json, text, exitCode = 0 }: CommandResult, asJson: boolean): void {
  const exact = (_name: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value);
  process.stdout.write(`${asJson ? JSON.stringify(json, exact, 2) : text}\n`);
  process.exitCode = exitCode;
}

async function main(words: readonly string[]): Promise<void> {
  const program = newProgram();
  const asJson = () => program.opts()['json'] === true;
  const run: OwnCommands = {
    serve: (files, { workers }) => serve(files as string[], workers as string | undefined).catch(endServing),
    check: async (files) => print(await check(files as string[]), asJson()),
    // Loaded for this command alone.
    connect: async (name, options) => {
      const { atTerminal, connect } = await import('./connect/connect.ts');
      const ownName = import.meta.url.endsWith('.ts') ? 'npm run -s gateway --' : 'node_modules/.bin/model-gateway';
      print(
        await connect(
          String(name),
          options,
          atTerminal(asJson(), () => `${ownName} connect`),
        ),
        asJson(),
      );
    },
    schema: async () => print(await writeSchema(), asJson()),
    'help-all': () => runPluginCommand(['--help'], configOf(words)),
    'plugin new': async (name) => print(await newPlugin(name as string), asJson()),
  };
  addOwnCommands(program, run);
  // The others are listed by help-all: which they are depends on the file.
  program.configureHelp({ showGlobalOptions: true, visibleCommands: () => [] }).addHelpText('after', shortList());
  const first = words.find((word, index) => !word.startsWith('-') && words[index - 1] !== '--config');
  if (first === undefined || program.commands.some((command) => command.name() === first)) {
    await program.parseAsync(words.length === 0 ? ['--help'] : words, { from: 'user' });
    return;
  }
  if (!(await runAlone(words))) await runPluginCommand(words, configOf(words));
}

/** Runs a command of a plugin that needs no gateway; false: it is none of these. */
async function runAlone(words: readonly string[]): Promise<boolean> {
  const named = words.filter((word) => !word.startsWith('-')).join(' ');
  const alone = (await commandsAlone()).filter(({ name }) => `${named} `.startsWith(`${name} `));
  if (alone.length === 0) return false;
  const program = newProgram();
  for (const command of alone) addPluginCommand(program, command, { before() {}, print });
  await program.parseAsync(words, { from: 'user' });
  return true;
}

type OwnCommands = Readonly<
  Record<(typeof ownCommands)[number]['name'], (...values: [unknown, Record<string, unknown>]) => Promise<void>>
>;

function addOwnCommands(program: Command, run: OwnCommands): void {
  for (const own of ownCommands) {
    const { name, summary } = own;
    const command = commandOf(program, name).description(summary);
    for (const argument of 'arguments' in own ? own.arguments : []) command.argument(argument);
    for (const [flags, text] of Object.entries('options' in own ? own.options : {})) command.option(flags, text);
    command.action((...received) =>
      'arguments' in own ? run[name](received[0], received[1]) : run[name](undefined, received[0]),
    );
  }
}

function shortList(): string {
  const width = Math.max(...usedMost.map(([command]) => command.length));
  const lines = usedMost.map(([command, what]) => `  ${command.padEnd(width)}  ${what}`);
  return `\nCommands:\n${lines.join('\n')}\n\nhelp-all lists all commands of a gateway, COMMAND --help the options of one.`;
}

/** `--config FILE` or `--config=FILE`, parsed before the commands are known, because the file's plugins define them; else the one that is served. */
function configOf(words: readonly string[]): string {
  const { values } = parseArgs({ args: [...words], options: { config: { type: 'string' } }, strict: false });
  if (typeof values.config === 'string') return values.config;
  const { file, why } = defaultFile();
  process.stderr.write(`${why}\n`);
  return file;
}

main(process.argv.slice(2)).catch(endBy);
