/** What the documents show runs as it stands: first calls, SDKs, a vendor, a plugin; and their links lead somewhere. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { accounts } from '../plugins/common/domain/accounts.ts';
import { ledger } from '../plugins/common/domain/ledger.ts';
import { parseUsd } from '../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from './helpers/gateway.ts';
import { temporaryDirectory } from './helpers/temporary-directory.ts';
import { startVendor, type Vendor } from './helpers/vendor.ts';
import { reportFile, reportOf } from './public-api/report.ts';
import { readSurface } from './public-api/surface.ts';

const run = promisify(execFile);
const readme = readFileSync('README.md', 'utf8');
const directory = temporaryDirectory('readme-');
let vendor: Vendor;
let gateway: TestGateway;
let accountId: string;
let key: string;

/** The first code block in this language below a heading. */
function example(heading: string, language: string, text = readme): string {
  const section = text.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0];
  const block = section === undefined ? null : new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section);
  assert.ok(block, `there is no ${language} below "${heading}"`);
  return block[1]!;
}

before(async () => {
  vendor = await startVendor();
  // A path beside the file names a plugin; it is written as a module that lives outside of the repository.
  writeFileSync(
    join(directory, 'who.mts'),
    example('Add a plugin', 'ts')
      .replaceAll("'../../core/", `'${process.cwd()}/core/`)
      .replaceAll("'../common/", `'${process.cwd()}/plugins/common/`),
  );
  const demo = readFileSync('config/demo.yaml', 'utf8');
  const list = /plugins:\n(?: {2}- .*\n)+/.exec(demo)![0].replace('  - plans\n', '  - ./who.mts\n  - plans\n');
  const added = example('Add a vendor', 'yaml').replace('https://api.my-vendor.example', vendor.origin);
  gateway = await startGateway(`include: config/demo.yaml\n${list}${added}`, {
    directory,
    environment: { MY_VENDOR_KEY: 'vendor-secret' },
  });
  const account = await gateway.gateway.find(accounts)!.create('reader', 'free');
  accountId = account.id;
  await gateway.gateway
    .find(ledger)!
    .credit(accountId, parseUsd('5'), { kind: 'top-up', reason: 'test', reference: 'readme' });
  key = (await gateway.gateway.find(accounts)!.createKey(accountId, { name: 'reader' })).key;
});

after(async () => {
  await gateway.stop();
  await vendor.stop();
});

const here = (text: string) => text.replaceAll('http://localhost:8080', gateway.origin);
const environment = () => ({ ...process.env, GATEWAY_KEY: key });

/** Runs an example and returns the operation and status of each request that it made. */
async function requestsOf(code: string): Promise<[string, number][]> {
  const earlier = gateway.lines.length;
  await run(process.execPath, ['--input-type=module', '--eval', here(code)], { env: environment() });
  return gateway.lines
    .slice(earlier)
    .filter((line) => line.includes('"msg":"request"'))
    .map((line) => JSON.parse(line) as { operation: string; status: number })
    .map(({ operation, status }) => [operation, status]);
}

test('the first calls with curl, of a model and of a tool, are answered', async () => {
  const calls = here(example('First call', 'sh')).split(/^(?=curl )/m);
  const made = calls.map((call) => run('bash', ['-c', call], { env: environment() }));
  const [chat, tool, ...none] = (await Promise.all(made)).map(({ stdout }) => stdout);
  assert.match(JSON.parse(chat!).choices[0].message.content, /Hello/);
  assert.match(JSON.parse(tool!).output.at(-1).content[0].text, /sandbox__weather answered: \{"city":"Oslo"/);
  assert.deepEqual(none, []);
});

test('the first calls with an SDK run as written, and the image is returned at once', async () => {
  const code = example('First call', 'ts').replaceAll('await openai.images', 'image = await openai.images');
  const check = `if (!image.data[0].b64_json.startsWith('iVBOR')) throw new Error('there is no image');`;
  assert.deepEqual(await requestsOf(`let image;\n${code}\n${check}`), [
    ['responses', 200],
    ['images', 200],
    ['images', 200],
  ]);
});

test('the calls with the other SDKs run as written', async () => {
  const page = readFileSync('plugins/protocol-convert/README.md', 'utf8');
  assert.deepEqual(await requestsOf(example('Addresses', 'ts', page)), [
    ['messages', 200],
    ['generate-content', 200],
  ]);
});

const send = (model: string) =>
  fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  });

