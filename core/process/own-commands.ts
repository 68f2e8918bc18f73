/** The commands that need no plugin: what they are called and take; and those of all that operators use most. */

export interface OwnCommand {
  readonly name: string;
  readonly arguments?: readonly string[];
  readonly options?: Readonly<Record<string, string>>;
  readonly summary: string;
}

export const ownCommands = [
  {
    name: 'serve',
    arguments: ['<files...>'],
    options: {
      '--workers <count>': 'processes behind one address: a number, or auto for one on each core; on PostgreSQL',
    },
    summary: 'serve one or several gateways',
  },
  {
    name: 'check',
    arguments: ['<files...>'],
    summary: 'dry run: settings, wiring, missing variables, models without prices; opens nothing',
  },
  {
    name: 'connect',
    arguments: ['<client>'],
    options: {
      '--gateway <url>': 'address of the gateway; else the variable GATEWAY_URL, else http://localhost:8080',
      '--key <key>': 'a key of it; else the variable GATEWAY_KEY, else one that you allow in the console',
      '--model <id>': 'the model that answers; else one that suits the program',
      '--small <id>': 'a cheaper model for side jobs; else one of the same make, or that of --model',
      '--browser': 'open the page where you allow a key',
      '--yes': 'write without asking',
      '--undo': 'put the settings back as they were',
    },
    summary: 'write the settings of a client program for a gateway, after showing them, and make one call',
  },
  { name: 'schema', summary: 'write config/schema.json from the plugins, for editors' },
  { name: 'help-all', summary: 'list the commands that the plugins of --config FILE bring' },
  {
    name: 'plugin new',
    arguments: ['<name>'],
    summary: 'write a folder with a plugin of your own, its test and its README',
  },
] as const satisfies readonly OwnCommand[];

/** What `--help` shows: the way from a first start to daily work. */
export const usedMost: readonly (readonly [command: string, what: string])[] = [
  ['serve FILE…', 'serve one or several gateways'],
  ['check FILE…', 'find every mistake of a file; opens nothing'],
  ['accounts create NAME --credit USD', 'an account with money'],
  ['accounts credit NAME USD --reason TEXT', 'more money'],
  ['connect CLIENT --gateway URL', 'point a coding client at a gateway'],
  ['keys create --account NAME', 'a key, shown once'],
  ['keys revoke ID', 'a key that is used no more'],
  ['providers list', 'vendors, their keys and how they do'],
  ['providers secret set NAME', 'store a vendor’s key, from standard input'],
  ['providers import-models NAME', 'a vendor’s models as YAML to paste'],
  ['prices check', 'missing prices, sales below cost'],
  ['requests show ID', 'what happened to one request, and what it cost'],
  ['ledger NAME', 'every movement of an account’s money'],
  ['audit', 'whether all money adds up'],
  ['console operator-link', 'a link that makes the first operator'],
];
