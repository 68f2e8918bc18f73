/** Catalogue, prices and the gateway's file, made up. */
import type { ConfigFiles, ConfigNotice } from '../../../../core/contract/config-files.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { PriceQueries } from '../../../../plugins/common/domain/admin/prices.ts';
import { formulaOf } from '../../../../plugins/common/domain/formula.ts';
import type { Catalog, Model } from '../../../../plugins/common/domain/models.ts';
import { cost, money, parseRatio } from '../../../../plugins/common/domain/money.ts';
import { flatBook, PriceVersion } from '../../../../plugins/common/domain/prices.ts';
import { exampleQuote } from '../../../../plugins/models/price-example.ts';
import { type FakeModel, models } from './world.ts';

const bookOf = ({ price, kind }: FakeModel) =>
  kind === 'chat'
    ? [
        new PriceVersion({ name: '2026-01', base: times(price, 2n) }),
        new PriceVersion({ name: '2099-01', from: Date.UTC(2099, 0, 1), base: times(price, 3n) }),
        new PriceVersion({
          name: '2026-09',
          from: Date.UTC(2020, 8, 1),
          base: price,
          tiers: [{ name: '>200k', above: 200_000, times: { numerator: 2n, denominator: 1n } }],
        }),
      ]
    : flatBook(price, '2026-09');

const times = (price: FakeModel['price'], factor: bigint) =>
  Object.fromEntries(Object.entries(price).map(([name, amount]) => [name, amount * factor]));

const ownBook = ({ price }: FakeModel) =>
  flatBook(Object.fromEntries(Object.entries(price).map(([name, amount]) => [name, (amount * 7n) / 10n])), '2026-09');

export function fakeCatalog(): Catalog {
  const rows: Model[] = models.map((model) => ({
    id: model.id,
    ownedBy: model.ownedBy,
    created: 1_780_000_000,
    displayName: model.displayName,
    kind: model.kind,
    targets: [{ provider: model.provider, model: model.upstream, weight: 0 }],
    contextTokens: model.kind === 'chat' ? 400_000 : undefined,
    maxOutputTokens: model.kind === 'chat' ? 64_000 : undefined,
    ...(model.kind === 'image' ? { limits: { prompt: 32_000, images: 10, size: '3840x2160' } } : {}),
    prices: bookOf(model),
    cost: ownBook(model),
  }));
  return { list: () => rows, find: (id) => rows.find((row) => row.id === id) };
}

export function fakePrices(): PriceQueries {
  return {
    list: () => [
      ...models.map((model) => ({
        id: model.id,
        ownedBy: model.ownedBy,
        displayName: model.displayName,
        kind: model.kind,
        contextTokens: model.kind === 'chat' ? 400_000 : undefined,
        maxOutputTokens: model.kind === 'chat' ? 64_000 : undefined,
        ...(model.kind === 'image' ? { limits: { prompt: 32_000, images: 10, size: '3840x2160' } } : {}),
        modalities: model.kind === 'chat' ? ['text', 'image'] : ['text'],
        prices: bookOf(model),
        cost: ownBook(model),
        costIsListPrice: false,
        multiplier: undefined,
        source: 'https://vendor.example/pricing',
        providers: [model.provider],
      })),
      {
        id: 'unpriced-preview',
        ownedBy: 'google',
        displayName: 'Unpriced Preview',
        kind: 'chat' as const,
        contextTokens: 1_000_000,
        maxOutputTokens: undefined,
        modalities: ['text'],
        prices: undefined,
        cost: undefined,
        costIsListPrice: false,
        multiplier: undefined,
        source: undefined,
        providers: ['google'],
      },
    ],
    quote(id, usage, ratio) {
      const model = models.find((row) => row.id === id);
      if (model === undefined) throw new GatewayError('invalid_request', `"${id}" has no price.`, { field: 'model' });
      const amount = cost(usage, model.price, parseRatio(ratio));
      return {
        cost: amount,
        ownCost: money((cost(usage, model.price) * 7n) / 10n),
        formula: formulaOf(usage, model.price, parseRatio(ratio)),
        servedBy: undefined,
      };
    },
    example: (example) => exampleQuote(example, Date.UTC(2026, 10, 20)),
  };
}

const mainText = `# The main gateway.

include: shared.yaml
gateway: main
listen: \${PORT:-8080}

plans:
  default: free
  offers:
    free: { price: 0, grant: { amount: 1, every: month } }
    pro: { price: 20, grant: { amount: 25, every: month } }
`;
const sharedText = `providers:
  openai:
    keys: \${OPENAI_API_KEY:-}
    speaks: { chat: https://api.openai.example/v1 }
  anthropic:
    keys:
      - sk-ant-written-out-in-the-file
      - \${ANTHROPIC_API_KEY:-}
    speaks: { messages: https://api.anthropic.example }
`;

const fakeNotices: readonly ConfigNotice[] = [
  { level: 'info', text: 'providers without a key are left out: deepseek', where: 'shared.yaml:1' },
  { level: 'warning', text: 'files.origin is not set: addresses of files lead to this machine alone.' },
  { level: 'warning', text: 'plans.offers.pro is sold below its grant', where: 'main.yaml:11' },
];

export function fakeConfig(now: () => number): ConfigFiles {
  const files = [
    { name: 'main.yaml', text: mainText, writable: true, readOnly: undefined, includes: ['shared.yaml'] },
    { name: 'shared.yaml', text: sharedText, writable: true, readOnly: undefined, includes: [] },
  ];
  let generation = 1;
  let loadedAt = now();
  const check: ConfigFiles['check'] = async (_file, text) => {
    const line = text.split('\n').findIndex((row) => /^\s*wrong/.test(row));
    return {
      problems: line < 0 ? [] : [{ where: `main.yaml:${line + 1}:1`, message: 'unknown setting "wrong"' }],
      notices: [{ level: 'info', text: 'providers without a key are left out: deepseek' }],
      changes: files.some((file) => file.text === text)
        ? []
        : [
            { section: 'plans', restart: false },
            { section: 'listen', restart: true },
          ],
    };
  };
  return {
    view: async () => ({
      files: files.map((file) => ({ ...file })),
      schema: { type: 'object', properties: { gateway: { type: 'string' }, plans: { type: 'object' } } },
      notices: fakeNotices,
      loadedAt,
      generation,
    }),
    check,
    reapply: () => check('', ''),
    async save(name, text, previous) {
      const index = files.findIndex((file) => file.name === name);
      const file = files[index];
      if (file === undefined) throw new GatewayError('not_found', `There is no file "${name}".`, { field: 'file' });
      if (file.text !== previous)
        throw new GatewayError('conflict', 'The file has changed meanwhile.', { field: 'previous' });
      const reply = await check(name, text);
      if (reply.problems.length > 0)
        throw new GatewayError('invalid_request', reply.problems[0]!.message, { field: reply.problems[0]!.where });
      files[index] = { ...file, text };
      generation++;
      loadedAt = now();
      return reply;
    },
    async reload() {
      generation++;
      loadedAt = now();
      return { problems: [], notices: [], changes: [] };
    },
    running: () => files.map(({ name, text }) => ({ path: name, text })),
    onApplied: () => undefined,
    onDisk: async (paths) => new Map(paths.map((path) => [path, files.find(({ name }) => name === path)?.text])),
    checkAll: ([first]) => check(first!.path, first!.text),
    async saveAll(texts) {
      for (const { path, text } of texts) {
        const index = files.findIndex(({ name }) => name === path);
        files[index] = { ...files[index]!, text };
      }
      return { problems: [], notices: [], changes: [{ section: 'plans', restart: false }] };
    },
  };
}
