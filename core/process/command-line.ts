/** The command line: serves gateways, checks their files, and runs their plugins' commands. */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Command } from 'commander';
import type { CommandResult, Command as PluginCommand } from '../contract/commands.ts';
import { boot } from '../gateway/boot.ts';
import { ConfigError } from '../gateway/config.ts';
import { configSchema } from '../gateway/json-schema.ts';
import { createLog } from '../gateway/log.ts';
import { lineOfNotice } from '../gateway/notices/notices.ts';
import { endBy, endServing } from './fatal.ts';
import { newPlugin } from './new-plugin.ts';
import { ownCommands, usedMost } from './own-commands.ts';
import { serve } from './serve.ts';

const defaultConfig = 'config/demo.yaml';
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
      addPluginCommand(program, command, () => {
        for (const sentence of gateway.beforeCommand(command.name)) process.stderr.write(`${sentence}\n`);
      });
    await program.parseAsync(words, { from: 'user' });
  } finally {
    await gateway.stop(0);
  }
}

function addPluginCommand(
  program: Command,
  { name, summary, arguments: positional = [], options = {}, run }: PluginCommand,
  before: () => void,
): void {
  const command = commandOf(program, name).description(summary);
  for (const argument of positional) command.argument(argument);
  for (const [flags, description] of Object.entries(options)) command.option(flags, description);
  command.action(async (...received: unknown[]) => {
    const values: Record<string, string | boolean | undefined> = { ...command.opts() };
    command.registeredArguments.forEach((argument, index) => {
      values[argument.name()] = received[index] as string | undefined;
    });
    before();
    print(await run(values), command.optsWithGlobals()['json'] === true);
  });
}

function newProgram(): Command {
  return new Command('gateway')
    .description('Serves and operates model gateways. Every command takes --json and --config FILE.')
    .option('--config <file>', 'the gateway that the command is about', defaultConfig)
    .option('--json', 'print JSON')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true });
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
  await runPluginCommand(words, configOf(words));
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

/** The command of one to three words, below those of its first words. */
function commandOf(program: Command, name: string): Command {
  const words = name.split(' ');
  return words
    .slice(0, -1)
    .reduce(
      (above, group) =>
        above.commands.find((known) => known.name() === group) ?? above.command(group).description(`${group} …`),
      program,
    )
    .command(words.at(-1)!);
}

function shortList(): string {
  const width = Math.max(...usedMost.map(([command]) => command.length));
  const lines = usedMost.map(([command, what]) => `  ${command.padEnd(width)}  ${what}`);
  return `\nCommands:\n${lines.join('\n')}\n\nhelp-all lists all commands of a gateway, COMMAND --help the options of one.`;
}

/** `--config FILE` or `--config=FILE`, parsed before the commands are known, because the file's plugins define them. */
function configOf(words: readonly string[]): string {
  const { values } = parseArgs({ args: [...words], options: { config: { type: 'string' } }, strict: false });
  return typeof values.config === 'string' ? values.config : defaultConfig;
}

main(process.argv.slice(2)).catch(endBy);
