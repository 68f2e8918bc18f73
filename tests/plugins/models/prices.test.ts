/** Prices as operators write them: what is read of them, what is refused, floors, and the commands about them. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import type { CommandResult } from '../../../core/contract/commands.ts';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { loadYaml } from '../../../core/gateway/yaml.ts';
import { type Account, accounts } from '../../../plugins/common/domain/accounts.ts';
import { type Call, call } from '../../../plugins/common/domain/calls.ts';
import { catalog } from '../../../plugins/common/domain/models.ts';
import { cost, formatUsd, money, parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { type PlanOffer, plans } from '../../../plugins/common/domain/plans.ts';
import { multipliers } from '../../../plugins/common/domain/price-ratio.ts';
import { priceFor } from '../../../plugins/common/domain/prices.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import modelsPlugin from '../../../plugins/models/index.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import { fakeExchange, fakeHost, okAnswer, orderEndpoints, setUp } from '../../helpers/fakes.ts';
import { vendors } from './helpers.ts';

const directory = mkdtempSync(join(tmpdir(), 'prices-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** The fakes' clock stands at 2027-01-15T08:00Z, a Friday. */
async function start(models: Record<string, object>, offers: Partial<PlanOffer>[] = []) {
  const host = fakeHost({ endpoints: () => orderEndpoints });
  await setUp(providersPlugin, host, vendors);
  const list = offers.map((offer, index) => ({
    name: `p${index}`,
    limits: {},
    models: undefined,
    multiplier: undefined,
    price: money(0n),
    durationMs: undefined,
    renew: false,
    ...offer,
  }));
  const terms = () => list[0]!;
  if (list.length > 0)
    host.provide(plans, {
      default: 'p0',
      terms,
      offer: (name) => list.find((each) => each.name === name),
      has: () => true,
      list: () => list,
    });
  const sections = Object.entries(models).map(([id, model]) => [id, { owned_by: 'acme', targets: ['acme'], ...model }]);
  const part = await setUp(modelsPlugin, host, Object.fromEntries(sections));
  return { host, part };
}

async function amount(
  price: unknown,
  usage: Usage,
  context = {},
  at = Date.parse('2027-01-15T08:00Z'),
): Promise<string> {
  const { host } = await start({ m: { price } });
  const priced = priceFor(host.get(catalog).find('m')!.prices!, at, usage, context);
  return priced === undefined ? 'none' : formatUsd(cost(usage, priced.price));
}

async function refuses(price: unknown, pattern: RegExp): Promise<void> {
  await assert.rejects(start({ m: { price } }), pattern);
}

async function run(
  part: PluginInstance,
  name: string,
  values: Record<string, string | boolean> = {},
): Promise<CommandResult> {
  return part.commandLine!.commands!.find((command) => command.name === name)!.run(values);
}

