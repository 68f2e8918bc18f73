/** What holds for calls, as Markdown: addresses, plans, errors, headers, limits. Pure. */
import type { Endpoint } from '../../../core/contract/contract.ts';
import { errorStatus, GatewayError } from '../../../core/contract/errors.ts';
import { formatRatio, formatUsd } from '../../common/domain/money.ts';
import type { PlanOffer } from '../../common/domain/plans.ts';
import { errorCodes } from '../error-codes.ts';
import { headerTexts } from '../headers.ts';
import { curlOf } from './calls.ts';
import { exampleModel, type Facts } from './facts.ts';
import { code, fenced, plain, table } from './markdown.ts';
import { shortCount } from './model-blocks.ts';

// -------------------------------------------------------------------------------------------------------------- addresses

const operationTitles: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  chat: 'Chat completions',
  'generate-content': 'Generate content',
  'count-tokens': 'Counting tokens',
  completions: 'Completions of a text',
  tasks: 'Tasks of images and videos',
  'video-tasks': 'Tasks of videos',
  'upload-pieces': 'Pieces of resumable uploads',
  realtime: 'Realtime and live sessions',
  usage: 'Usage and costs',
  openapi: 'The description of all addresses',
  'realtime-secrets': 'Short-lived keys of realtime sessions',
  compact: 'Compacting conversations',
});

const titleOf = (operation: string) =>
  operationTitles[operation] ?? operation.charAt(0).toUpperCase() + operation.slice(1).replaceAll('-', ' ');

/** Each address that the gateway offers, by what it does; with a call where words are enough. */
export function addressTables(facts: Facts): string {
  const groups = Map.groupBy(facts.endpoints, ({ operation }) => operation);
  return [...groups]
    .map(([operation, endpoints]) => {
      const rows = endpoints.flatMap(rowsOf);
      const example = endpoints
        .flatMap(pathsOf)
        .map((path) => curlFor(path, facts))
        .find((call) => call !== undefined);
      return [
        `## ${titleOf(operation)}`,
        table(['address', 'what it does'], [...new Map(rows.map((row) => [row[0], row])).values()]),
        ...(example === undefined ? [] : [fenced(example, 'sh')]),
      ].join('\n\n');
    })
    .join('\n\n');
}

const pathsOf = ({ path, describes = [] }: Endpoint) => describes.map((described) => described.path ?? path);
const rowsOf = (endpoint: Endpoint): [string, string][] =>
  (endpoint.describes ?? []).map(({ summary, path }) => [
    code(`${endpoint.method} ${path ?? endpoint.path.replace(/(?<!:):(\w+)/g, '{$1}').replaceAll('::', ':')}`),
    plain(summary),
  ]);

const kindsOfPaths = [
  'chat',
  'embedding',
  'rerank',
  'moderation',
  'decision',
  'speech',
  'image',
  'video',
  'realtime',
] as const;

function curlFor(path: string, facts: Facts): string | undefined {
  const kind = kindsOfPaths.find((one) => path.includes(pathWords[one]));
  const model = exampleModel(facts, kind ?? 'chat');
  return model === undefined ? undefined : curlOf(path, model.id, facts);
}

const pathWords = {
  chat: '/chat/',
  embedding: 'embed',
  rerank: 'rerank',
  moderation: 'moderations',
  decision: '/decisions',
  speech: '/speech',
  image: '/images/',
  video: '/videos',
  realtime: '/realtime/',
} as const;

/** Where keys are expected, in words. */
export function carrierList({ carriers }: Facts): string {
  return carriers
    .map((carrier) =>
      carrier === 'bearer'
        ? '- `Authorization: Bearer YOUR_KEY`'
        : carrier === 'query'
          ? '- `?key=YOUR_KEY` in the address'
          : `- ${code(`${carrier}: YOUR_KEY`)}`,
    )
    .join('\n');
}

// ------------------------------------------------------------------------------------------------------------------ plans

const orNone = (count: number | undefined) => (count === undefined ? 'no limit' : shortCount(count));
const windowNames = { '5h': '5 hours', day: 'a day', week: 'a week', month: 'a month' } as const;

export function planTable({ plans, plan, isKnown, showsPrices }: Facts): string {
  if (plans.length === 0) return 'This gateway has no plans: an account pays for what it uses.';
  const hasRatios = plans.some(({ multiplier }) => multiplier !== undefined);
  const head = [
    'plan',
    'costs',
    'brings',
    'requests a minute',
    'requests a day',
    'tokens a minute',
    'calls at once',
    'models',
  ];
  return table(
    [...head, ...(hasRatios && showsPrices ? ['× official price'] : [])],
    plans.map((offer) => [
      `${plain(offer.name)}${offer.name === plan ? ` (${isKnown ? 'yours' : 'where accounts begin'})` : ''}`,
      offer.price === 0n ? 'nothing' : `$${formatUsd(offer.price)}`,
      brings(offer),
      orNone(offer.limits.rpm),
      orNone(offer.limits.rpd),
      orNone(offer.limits.tpm),
      orNone(offer.limits.concurrency),
      offer.models === undefined ? 'all' : [...offer.models].map(code).join(' '),
      ...(hasRatios && showsPrices ? [offer.multiplier === undefined ? '1' : formatRatio(offer.multiplier)] : []),
    ]),
  );
}