test('the vendor is called by its own name of the model and with its key in the named header', async () => {
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const message = { role: 'assistant', content: 'Good day' };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  vendor.play({
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices, usage }),
  });
  const answer = await send('my-model');
  assert.equal(((await answer.json()) as { choices: typeof choices }).choices[0]!.message.content, 'Good day');
  const [request] = vendor.requests;
  assert.equal(request!.url, '/v1/chat/completions');
  assert.equal(request!.headers['x-vendor-key'], 'vendor-secret');
  assert.equal(request!.headers['authorization'], undefined);
  assert.equal(JSON.parse(String(request!.body)).model, 'their-name-of-it');
});

test('the example plugin works where it is listed', async () => {
  const answer = await send('gpt-5.4-mini');
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('x-account'), accountId);
});

// ------------------------------------------------------------------------------------------------------------- the pages

/** Without the templates of pages that gateways serve: their links are followed where they lead. */
const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  encoding: 'utf8',
})
  .split('\n')
  .filter((page) => page !== '' && !/\/LICENSES\/|^plugins\/docs\/pages\//.test(page) && existsSync(page));

/** A heading's anchor as hosting sites make it. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

function anchorsOf(page: string): Set<string> {
  const text = readFileSync(page, 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  return new Set(Array.from(text.matchAll(/^#+ (.*)$/gm), ([, heading]) => anchorOf(heading!)));
}

test('every link of a page leads to a file or a heading that exists', () => {
  const broken = pages.flatMap((page) =>
    Array.from(readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target!)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path, anchor] = target.split('#') as [string, string | undefined];
        const file = path === '' ? page : normalize(join(dirname(page), path));
        return !existsSync(file) || (anchor !== undefined && !anchorsOf(file).has(anchor));
      })
      .map((target) => `${page}: ${target}`),
  );
  assert.deepEqual(broken, []);
});

test('the README is short, and names existing files for each change', () => {
  assert.ok(readme.split('\n').length <= 150);
  const table = readme.split('\n## Change it\n')[1]!;
  const named = Array.from(table.matchAll(/`((?:[\w-]+\/)+[\w.-]+\.ts)`/g), ([, path]) => path!);
  assert.ok(named.length > 8);
  const missing = named.filter(
    (path) => globSync(`plugins/{,protocol-convert/protocols/*/}${path.replace('PROTOCOL', '*')}`).length === 0,
  );
  assert.deepEqual(missing, []);
});

// -------------------------------------------------------------------------------------------------------- the public API

const surface = readSurface();
const stableNames = new Set([...surface.stable.values()].flat().map(({ name }) => name.replace('media.', '')));

test('the report of the public API equals the sources', () => {
  const isTrue = readFileSync(reportFile, 'utf8') === reportOf(surface);
  assert.ok(
    isTrue,
    `${reportFile} is not what the sources say: run \`npm run api\`, and read what has changed for authors`,
  );
});

test('the stable names are few, and each has a docstring', () => {
  assert.ok(stableNames.size <= 120, `${stableNames.size} names are too many to be kept: which can be unstable?`);
  const silent = [...surface.stable].flatMap(([module, names]) =>
    names.filter(({ documentation }) => documentation === '').map(({ name }) => `${name} of ${module}`),
  );
  assert.deepEqual(silent, []);
});

test('names that the documents offer to authors are stable', () => {
  const wrong: string[] = [];
  for (const page of [...pages, 'core/process/new-plugin.ts', ...globSync('tests/examples/*/*.ts')])
    for (const [, names, module] of readFileSync(page, 'utf8').matchAll(
      /import (?:type )?\{([^}]*)\} from '(model-gateway[^']*)'/g,
    )) {
      const offered = new Set(surface.stable.get(module!)?.map(({ name }) => name.split('.')[0]));
      for (const name of names!.match(/(?!type\b)\b\w+/g)!)
        if (!offered.has(name)) wrong.push(`${page}: ${name} of ${module}`);
    }
  const guide = readFileSync('plugins/README.md', 'utf8').split("\n## A plugin of one's own\n")[1]!;
  // A word without a capital may be a setting or a header.
  const named = [...guide.matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code!.match(/\b\w*[A-Z]\w*/g) ?? []);
  const isMember = (name: string) => new RegExp(`\\b${name}\\??[:(]`).test(reportOf(surface));
  wrong.push(...named.filter((name) => surface.unstable.has(name) && !stableNames.has(name) && !isMember(name)));
  assert.ok(named.length > 20);
  assert.deepEqual(wrong, []);
});