test('levels, services, hours and tables are read exactly', async () => {
  const price = {
    input: 1,
    output: '2.000000001',
    above: { '1M': { input: 3 }, '200k': { input: 2, output: 4 } },
    service: { priority: { input: 5, above: { '200k': { input: 6 }, '1M': { input: 7 } } } },
  };
  assert.equal(await amount(price, { input: 200_000, output: 1_000_000 }), '2.200000001');
  assert.equal(await amount(price, { input: 200_001 }), '0.400002');
  assert.equal(await amount(price, { input: 1_000_001, output: 1_000_000 }), '7.000003');
  const exact = { ...price, output: 2, service: { flex: 0.5, ...price.service } };
  assert.equal(await amount(exact, { input: 1_000 }, { services: { tier: 'flex' } }), '0.0005');
  assert.equal(await amount(exact, { input: 300_000 }, { services: { tier: 'priority' } }), '1.80');
  await refuses({ ...exact, output: price.output }, /output × 5\/10 is not exact/);
  const hours = { input: 1, output: 1, hours: { 'mon-fri 01:00-04:00 06:00-10:00': 2, 'sat 22:00-02:00': 3 } };
  const at = (time: string) => amount(hours, { input: 1_000_000 }, {}, Date.parse(time));
  assert.deepEqual(
    await Promise.all(
      ['2027-01-15T08:00Z', '2027-01-15T05:00Z', '2027-01-16T08:00Z', '2027-01-16T23:00Z', '2027-01-17T01:59Z'].map(at),
    ),
    ['2.00', '1.00', '1.00', '3.00', '3.00'],
  );
  const fast = { ...hours, cache_read: 0.5, service: { fast: { input: 5, output: 5 }, slow: 0.5 } };
  const peak = (tier: string) => amount(fast, { input: 1_000_000, cache_read: 1_000_000 }, { services: { tier } });
  assert.deepEqual(
    [await peak('fast'), await peak('slow')],
    ['11.00', '1.50'],
    'the hour multiplies whatever is asked',
  );
  const image = { image: { '1K': 0.02, 'high 4k': 0.3, default: 0.05 } };
  const { host } = await start({ m: { kind: 'image', price: image } });
  const book = host.get(catalog).find('m')!.prices!;
  const drawn = (...media: string[]) => formatUsd(priceFor(book, 0, { image: 1 }, { media })!.price.image!);
  assert.deepEqual([drawn('1k'), drawn('4k', 'high'), drawn('2k')], ['0.02', '0.30', '0.05']);
});

test('versions are in force in their time, and outside of all of them the model is not sold', async () => {
  const price = [
    { input: 5, output: 9, valid_from: '2026-01-01' },
    { input: 4, output: 9, version: 'promo', valid_from: '2026-06-01', valid_until: '2026-07-01T16:00Z' },
  ];
  const at = (time: string) => amount(price, { input: 1_000_000 }, {}, Date.parse(time));
  assert.deepEqual(
    await Promise.all(['2025-12-31', '2026-01-01', '2026-06-01', '2026-07-01T15:59Z', '2026-07-01T16:00Z'].map(at)),
    ['none', '5.00', '4.00', '4.00', '5.00'],
  );
  const { host } = await start({ m: { price } });
  const [, promo] = host.get(catalog).find('m')!.prices!;
  assert.match(promo!.name, /^promo-[0-9a-f]{12}$/);
  const { part } = await start({ m: { price: [{ ...price[0], valid_from: '2028-01-01' }] } });
  const requestedCall: Call = {
    protocol: 'chat',
    model: 'm',
    stream: false,
    billable: true,
    inputTokens: 1,
    maxOutputTokens: 1,
    choices: 1,
  };
  await assert.rejects(
    async () => part.handle!(fakeExchange({ facts: [[call, requestedCall]] }), async () => okAnswer),
    {
      code: 'model_not_priced',
    },
  );
});

test('impossible prices are refused at their place', async () => {
  const base = { input: 1, output: 1 };
  await refuses({ ...base, above: { many: { input: 2 } } }, /many.* is not a number of tokens/);
  await refuses({ ...base, above: { '200k': { inptu: 2 } } }, /inptu/);
  await refuses({ ...base, hours: { 'monday 1-2': 2 } }, /is not a time/);
  await refuses({ ...base, hours: { '25:00-26:00': 2 } }, /is not a time/);
  await refuses({ ...base, hours: { 'mon-fri 01:00-03:00': 2, 'fri 02:59-04:00': 3 } }, /overlap/);
  await refuses({ ...base, hours: { 'sun 22:00-02:00': 2, 'mon 01:00-03:00': 3 } }, /overlap/);
  await start({
    m: { price: { ...base, hours: { 'mon 01:00-03:00': 2, 'mon 03:00-04:00': 3, 'tue 01:00-03:00': 3 } } },
  });
  await refuses({ ...base, above: { '200k': { input: 1 }, '200000': { input: 2 } } }, /are one length/);
  await refuses({ ...base, image: { 'high 1k': 1, '1K HIGH': 2 } }, /are the same words/);
  await refuses({ ...base, valid_from: '2027-02-29' }, /must be a date/);
  await refuses({ ...base, valid_from: '2027-02-30T10:00Z' }, /must be a date/);
  await refuses({ ...base, image: {} }, /at least one entry/);
  await refuses({ ...base, valid_from: 'soon' }, /must be a date/);
  await refuses({ ...base, valid_from: '2027-01-02', valid_until: '2027-01-01' }, /ends before it begins/);
  await refuses([base, base], /begins when another version does/);
  await refuses([base, { input: 1, valid_from: '2027-01-01' }], /must name output/);
  await refuses(
    { ...base, above: { '200k': { input: 2 } }, service: { flex: { input: 1 } } },
    /flex has no prices above 200k/,
  );
});

