/** The guide does what it says: each page's files pass the check with all parts loaded, its commands run, and it is short. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import type { CommandResult } from '../../core/contract/contract.ts';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { connect } from '../../core/process/connect/connect.ts';
import { addPluginCommand, newProgram } from '../../core/process/programs.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const folder = 'plugins/docs/guide';
const index = readFileSync(`${folder}/README.md`, 'utf8');
/** In the order of the index, since a page may use what an earlier one has made. */
const names = Array.from(index.matchAll(/\]\(([a-z-]+\.md)\)/g), ([, name]) => name!);
const pages = names.map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));

const blocksOf = (text: string, language: string) =>
  Array.from(text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm')), ([, block]) => block!);

const directory = temporaryDirectory('guide-');
const variables: Record<string, string> = { OIDC_CLIENT_SECRET: 'a-secret-of-the-provider' };
let gateway: TestGateway;

before(async () => {
  gateway = await startGateway('include: config/demo.yaml\n', { directory, environment: variables });
});
after(() => gateway.stop());

test('each page is in the index, has a goal, and has at most 150 lines', () => {
  const files = globSync(`${folder}/*.md`).map((file) => file.slice(folder.length + 1));
  assert.deepEqual(files.filter((name) => name !== 'README.md').sort(), [...names].sort());
  for (const { name, text } of pages) {
    assert.ok(text.split('\n').length <= 150, `${name} is too long`);
    assert.match(text, /^# .+\n\n(\*\*(What you get|In one sentence):\*\*|By what the client sees)/, name);
    if (/\*\*What you get/.test(text))
      assert.match(text, /\n## What can be changed\n[\s\S]*\n## What can go wrong\n/, name);
  }
});

test('each kind of alert has its place in the page of what to do on call', () => {
  const kinds = readFileSync('plugins/alerts/README.md', 'utf8').split('\n## Kinds\n')[1]!.split('\n## ')[0]!;
  const named = Array.from(kinds.matchAll(/^\| (`\w+`(?:, `\w+`)*) \|/gm), ([, cell]) => cell!.split(', ')).flat();
  assert.ok(named.length >= 20, named.join());
  const runbook = readFileSync('docker/RUNBOOK.md', 'utf8');
  assert.deepEqual(
    named.filter((kind) => !runbook.includes(kind)),
    [],
  );
});

// ----------------------------------------------------------------------------------------------------------------- files

const check = async (file: string) => {
  const environment = { ...variables, PORT: '0', DATA_DIR: directory };
  const checked = await boot(file, { mode: 'check', log: createLog('silent'), environment });
  await checked.stop(0);
};

/** The name that a whole file is given in its first line. */
const fileName = (block: string) => /^# ([a-z-]+\.yaml)\n/.exec(block)?.[1];

for (const { name, text } of pages) {
  const whole = blocksOf(text, 'yaml').filter((block) => fileName(block) !== undefined);
  for (const block of whole)
    test(`${name}: the file ${fileName(block)} passes the check`, async () => {
      const path = join(directory, fileName(block)!);
      writeFileSync(path, block.replace('include: ', `include: ${process.cwd()}/`));
      await check(path);
    });
}

test('the other blocks fit into the main gateway, all of them at once', async () => {
  const parts = pages.flatMap(({ name, text }) =>
    blocksOf(text, 'yaml')
      .filter((block) => fileName(block) === undefined)
      .map((block, place) => {
        const path = join(directory, `${name}-${place}.yaml`);
        writeFileSync(path, block);
        return path;
      }),
  );
  assert.ok(parts.length > 8);
  const path = join(directory, 'parts.yaml');
  writeFileSync(path, `include: [${process.cwd()}/config/main.yaml, ${parts.join(', ')}]\n`);
  await check(path);
});

// -------------------------------------------------------------------------------------------------------------- commands

/** Read standard input or ask a service: their options are parsed, their own tests run them. */
const parsedAlone = /^(providers secret set|providers import-models|audit --accept-restore)\b/;

/** Commands that the demo gateway has not: a goal of `npm run test:guide` runs them with the page's own file. */
const followed = /^guardrails try\b/;

/** What is no command of the gateway: which file it needs, or that it is run elsewhere. */
const others: readonly RegExp[] = [
  /^export [A-Z0-9_]+=/,
  /^npm ci && npm start$/, // The first start has a test of its own.
  /^echo '[^']+' > sample\.txt$/,
  /^tar -C data -czf gateway\.tgz \.$/,
  /^pg_dump --dbname="\$DATABASE_URL" --format=custom --file=gateway\.dump$/,
];

const connectOptions = {
  gateway: { type: 'string' },
  model: { type: 'string' },
  yes: { type: 'boolean' },
  undo: { type: 'boolean' },
} as const;

const wordsOf = (line: string) =>
  Array.from(line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g), ([, single, double, bare]) => single ?? double ?? bare!).map(
    (word) => word.replace(/^\$([A-Z_]+)$/, (_, variable: string) => variables[variable] ?? ''),
  );

async function runGatewayCommand(line: string): Promise<void> {
  const words = wordsOf(line.replace(/ < \S+$/, ''));
  const [command, ...rest] = words;
  if (command === 'serve' || command === 'check' || followed.test(line)) {
    const files = rest.filter((word) => word.endsWith('.yaml'));
    for (const file of files) assert.ok(existsSync(join(directory, file)) || existsSync(file), `there is no ${file}`);
    return;
  }
  if (command === 'connect') {
    const { values, positionals } = parseArgs({ args: rest, allowPositionals: true, options: connectOptions });
    const address = values.gateway?.replace('http://localhost:8080', gateway.origin);
    const at = { command: () => 'connect', home: directory, environment: variables, show() {}, async wait() {} };
    await connect(positionals[0]!, { ...values, ...(address === undefined ? {} : { gateway: address }) }, at);
    return;
  }
  const program = newProgram().configureOutput({ writeErr() {} });
  let json: unknown;
  const note = (result: CommandResult) => {
    json = result.json;
  };
  for (const one of gateway.gateway.commands) {
    const isParsedAlone = parsedAlone.test(line);
    const run: typeof one.run = isParsedAlone ? async () => ({ json: {}, text: '' }) : (values) => one.run(values);
    addPluginCommand(program, { ...one, run }, { before() {}, print: note });
  }
  await program.parseAsync(words, { from: 'user' });
  const { key } = (json ?? {}) as { key?: string };
  if (typeof key === 'string') variables['GATEWAY_KEY'] = key;
  if (command === 'budgets') noteBudget(json);
}

/** What the next commands name of the first budget of the list. */
function noteBudget(json: unknown): void {
  if (!Array.isArray(json)) return;
  const [{ id, states }] = json as [{ id: string; states: [{ scope: string }] }];
  Object.assign(variables, { ID: id, SCOPE: states[0].scope });
}

async function runLine(line: string): Promise<void> {
  const command = /^npm run -s gateway -- (.*)$/.exec(line)?.[1];
  // The row of a request is written within a second of its end.
  for (let tries = 100; command?.includes('$REQUEST_ID') && tries > 0; tries -= 1) {
    const isWritten = await runGatewayCommand(command).then(
      () => true,
      () => false,
    );
    if (isWritten) return;
    await pause(50);
  }
  if (command !== undefined) return runGatewayCommand(command);
  if (!line.startsWith('curl ')) {
    assert.ok(
      others.some((known) => known.test(line)),
      `no test runs this line: ${line}`,
    );
    return;
  }
  const here = `${line.replaceAll('http://localhost:8080', gateway.origin)} --silent --show-error --fail --dump-header -`;
  const { stdout } = await promisify(execFile)('bash', ['-c', here], { env: { ...process.env, ...variables } });
  if (line.includes('/v1/chat/'))
    variables['REQUEST_ID'] = /^x-request-id: (\S+)/im.exec(stdout)?.[1] ?? variables['REQUEST_ID']!;
}

test('each command of the pages runs as it is written, in the order of the pages', async () => {
  await runGatewayCommand('accounts create reader --credit 5');
  await runGatewayCommand('keys create --account reader');
  const failed: string[] = [];
  for (const { name, text } of pages)
    for (const block of blocksOf(text, 'sh'))
      for (const line of block
        .replace(/ \\\n\s*/g, ' ')
        .split('\n')
        .filter((one) => one !== ''))
        await runLine(line).catch(
          (error: unknown) => void failed.push(`${name}: ${line}: ${(error as Error).message}`),
        );
  assert.deepEqual(failed, []);
});
