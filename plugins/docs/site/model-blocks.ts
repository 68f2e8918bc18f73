/** Models and prices as Markdown: tables by kind, and a page for each. Pure. */
import type { ModelKind } from '../../common/domain/models.ts';
import type { PriceSheet } from '../../common/domain/pages/price-sheet.ts';
import { callOf } from './calls.ts';
import type { Facts, ModelFacts } from './facts.ts';
import { addressOf, code, fenced, plain, table } from './markdown.ts';

const kindTitles: readonly (readonly [kind: ModelKind, title: string])[] = [
  ['chat', 'Conversations'],
  ['image', 'Images'],
  ['video', 'Videos'],
  ['embedding', 'Embeddings'],
  ['rerank', 'Reranking'],
  ['decision', 'Decisions'],
  ['speech', 'Speech'],
  ['transcription', 'Transcriptions'],
  ['moderation', 'Moderations'],
  ['realtime', 'Realtime'],
];

type Line = PriceSheet['lines'][number];

const units: Readonly<Record<Line['per'], string>> = {
  million: 'million tokens',
  image: 'image',
  second: 'second',
  request: 'request',
  call: 'call',
  search: 'search',
  characters: 'million characters',
  hour: 'hour of audio',
};

const words = (name: string) => name.replaceAll('_', ' ');
const dollars = ({ yours, range }: Line) => (range === null ? `$${yours}` : `$${range.least} – $${range.most}`);

/** `128k`, `1.05M`. */
export function shortCount(count: number | undefined): string {
  if (count === undefined) return '–';
  if (count >= 1_000_000) return `${Math.round(count / 10_000) / 100}M`;
  return count >= 1_000 ? `${Math.round(count / 100) / 10}k` : String(count);
}

export const modelPath = (id: string): string => `models/${addressOf(id)}`;

const reads = ({ modalities }: ModelFacts) => [...new Set(['text', ...modalities])].join(', ');

const linkOf = ({ id, displayName }: ModelFacts) => `[${plain(displayName)}](/docs/${modelPath(id)})`;
const priceOf = ({ sheet }: ModelFacts, name: string) => {
  const line = sheet?.lines.find((one) => one.class === name);
  return line === undefined ? '–' : dollars(line);
};

export function modelTables({ models, showsPrices }: Facts): string {
  if (models.length === 0) return 'Ask the operator which models there are, or send `GET /v1/models`.';
  const tables = kindTitles.flatMap(([kind, title]) => {
    const those = models.filter((model) => model.kind === kind);
    if (those.length === 0) return [];
    return [`## ${title}`, kind === 'chat' ? chatTable(those, showsPrices) : otherTable(those, showsPrices)];
  });
  return tables.join('\n\n');
}

function chatTable(models: readonly ModelFacts[], showsPrices: boolean): string {
  const prices = ['input', 'cache_read', 'output'];
  return table(
    [
      'model',
      'name in requests',
      'context',
      'longest answer',
      'reads beside text',
      ...(showsPrices ? ['input', 'from cache', 'output'] : []),
    ],
    models.map((model) => [
      linkOf(model) + (model.isAllowed ? '' : ' (not in your plan)'),
      code(model.id),
      shortCount(model.contextTokens),
      shortCount(model.maxOutputTokens),
      model.modalities.filter((one) => one !== 'text').join(', ') || '–',
      ...(showsPrices ? prices.map((name) => priceOf(model, name)) : []),
    ]),
  );
}

function otherTable(models: readonly ModelFacts[], showsPrices: boolean): string {
  return table(
    ['model', 'name in requests', ...(showsPrices ? ['price'] : [])],
    models.map((model) => [
      linkOf(model) + (model.isAllowed ? '' : ' (not in your plan)'),
      code(model.id),
      ...(showsPrices ? [(model.sheet?.lines ?? []).map(shortLine).join('; ')] : []),
    ]),
  );
}

const shortLine = (line: Line) =>
  line.per === line.class
    ? `${dollars(line)} each ${line.per}`
    : `${words(line.class)} ${dollars(line)} per ${units[line.per]}`;

export function modelPage(model: ModelFacts, facts: Facts): string {
  const { sheet, limits = {} } = model;
  const known: [string, string][] = [
    ['name in requests', code(model.id)],
    ['made by', plain(model.ownedBy)],
    ['kind', kindTitles.find(([kind]) => kind === model.kind)![1]],
    ...(model.contextTokens === undefined
      ? []
      : [['context', `${shortCount(model.contextTokens)} tokens`] as [string, string]]),
    ...(model.maxOutputTokens === undefined
      ? []
      : [['longest answer', `${shortCount(model.maxOutputTokens)} tokens`] as [string, string]]),
    ...(model.kind === 'chat' ? [['reads', reads(model)] as [string, string]] : []),
    ...(model.efforts.length === 0 ? [] : [['reasoning efforts', model.efforts.join(', ')] as [string, string]]),
    ...Object.entries(limits).map(([name, value]): [string, string] => [
      limitNames[name] ?? words(name),
      plain(value === true ? 'yes' : Array.isArray(value) ? value.join(', ') : String(value)),
    ]),
  ];
  const call = callOf(model, facts);
  return [
    `# ${plain(model.displayName)}`,
    model.isAllowed ? '' : 'Your plan does not include this model.',
    table(['', ''], known),
    ...(sheet === undefined ? [] : ['## Prices', pricesOf(sheet)]),
    ...(call === undefined
      ? []
      : ['## A first call', fenced(call, 'sh'), 'Instead of `YOUR_KEY` write [your key](/docs/).']),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

const limitNames: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  prompt: 'longest prompt, in characters',
  images: 'images a request',
  references: 'images that are given to it',
  seconds: 'longest video, in seconds',
  size: 'largest size',
  needsImage: 'needs an image',
});

function pricesOf({ lines, tiers }: PriceSheet): string {
  const rows = (list: readonly Line[]) => list.map((line) => [words(line.class), dollars(line), units[line.per]]);
  const main = table(['what', 'USD', 'per'], rows(lines));
  if (tiers.length === 0) return main;
  const standard = new Map(lines.map((line) => [line.class, line.yours]));
  const others = tiers.flatMap(({ name, lines: priced }) =>
    rows(priced.filter((line) => standard.get(line.class) !== line.yours)).map((row) => [plain(name), ...row]),
  );
  return `${main}\n\nOther prices under conditions: long prompts, services, hours, sizes. What is not listed under a condition costs as above.\n\n${table(['when', 'what', 'USD', 'per'], others)}`;
}