test('a service without a price is refused before anything is held, and one with a price passes', async () => {
  const { part } = await start({ m: { price: { input: 1, output: 1, service: { flex: 0.5 } } } });
  const requestOf = (tier: string): Call => ({
    ...{ protocol: 'chat', model: 'm', stream: false, billable: true, inputTokens: 1, maxOutputTokens: 1, choices: 1 },
    services: { tier },
    serviceFields: { tier: 'service_tier' },
  });
  const send = async (tier: string) =>
    part.handle!(fakeExchange({ facts: [[call, requestOf(tier)]] }), async () => okAnswer);
  assert.equal(await send('flex'), okAnswer);
  await assert.rejects(send('priority'), {
    ...{ code: 'service_not_priced', status: 400, field: 'service_tier' },
    message:
      'The field "service_tier" asks for the service tier `priority`, which has no price for the model `m`. ' +
      'It is sold in `flex` and the standard tier.',
  });
  const plain = (await start({ m: { price: { input: 1, output: 1 } } })).part;
  const region = { ...requestOf('x'), services: { region: 'us' }, serviceFields: { region: 'inference_geo' } };
  await assert.rejects(
    async () => plain.handle!(fakeExchange({ facts: [[call, region]] }), async () => okAnswer),
    ({ field, message }: GatewayError) =>
      field === 'inference_geo' && /`us`.*`m`\. It is sold in the standard tier alone\.$/.test(message),
  );
  const counting = { ...requestOf('priority'), billable: false };
  assert.equal(await part.handle!(fakeExchange({ facts: [[call, counting]] }), async () => okAnswer), okAnswer);
  const free = (await start({ m: { price: 'free' } })).part;
  assert.equal(
    await free.handle!(fakeExchange({ facts: [[call, requestOf('fast')]] }), async () => okAnswer),
    okAnswer,
  );
});

const faults = (part: PluginInstance) =>
  part.checks!.problems!().map((fault) => `${fault.path.join('.')}: ${'message' in fault ? fault.message : ''}`);

test('a sale below cost is a configuration error, unless it is allowed', async () => {
  const price = { input: 2, output: 4, web_search: 0.01 };
  const cheap = { input: 1.25, output: 2, web_search: 0.005 };
  const saver = [{ multiplier: parseRatio('2') }, { multiplier: parseRatio('0.6') }];
  assert.deepEqual(faults((await start({ m: { price, cost: cheap } }, saver)).part), [
    'm.price: input is sold at 2.00 × 6/10, below its cost of 1.25: raise the price, or write below_cost: true',
  ]);
  const fine = [
    start({ m: { price, cost: cheap } }),
    start({ m: { price, cost: cheap } }, saver.slice(0, 1)),
    start({ m: { price, cost: cheap, below_cost: true } }, saver),
    start({ m: { price, cost: cheap, multiplier: '1.1' } }, saver),
    start({ m: { price, cost: cheap } }, [{}, { multiplier: parseRatio('0.1'), models: new Set(['other']) }]),
  ];
  for (const { part } of await Promise.all(fine)) assert.deepEqual(faults(part), []);
  const byAlias = [{}, { multiplier: parseRatio('0.6'), models: new Set(['best']) }];
  const aliased = await start({ m: { price, cost: cheap, aliases: ['best'] } }, byAlias);
  assert.match(faults(aliased.part)[0]!, /2\.00 × 6\/10/, 'a plan may allow the model by another name');
  const { part, host } = await start({ m: { price, cost: cheap } });
  host.provide(multipliers, { lowest: () => parseRatio('0.5') });
  assert.match(faults(part)[0]!, /2\.00 × 5\/10/);
});

