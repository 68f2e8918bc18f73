/** The reference says what the sources say: settings, codes of errors, headers, metrics, extension points and commands. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gatewaySchema } from '../../core/gateway/config.ts';
import { builtInNames, loadPlugin } from '../../core/gateway/registry.ts';
import { usedMost } from '../../core/process/own-commands.ts';
import { errorCodes } from '../../plugins/docs/error-codes.ts';
import { headerTexts } from '../../plugins/docs/headers.ts';
import { filesIn } from '../runner/imports.ts';
import { labelled } from './metric-labels.ts';
import { metrics } from './metrics.ts';
import { folder, plainPages } from './pages.ts';
import { settingsOf } from './settings.ts';
import { sinceOf } from './since.ts';
import { thrownCodes } from './thrown-codes.ts';

const plugins = await Promise.all(builtInNames().map((name) => loadPlugin(name, '')));
const sections = [
  { name: 'gateway', settings: settingsOf('', gatewaySchema) },
  ...plugins.map(({ name, config }) => ({ name, settings: settingsOf(name, config as never) })),
];
const pageOf = (name: string) => readFileSync(`${folder}/${name}.md`, 'utf8');
const run = 'run `npm run docs` and commit what it writes';

test('each setting is on its page with its type, default and description', () => {
  const wrong = sections
    .filter(({ settings }) => settings.length > 0)
    .flatMap(({ name, settings }) => {
      const entries = new Map(
        pageOf(`settings/${name}`)
          .split('\n## ')
          .slice(1)
          .map((entry) => [entry.split('\n')[0]!, entry] as const),
      );
      const missing = settings.filter(({ path, type, default: fallback = '', description, example = '' }) => {
        const entry = entries.get(path) ?? '';
        return ![type, fallback, description, example].every((part) => entry.includes(part));
      });
      const known = new Set(settings.map(({ path }) => path));
      const gone = [...entries.keys()].filter((path) => !known.has(path) && !path.includes(' ('));
      return [...missing.map(({ path }) => path), ...gone];
    });
  assert.deepEqual(wrong, [], run);
});

test('each setting says what it does and when it is changed', () => {
  const short = sections
    .flatMap(({ settings }) => settings)
    .filter(({ type, sameAs }) => !/section$|mapping/.test(type) && sameAs === undefined)
    .filter(({ description }) => (description.match(/[.…](?= |$)/g) ?? []).length < 2)
    .map(({ path }) => path);
  assert.deepEqual(short, []);
});

test('errors, headers, metrics and extension points are those of the sources', () => {
  const wrong = [...plainPages(plugins)].filter(([name, text]) => readFileSync(`${folder}/${name}`, 'utf8') !== text);
  assert.deepEqual(
    wrong.map(([name]) => name),
    [],
    run,
  );
});

const sources = filesIn('core', 'plugins')
  .filter((file) => file.endsWith('.ts') && !file.startsWith('plugins/docs/'))
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n');

test('each code that clients get is explained, with the kinds that the sources throw it with', () => {
  const wrong = thrownCodes()
    .filter(({ code, kind }) => {
      const known = errorCodes[code];
      return known === undefined || (kind !== undefined && !known.kinds.includes(kind as never));
    })
    .map(({ code, kind, file }) => `${code} (${kind}) of ${file}`);
  assert.deepEqual(wrong, [], 'plugins/docs/error-codes.ts');
  const unused = Object.keys(errorCodes).filter((code) => !new RegExp(`\\b${code}\\b`).test(sources));
  assert.deepEqual(unused, []);
});

test('each header of the gateway is explained, and no other', () => {
  const own = new Set(Array.from(sources.matchAll(/['"`](x-gateway-[a-z-]+)['"`]/g), ([, name]) => name!));
  own.delete('x-gateway-request-id'); // Which the simulated vendor shows.
  const known = headerTexts.map(({ name }) => name);
  assert.deepEqual(
    [...own].filter((name) => !known.includes(name)),
    [],
  );
  const said = (name: string) => sources.includes(name.replace(/-(?:limit|remaining|reset)-requests$/, '-'));
  assert.deepEqual(
    known.filter((name) => !said(name)),
    [],
  );
});

test('labels are said of metrics that exist', () => {
  const names = metrics().map(({ name }) => name);
  assert.deepEqual(
    labelled.filter((name) => !names.includes(name)),
    [],
  );
});

test('settings of 0.1.0 say so, and later ones that they are newer', () => {
  assert.match(pageOf('settings/gateway'), /^## server\.body_limit\n\n.* · since 0\.1\.0$/m);
  const versions = sections.flatMap(({ settings }) => settings.map(({ path }) => sinceOf(path)));
  assert.ok(versions.filter((version) => version === '0.1.0').length > 500);
  assert.equal(sinceOf('a.setting.of.tomorrow'), 'Unreleased');
});

test('the commands that --help shows exist', () => {
  const names = Array.from(pageOf('commands').matchAll(/^## (.*)$/gm), ([, heading]) => heading!);
  const missing = usedMost.filter(([command]) => {
    const words = command.split(' ').filter((word) => /^[a-z-]+$/.test(word) && !word.startsWith('--'));
    return !names.some((name) => name.startsWith(words.join(' ')));
  });
  assert.deepEqual(missing, []);
});
