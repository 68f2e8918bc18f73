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
  const words = name.split(' ');
  const parent = words
    .slice(0, -1)
    .reduce(
      (above, group) =>
        above.commands.find((known) => known.name() === group) ?? above.command(group).description(`${group} …`),
      program,
    );
  const command = parent.command(words.at(-1)!).description(summary);
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
  program
    .command('serve')
    .argument('<files...>', 'gateway files')
    .option('--workers <count>', 'processes behind one address: a number, or auto for one on each core; on PostgreSQL')
    .description('serve one or several gateways')
    .action((files: string[], { workers }: { workers?: string }) => serve(files, workers).catch(endServing));
  program
    .command('check')
    .argument('<files...>', 'gateway files')
    .description('dry run: wiring, missing variables, unpriced models')
    .action(async (files: string[]) => print(await check(files), asJson()));
  program
    .command('schema')
    .description('write config/schema.json from the plugins')
    .action(async () => print(await writeSchema(), asJson()));
  program
    .command('help-all')
    .description('list the commands that the plugins of --config FILE bring')
    .action(() => runPluginCommand(['--help'], program.opts()['config'] as string));
  program
    .command('plugin')
    .description('plugin new NAME: write the folder of a plugin of your own')
    .command('new')
    .argument('<name>', 'of the folder and the plugin')
    .description('write a folder with a plugin, its test and its README')
    .action(async (name: string) => print(await newPlugin(name), asJson()));
  const first = words.find((word, index) => !word.startsWith('-') && words[index - 1] !== '--config');
  if (first === undefined || program.commands.some((command) => command.name() === first)) {
    await program.parseAsync(words.length === 0 ? ['--help'] : words, { from: 'user' });
    return;
  }
  await runPluginCommand(words, configOf(words));
}

/** `--config FILE` or `--config=FILE`, parsed before the commands are known, because the file's plugins define them. */
function configOf(words: readonly string[]): string {
  const { values } = parseArgs({ args: [...words], options: { config: { type: 'string' } }, strict: false });
  return typeof values.config === 'string' ? values.config : defaultConfig;
}

main(process.argv.slice(2)).catch(endBy);