test('the floor applies in every tier, at every target, and at every future time', async () => {
  const price = { input: 2, output: 4 };
  const below = async (model: object) => faults((await start({ m: model })).part);
  assert.match(
    (await below({ price, cost: { ...price, above: { '200k': { input: 3 } } } }))[0]!,
    /input is sold at 2\.00/,
  );
  assert.match((await below({ price, cost: { ...price, hours: { 'sun 03:00-04:00': 2 } } }))[0]!, /cost of 4\.00/);
  const discount = { ...price, service: { flex: 0.5 } };
  assert.match((await below({ price: discount, cost: price }))[0]!, /input \(flex\) is sold at 1\.00/);
  assert.deepEqual(await below({ price: discount, cost: discount }), []);
  assert.match((await below({ price, cost: { ...price, web_search: 0.01 } }))[0]!, /web_search is sold at 0\.00/);
  const dearAt = (provider: string, more = {}) => ['acme', { provider, cost: { input: 2.1, output: 4 }, ...more }];
  const targets = dearAt('acme');
  assert.match((await below({ price, targets, cost: price }))[0]!, /cost of 2\.10 at acme/);
  assert.deepEqual(await below({ price, targets: dearAt('acme', { below_cost: true }), cost: price }), []);
  // A provider without a key costs nothing.
  assert.deepEqual(await below({ price, targets: dearAt('idle'), cost: price }), []);
  const later = [price, { ...price, input: 1, valid_from: '2027-03-01', valid_until: '2027-04-01' }];
  assert.match((await below({ price: later, cost: price }))[0]!, /input is sold at 1\.00/);
  const together = [price, { ...price, input: 1, valid_from: '2027-03-01', valid_until: '2027-04-01' }];
  assert.deepEqual(await below({ price: later, cost: together }), []);
  const past = [price, { ...price, input: 1, valid_from: '2026-03-01', valid_until: '2026-04-01' }];
  assert.deepEqual(await below({ price: past, cost: price }), []);
  const image = { '1k': 0.02, '4k': 0.1, default: 0.5 };
  const dear = { kind: 'image', price: { image }, cost: { image: { ...image, '4k': 0.2 } } };
  assert.match((await below(dear))[0]!, /image \(4k\) is sold at 0\.10, below its cost of 0\.20/);
});