function brings({ grant, windows = {} }: PlanOffer): string {
  if (grant === undefined || grant.amount === 0n) return '–';
  const bounds = Object.entries(windows).map(
    ([name, most]) => `$${formatUsd(most!)} in ${windowNames[name as keyof typeof windowNames]}`,
  );
  return `$${formatUsd(grant.amount)} a ${grant.every}${bounds.length === 0 ? '' : `, at most ${bounds.join(', ')}`}`;
}

// ----------------------------------------------------------------------------------------------------------------- errors

const sample = () =>
  new GatewayError('not_found', 'The model `example` does not exist or is not offered here.', {
    field: 'model',
    code: 'model_not_found',
  });
const sampleId = '0199c3a0-7a3e-7000-8000-2f6a0c1b9d11';
const shapedOperations = ['chat', 'responses', 'messages', 'generate-content'];

/** One error in each form that clients of this gateway get. */
export function errorSamples(facts: Facts): string {
  const { errorShape, endpoints } = facts;
  if (errorShape !== undefined) {
    const others = [...new Set(endpoints.flatMap(({ keepsErrorForm, path }) => (keepsErrorForm ? code(path) : [])))];
    const except = others.length === 0 ? '' : ` (but those of ${others.join(', ')}, which have their protocol's)`;
    return `Every error${except} has this body, whatever the protocol:\n\n${json(errorShape.members(sample(), sampleId))}`;
  }
  const request = { headers: {}, path: '', query: new URLSearchParams(), params: {} } as never;
  return shapedOperations
    .flatMap((operation) => {
      const endpoint = endpoints.find((one) => one.operation === operation && one.renderError !== undefined);
      const body = endpoint?.renderError?.(sample(), { id: sampleId, request }).body;
      return typeof body === 'string' ? [`**${titleOf(operation)}**\n\n${json(JSON.parse(body))}`] : [];
    })
    .join('\n\n');
}

const json = (value: unknown) => fenced(JSON.stringify(value, undefined, 2), 'json');

export function errorTable(facts: Facts): string {
  const shape = facts.errorShape;
  if (shape === undefined) return codeTable(() => true);
  const rows = Object.entries(errorCodes).flatMap(([reason, { kinds, meaning, cure }]) =>
    kinds.map((kind) => ({ shown: shownCode(shape, kind, reason), status: errorStatus[kind], meaning, cure })),
  );
  const groups = Map.groupBy(rows, ({ shown, status }) => `${status} ${shown}`);
  return [...groups.values()]
    .toSorted(([left], [right]) => left!.status - right!.status)
    .map((group) =>
      [
        `### ${plain(group[0]!.shown)} (${group[0]!.status})`,
        table(
          ['what it means', 'what to do'],
          group.map(({ meaning, cure }) => [meaning, cure]),
        ),
      ].join('\n\n'),
    )
    .join('\n\n');
}

/** The members that are neither the message nor the request's id. */
function shownCode(shape: NonNullable<Facts['errorShape']>, kind: keyof typeof errorStatus, reason: string): string {
  const members = shape.members(new GatewayError(kind, '{message}', { code: reason }), '{id}');
  const values = Object.values(members).filter((value) => !/\{(?:message|id)\}/.test(value));
  return values.join(' ') || String(errorStatus[kind]);
}

function codeTable(isWanted: (kinds: readonly string[]) => boolean): string {
  const rows = Object.entries(errorCodes)
    .filter(([, { kinds }]) => isWanted(kinds))
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, { kinds, meaning, cure }]) => [
      code(name),
      kinds.map((kind) => errorStatus[kind]).join(', '),
      meaning,
      cure,
    ]);
  return table(['code', 'status', 'what it means', 'what to do'], rows);
}

/** What refuses a call for its size, its frequency or its money. */
export const limitTable = (): string =>
  codeTable((kinds) => kinds.some((kind) => ['rate_limited', 'insufficient_balance', 'too_large'].includes(kind)));

export function headerTable(from: 'client' | 'gateway'): string {
  return table(
    ['header', 'meaning'],
    headerTexts.filter((one) => one.from === from).map(({ name, text }) => [code(name), text]),
  );
}
