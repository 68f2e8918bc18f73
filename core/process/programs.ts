/** Command lines made of the commands of plugins. */
import { Command } from 'commander';
import packageFile from '../../package.json' with { type: 'json' };
import type { CommandResult, Command as PluginCommand } from '../contract/commands.ts';

interface CommandSurroundings {
  before(): void;
  print(result: CommandResult, asJson: boolean): void;
}

export function addPluginCommand(
  program: Command,
  { name, summary, arguments: positional = [], options = {}, run }: PluginCommand,
  { before, print }: CommandSurroundings,
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

/** A command line without commands. */
export function newProgram(): Command {
  return new Command('gateway')
    .description('Serves and operates model gateways. Every command takes --json and --config FILE.')
    .version(packageFile.version, '--version', 'print the version')
    .option('--config <file>', 'the gateway that the command is about; without it, the one that runs here')
    .option('--json', 'print JSON')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true });
}

/** The command of one to three words, below those of its first words. */
export function commandOf(program: Command, name: string): Command {
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