test('prices check lists holes, losses, ends, examples and unknown names', async () => {
  const price = { input: 1, output: 1 };
  const models = {
    fine: { price: { ...price, call: 0 }, cost: price },
    unpriced: {},
    gift: { price: 'free', cost: 'free' },
    drawn: { kind: 'image', price: { image: 1 }, cost: { image: 1 } },
    ending: { price: [{ ...price, valid_until: '2027-02-01' }], cost: price },
    promoted: {
      price: [price, { ...price, input: 0.5, version: 'promo', valid_from: '2027-01-01', valid_until: '2027-01-20' }],
      price_source: 'example',
    },
    loss: { price, cost: { input: 2, output: 1 } },
  };
  const { part } = await start(models, [{ models: new Set(['fine', 'gone']) }, {}]);
  const { json, text, exitCode } = await run(part, 'prices check');
  assert.equal(exitCode, 1);
  const report = json as Record<string, unknown[]>;
  assert.deepEqual(report['unpriced'], ['unpriced']);
  assert.deepEqual(report['gaps'], [{ model: 'ending', from: '2027-02-01T00:00Z' }]);
  assert.deepEqual(report['unknown'], [{ model: 'gone', plan: 'p0' }]);
  assert.deepEqual(report['examples'], ['promoted']);
  assert.deepEqual(report['costless'], ['promoted']);
  assert.deepEqual(report['toolless'], ['ending', 'promoted', 'loss']);
  assert.match(text, /^free tools: .* have ending, promoted, loss$/m);
  assert.match(text, /^loss: loss: input is sold at 1\.00/m);
  assert.match(text, /^ends: promoted promo-\w+ at 2027-01-20T00:00Z, then \w{12}$/m);
  assert.match(text, /^ends: ending \w{12} at 2027-02-01T00:00Z, then not sold$/m);
  assert.doesNotMatch((await run(part, 'prices check', { days: '1' })).text, /^ends/m);
  const quiet = await run((await start({ fine: models.fine })).part, 'prices check');
  assert.deepEqual(
    [quiet.exitCode, quiet.text],
    [0, 'Every model has a price that holds, and none is sold below its cost.'],
  );
});

test('a plan that grants more than its price, and an account with a ratio, are reported where they pay less than the cost', async () => {
  const price = { input: 2, output: 4 };
  const models = {
    tight: { price, cost: { input: 1.6, output: 3.2 } },
    wide: { price, cost: { input: 1, output: 2 } },
    meant: { price, cost: { input: 1.9, output: 4 }, below_cost: true },
    unknown: { price },
  };
  const grant = { amount: parseUsd('25'), every: 'month' as const };
  const dayMs = 86_400_000;
  const offers: Partial<PlanOffer>[] = [
    {},
    // 25 for 21 is a ratio of 0.84, above the cost; for 19 it is below.
    { price: parseUsd('21'), grant },
    { price: parseUsd('19'), grant },
    { price: parseUsd('19'), grant, multiplier: parseRatio('1.1') },
    { price: parseUsd('19'), grant, models: new Set(['wide']) },
    // Thirty days from the first of February on see two months begin.
    { price: parseUsd('21'), grant, durationMs: 30 * dayMs },
    { price: parseUsd('30'), grant: { amount: parseUsd('1'), every: 'day' }, durationMs: 40 * dayMs },
    { grant },
    { price: parseUsd('5'), multiplier: parseRatio('1') },
  ];
  const { part, host } = await start(models, offers);
  const reported = part.checks!.notices!().flatMap(({ level, text }) =>
    text.startsWith('plan ') ? [`${level} ${text}`] : [],
  );
  const below = 'USD for 19.00: spent to the end, that is below the cost of tight';
  assert.deepEqual(reported, [
    `warning plan "p2" brings up to 25.00 ${below}`,
    'warning plan "p5" brings up to 50.00 USD for 21.00: spent to the end, that is below the cost of tight, wide',
    'warning plan "p6" brings up to 40.00 USD for 30.00: spent to the end, that is below the cost of tight',
  ]);
  assert.deepEqual(faults(part), []);
  const account = (name: string, multiplier: string | null): Account => {
    return { id: name, name, plan: 'p0', multiplier, createdAt: new Date(0) };
  };
  const list = [account('one', null), account('two', '0.9'), account('three', '0.7'), account('four', '3')];
  host.provide(accounts, { list: async () => list } as never);
  const { exitCode, text } = await run(part, 'prices check');
  assert.equal(exitCode, 0);
  assert.match(text, /^below cost: plan "p2" brings/m);
  assert.match(text, /^below cost: account "three" pays × 0\.7, which is below the cost of tight$/m);
  assert.doesNotMatch(text, /"(one|two|four)"/);
});

test('prices quote prints formula, tier, amount and margin at a date', async () => {
  const price = [
    {
      input: 2.5,
      output: 15,
      request: 0.001,
      above: { '200k': { input: 5 } },
      service: { flex: 0.5 },
      web_search: 0.01,
    },
    { input: 1, output: 1, valid_from: '2028-01-01', version: 'next' },
  ];
  const { part } = await start({ m: { price, cost: { input: 2, output: 10 }, below_cost: true, aliases: ['best'] } }, [
    { multiplier: parseRatio('2') },
  ]);
  const requested = { model: 'best', input: '300000', output: '1000', webSearch: '2', cacheWrite5m: '0' };
  const { json, text } = await run(part, 'prices quote', requested);
  assert.match(
    text,
    /^\[\(300000 input × 5\.00 \+ 1000 output × 15\.00\) \/ 1M \+ 1 request × 0\.001 \+ 2 web_search × 0\.01\] × 2\/1 = 3\.072 USD/,
  );
  const quote = json as Record<string, unknown>;
  assert.deepEqual([quote['tier'], quote['own_cost'], quote['margin']], ['>200k', '0.61', '2.462']);
  const flex = await run(part, 'prices quote', { model: 'm', input: '1000', service: 'flex', ratio: '1' });
  assert.match(flex.text, /= 0\.00225 USD \(\w{12}, flex, /);
  assert.match((await run(part, 'prices quote', { model: 'm', input: '1', at: '2028-02-01' })).text, /next-\w{12}/);
  await assert.rejects(run(part, 'prices quote', { model: 'm', service: 'priority' }), /no price for the service/);
  await assert.rejects(run(part, 'prices quote', { model: 'none' }), /no model/);
  await assert.rejects(run(part, 'prices quote', { model: 'm', input: '1.5' }), /whole number/);
  await assert.rejects(run(part, 'prices quote', { model: 'm', at: 'soon' }), /--at/);
});

/** Numbers as the public list writes them. */
const publicList = `{
  "sample_spec": {"input_cost_per_token": 0.0, "mode": "one of: chat"},
  "large-2": {"mode": "chat", "source": "https://acme.example/prices", "input_cost_per_token": 1.5e-07,
    "output_cost_per_token": 6e-7, "cache_read_input_token_cost": 7.5E-8, "cache_creation_input_token_cost": 0.0000001875,
    "cache_creation_input_token_cost_above_1hr": 3e-07, "output_cost_per_reasoning_token": 6e-07,
    "input_cost_per_token_above_200k_tokens": 3e-07, "output_cost_per_token_above_200k_tokens": 1.2e-06,
    "input_cost_per_token_flex": 7.5e-08, "input_cost_per_token_above_200k_tokens_flex": 1.5e-07,
    "input_cost_per_token_priority": 3e-07, "input_cost_per_token_batches": 7.5e-08,
    "search_context_cost_per_query": {"search_context_size_low": 0.03, "search_context_size_high": 0.05},
    "file_search_cost_per_1k_calls": 2.5, "provider_specific_entry": {"us": 1.1, "free_images": 3},
    "input_cost_per_character": 1e-7, "max_tokens": 8192},
  "acme/small": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
  "small": {"input_cost_per_token": 9e-06, "output_cost_per_token": 9e-06},
  "ranges": {"tiered_pricing": [{"range": [0, 32000.0], "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
    {"range": [32000, 128000], "input_cost_per_token": 2e-06}]},
  "painter": {"mode": "image_generation", "output_cost_per_image": 0.04},
  "high/1024-x-1536/painter": {"output_cost_per_image": 0.25}, "acme/other/painter": {"output_cost_per_image": 9},
  "filmer": {"output_cost_per_second": 0.05, "output_cost_per_second_720p": 0.07},
  "half": {"input_cost_per_token": 1e-06},
  "fine-grained": {"input_cost_per_token": 1e-16, "output_cost_per_token": 1e-06}
}`;

function listFile(text = publicList): string {
  const file = join(directory, 'list.json');
  writeFileSync(file, text);
  return file;
}

const catalogue = {
  large: { targets: ['acme/large-2'], price: { input: '0.15', output: 1 }, price_source: 'https://acme.example' },
  small: {},
  ranges: {},
  painter: { kind: 'image' },
  filmer: { kind: 'video', price: { second: 0.04 }, price_source: 'imported: before' },
  half: {},
  'fine-grained': {},
  absent: { price: { input: 1, output: 1 } },
};

test('prices import prints the exact changes, and writes nothing by itself', async () => {
  const { part } = await start(catalogue);
  const { text, json } = await run(part, 'prices import', { file: listFile() });
  const shown = (model: string) =>
    new RegExp(`^${model} \\(.*\\n((?:  .*\\n)*)`, 'm').exec(`${text}\n`)?.[1]?.trimEnd().split('\n');
  assert.deepEqual(shown('large'), [
    '  + cache_read 0.075',
    '  + cache_write_5m 0.1875',
    '  + cache_write_1h 0.30',
    '    output 1.00 → 0.60',
    '  + reasoning 0.60',
    '  + web_search 0.05',
    '  + file_search 0.0025',
    '  + >200000 input 0.30',
    '  + >200000 output 1.20',
    '  + flex input 0.075',
    '  + flex >200000 input 0.15',
    '  + us × 11/10',
    '  ! input_cost_per_character cannot be said here',
    '  ! service priority (no prices for long prompts) cannot be said here',
  ]);
  assert.deepEqual(shown('small'), ['  + input 1.00', '  + output 2.00'], "the provider's own entry comes first");
  assert.deepEqual(shown('ranges'), ['  + input 1.00', '  + output 2.00', '  + >32000 input 2.00']);
  assert.deepEqual(shown('painter'), ['  + image high 1024x1536 0.25', '  + image default 0.04']);
  assert.match(text, /^half: the list names no price for output$/m);
  assert.match(text, /^fine-grained: input_cost_per_token is finer than a nano-dollar$/m);
  assert.match(text, /^absent: not in the list$/m);
  assert.match(text, /Nothing was written/);
  assert.deepEqual((json as { written: string[] }).written, []);
});

test('prices import writes a file to include; hand-written prices are replaced only on request', async () => {
  const { part } = await start(catalogue);
  const to = join(directory, 'prices.yaml');
  const written = () =>
    parse(readFileSync(to, 'utf8')).models as Record<string, { price: unknown; price_source: string }>;
  await run(part, 'prices import', { file: listFile(), to });
  assert.deepEqual(Object.keys(written()), ['filmer', 'painter', 'ranges', 'small']);
  await run(part, 'prices import', { file: listFile(), to, write: true });
  assert.deepEqual(Object.keys(written()), ['filmer', 'large', 'painter', 'ranges', 'small']);
  assert.equal(written()['large']!.price_source, 'imported: https://acme.example/prices');
  // What was written is read back as the same prices: nothing is left to change.
  const merged = Object.fromEntries(
    Object.entries(catalogue).map(([id, model]) => [id, { ...model, ...written()[id] }]),
  );
  const again = await run((await start(merged)).part, 'prices import', { file: listFile() });
  assert.match(again.text, /5 prices are the same\. Nothing was written/);
  writeFileSync(to, 'models: {}\n');
  await assert.rejects(run(part, 'prices import', { file: listFile(), to }), /was not written by this command/);
  assert.equal(readFileSync(to, 'utf8'), 'models: {}\n');
});

test('an import keeps prices of earlier ones, also of models that the list no longer has', async () => {
  const to = join(directory, 'kept.yaml');
  const written = () => parse(readFileSync(to, 'utf8')).models as Record<string, object>;
  const { part } = await start(catalogue);
  await run(part, 'prices import', { file: listFile(), to, models: 'small' });
  const { small } = written();
  await run(part, 'prices import', { file: listFile(), to, models: 'ranges' });
  assert.deepEqual([Object.keys(written()), written()['small']], [['ranges', 'small'], small]);
  const { part: later } = await start({ ...catalogue, small: { ...small } });
  const list = listFile('{"filmer": {"output_cost_per_second": 0.06}}');
  const { text } = await run(later, 'prices import', { file: list, to });
  assert.match(text, /^small: not in the list; the price imported before stays$/m);
  assert.deepEqual([Object.keys(written()), written()['small']], [['filmer', 'ranges', 'small'], small]);
  const { small: _gone, ...others } = catalogue;
  await run((await start(others)).part, 'prices import', { file: list, to });
  assert.deepEqual(Object.keys(written()), ['filmer', 'ranges'], 'a model that is no more on offer leaves the file');
});

test('texts of a price list cannot change the structure of the written file, nor read variables', async () => {
  const { part } = await start(catalogue);
  const to = join(directory, 'crafted.yaml');
  for (const source of [
    'a\nmodels: { free: { price: free } }',
    "x'\n\nplugins: []\n#",
    '${VENDOR_KEY}',
    '$${VENDOR_KEY:-${VENDOR_KEY}}',
    '*anchor &anchor !!tag',
    '... \n--- \nplugins: []',
    '\u2028plugins: []\u0000',
    '#'.repeat(100_000),
  ]) {
    const list =
      listFile(`{"small": {"mode": "chat", "source": ${JSON.stringify(source)}, "input_cost_per_token": 1e-07,
      "output_cost_per_token": 2e-07}}`);
    await run(part, 'prices import', { file: list, to, models: 'small', write: true });
    const { values, problems } = loadYaml(to, { VENDOR_KEY: 'a-key-of-a-vendor' });
    assert.deepEqual(problems, []);
    assert.deepEqual(Object.keys(values), ['models']);
    const models = values['models'] as Record<string, { price_source: string }>;
    assert.deepEqual(Object.keys(models), ['small']);
    const { price_source: written } = models['small']!;
    assert.match(written, /^imported: /);
    assert.doesNotMatch(written, /a-key-of-a-vendor|[\u0000\n\u2028]/);
    assert.ok(written.length < 600);
    rmSync(to);
  }
});

test('prices import accepts no zero as a price, and reports by name each entry that it cannot read', async () => {
  const { part } = await start(catalogue);
  const list = `{
    "large-2": {"input_cost_per_token": 0, "output_cost_per_token": 0.0},
    "small": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06, "cache_read_input_token_cost": "1e-07", "rpm": -1},
    "ranges": {"input_cost_per_token": -1e-06, "output_cost_per_token": 1e-06}}`;
  const { text } = await run(part, 'prices import', { file: listFile(list) });
  assert.match(text, /^large: the list has nothing but zeros; write "price: free" if it is free$/m);
  assert.match(text, /^ {2}! cache_read_input_token_cost \(a text, not a number\) cannot be said here$/m);
  assert.match(text, /^ranges: input_cost_per_token: "-1e-06" is not a decimal number/m);
});

test('a ratio has one value in all of its spellings', async () => {
  const price = { input: 1, output: 2, service: { fast: 2 } };
  const { part } = await start({ m: { price } });
  const list = `{"m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "provider_specific_entry": {"fast": 2.0}}}`;
  assert.match((await run(part, 'prices import', { file: listFile(list) })).text, /^1 prices are the same/m);
});

test('a file that is no price list is refused in a sentence', async () => {
  const { part } = await start(catalogue);
  await assert.rejects(run(part, 'prices import', { file: listFile('{') }), /is no price list/);
  await assert.rejects(run(part, 'prices import', { file: listFile('[]') }), /one member for each model/);
  await assert.rejects(run(part, 'prices import', { file: join(directory, 'missing.json') }), /is no price list/);
  await assert.rejects(run(part, 'prices import', { file: listFile(), models: 'missing' }), /no model "missing"/);
});
