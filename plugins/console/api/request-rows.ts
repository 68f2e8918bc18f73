/** Requests and their charges, as clients and as operators see them. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { AttemptView } from '../../common/domain/admin/ledger.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import {
  type RequestFilter,
  type RequestSort,
  requestSorts,
  type VendorWords,
} from '../../common/domain/admin/requests.ts';
import { taskStates } from '../../common/domain/admin/tasks.ts';
import { findingVerdicts } from '../../common/guardrails/verdicts.ts';
import type { ChargedRequest } from './charges.ts';
import { dayAndTime, usageCells, wordOf } from './csv/cells.ts';
import type { Scope } from './organizations/scope.ts';
import { idsOfProject, projectQuery } from './projects.ts';
import { type ConsoleServices, nothingHere } from './routing/router.ts';
import { countInput, id, instant, instantInput, pageOf, tagInput, usage, usd, writerOf } from './schemas.ts';
import { boundsOf, bucketMinutesOf, usualZone, zoneQuery } from './time-zone.ts';

const results = ['ok', 'client_error', 'upstream_error', 'left'] as const;
export const operations = ['model', 'provider', 'operation', 'account', 'key'] as const;

const requestFields = {
  id: z.string(),
  receivedAt: instant,
  operation: z.string(),
  protocol: z.string().nullable(),
  keyId: z.string().nullable(),
  keyName: z.string().nullable(),
  project: z.string().nullable().describe('That it was for; null: none, or not known, as of calls before an upgrade.'),
  model: z.string().nullable(),
  streamed: z.boolean(),
  status: z.number(),
  outcome: z.enum(['complete', 'client_left', 'failed']),
  errorKind: z.string().nullable(),
  errorCode: z.string().nullable(),
  attempts: z.number(),
  firstByteMs: z.number().nullable(),
  totalMs: z.number(),
  bytesIn: z.number(),
  bytesOut: z.number(),
  usage: usage.nullable(),
  usageEstimated: z.boolean().nullable(),
  finish: z.string().nullable(),
  servedBy: z
    .string()
    .nullable()
    .describe('What gave the answer without a vendor, such as a cache; null: a vendor did.'),
  tags: z.string().nullable().describe('Of a charged call, as env=prod,team=search.'),
  cost: usd.nullable().describe('null: nothing was charged (yet).'),
  refunded: usd.nullable(),
  guardrails: z.string().nullable().describe('What checks have said, as `pii=masked(2)`; null: there were none.'),
  task: z
    .enum(taskStates)
    .nullable()
    .describe(
      'State of the image or video that it has ordered, where nothing was charged (yet); null: it ordered none.',
    ),
};
export const requestRow = z.object(requestFields).openapi('Request');
export const operatorRequestRow = z
  .object({
    ...requestFields,
    accountId: z.string().nullable(),
    provider: z.string().nullable(),
    upstreamModel: z.string().nullable(),
    upstreamId: z.string().nullable(),
    ownCost: usd.nullable(),
  })
  .openapi('OperatorRequest');

const writeRequest = writerOf(requestRow);
const writeOperatorRequest = writerOf(operatorRequestRow);

/** Its row, with what the charge knows of it. */
const chargedRow = ({ row, key, project, charge, task, guardrails }: ChargedRequest) => ({
  ...row,
  task,
  guardrails,
  keyName: key?.name,
  project,
  provider: row.provider ?? charge?.provider,
  usage: row.usage ?? charge?.usage,
  usageEstimated: row.usageEstimated ?? charge?.estimated,
  servedBy: charge?.servedBy,
  tags: charge?.tags,
  cost: charge?.cost,
  refunded: charge?.refunded,
  ownCost: charge?.ownCost,
});
export const requestJson = (request: ChargedRequest) => writeRequest(chargedRow(request));
export const operatorRequestJson = (request: ChargedRequest) => writeOperatorRequest(chargedRow(request));

/** A row of a CSV file, where the request's id has the name that it has in other files. `zone`: of the reader. */
export const csvRow = <Row extends z.infer<typeof requestRow>>(
  { id: requestId, keyName: key, usage, outcome, ...row }: Row,
  zone?: string,
) => ({
  requestId,
  key,
  ...row,
  outcome: wordOf(outcome),
  ...dayAndTime(row.receivedAt, zone),
  ...usageCells(usage),
});

const storyLine = z.object({
  atMs: z.number(),
  by: z.string(),
  text: z.string().describe('In English.'),
  kind: z.string().describe('The id of the kind of event, such as `route.attempt`.'),
  values: z
    .array(z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .describe('What this kind says, in its order.'),
});
const charge = z.object({
  at: instant,
  cost: usd,
  refunded: usd,
  held: usd,
  usage,
  estimated: z.boolean(),
  ratio: z.string(),
  priceVersion: z.string(),
  tier: z.string().nullable(),
  formula: z.string().describe('A sum that a person can check.'),
});
const attempt = z.object({
  number: z.number(),
  startedAt: instant,
  result: z.enum(['running', 'not_sent', 'refused', 'unknown', 'answered']),
  status: z.number().nullable(),
  durationMs: z.number().nullable(),
});
const operatorAttempt = attempt.extend({
  provider: z.string(),
  model: z.string(),
  credential: z.string(),
  protocol: z.string(),
  error: z.string().nullable(),
  vendorMessage: z.string().nullable().describe('What the vendor itself said, where it failed there.'),
  vendorRequestId: z.string().nullable().describe("The vendor's own id of the request, where it failed there."),
  absorbed: usd,
  borneBy: z.enum(['client', 'operator']).nullable(),
});

/** A request from end to end. Clients see neither the vendor that served it nor the plugins' decisions. */
export const requestStory = z
  .object({
    request: requestRow,
    dropped: z.array(z.string()).describe('What a translation left out, by the names of the request.'),
    charge: charge.nullable(),
    attempts: z.array(attempt),
    bodyKept: z.boolean().describe('Whether the body of the request was recorded and is kept.'),
  })
  .openapi('RequestStory');
export const operatorRequestStory = z
  .object({
    request: operatorRequestRow,
    dropped: z.array(z.string()),
    story: z.array(storyLine),
    charge: charge.extend({ ownCost: usd.nullable() }).nullable(),
    attempts: z.array(operatorAttempt),
  })
  .openapi('OperatorRequestStory');

export const chargeJson = writerOf(charge);

export const attemptJson = writerOf(attempt);
const writeAttempt = writerOf(operatorAttempt);

export function operatorAttemptJson(
  view: AttemptView,
  words: readonly VendorWords[] = [],
): z.infer<typeof operatorAttempt> {
  const said = words.find(({ attempt: number }) => number === view.number);
  return writeAttempt({ ...view, vendorMessage: said?.message, vendorRequestId: said?.requestId });
}

const percentiles = z.object({ p50: z.number().nullable(), p95: z.number().nullable(), p99: z.number().nullable() });
const sumFields = {
  requests: z.number(),
  results: z.object({ ok: z.number(), client_error: z.number(), upstream_error: z.number(), left: z.number() }),
  firstByte: percentiles,
  total: percentiles,
};
export const requestSums = z.object(sumFields).openapi('RequestSums');
export const moneySums = {
  cost: usd.nullable().describe('Charged.'),
  refunded: usd.nullable().describe('Given back of charges in this time, whenever they were made.'),
  ownCost: usd.nullable().describe('Of the calls whose own cost is known; null: it is known of none.'),
  ownCostUnknown: z.number().nullable().describe('Calls of which the own cost is not known.'),
  uncosted: usd.nullable().describe('Charged for these calls, less what was given back of such.'),
  writtenOff: usd
    .nullable()
    .describe('An estimate of what attempts cost that no client pays, at own cost where it is known.'),
  margin: usd
    .nullable()
    .describe('cost - refunded - uncosted - ownCost - writtenOff; null: the own cost of no call is known.'),
  tokens: z.number().nullable(),
};

export const sumsJson = writerOf(requestSums);

/** Filters of a list of requests. */
export const requestsQuery = z.object({
  from: instantInput.optional(),
  until: instantInput.optional(),
  keyId: id.optional(),
  personId: id
    .optional()
    .describe('What was for this person when it was called; of nothing before an upgrade it is known.'),
  ...projectQuery.shape,
  model: id.optional(),
  operation: id.optional(),
  result: z.enum(results).optional(),
  traffic: z
    .enum(['models', 'all'])
    .optional()
    .describe(
      'models, the default: without files, states of tasks, model lists and payments. An operation that is named counts anyway.',
    ),
  ...zoneQuery.shape,
});
export const operatorRequestsQuery = requestsQuery.extend({
  accountId: id.optional(),
  provider: id.optional(),
  cause: id.optional().describe('Failures with this cause, as `/admin/monitor/causes` names it.'),
});

/** For lists alone: sums by tag have addresses of their own. */
export const tagQuery = z.object({
  tag: tagInput.optional().describe('Calls of one account with this tag, as team=search.'),
});

/** For lists alone, as tags are. */
export const findingQuery = z.object({
  check: id.optional().describe('Requests in which this check of guardrails has found something, or was broken.'),
  verdict: z
    .enum(findingVerdicts)
    .optional()
    .describe(
      'Requests of which a check, or the one that is named, has said this. Of the newest 50,000 such findings of the span.',
    ),
});

/** The order of a list. The CSV files are by time alone. */
export const sortQuery = z.object({
  sort: z
    .enum(requestSorts)
    .optional()
    .describe('time by default. Any other order is that of the newest 50,000 requests of the span.'),
  order: z.enum(['asc', 'desc']).optional().describe('desc by default: the newest or largest first.'),
});
export const sortOf = ({ sort = 'time', order = 'desc' }: z.output<typeof sortQuery>): RequestSort => ({
  by: sort,
  order,
});
/** A page of rows; `sortedOf` says how much of the span they were sorted from. */
export const sortedPage = <Row extends z.ZodType>(row: Row) =>
  pageOf(row).extend({
    sortedOf: z
      .number()
      .nullable()
      .describe('Only the newest so many requests of the span were sorted: there may be more. null: all were.'),
  });

/** Operations that ask no model for anything. A client that waits for a task asks for its state every second. */
const withoutModels = [
  'files',
  'models',
  'payments',
  'hello',
  'tasks',
  'video-tasks',
  'uploads',
  'upload-pieces',
  'batches',
  'realtime-secrets',
  'usage',
  'openapi',
] as const;

type FilterQuery = Omit<z.output<typeof operatorRequestsQuery>, 'accountId' | 'provider' | 'project' | 'cause'> &
  Pick<RequestFilter, 'provider' | 'cause' | 'tag'> &
  z.output<typeof findingQuery>;

/** The filter of a query without a project, within a span. */
export function requestFilter(query: FilterQuery, span: Span, accountId: string | undefined): RequestFilter {
  const { keyId, personId, model, provider, operation, result, cause, tag, traffic, check, verdict } = query;
  if (tag !== undefined && accountId === undefined)
    throw new GatewayError('invalid_request', 'Tags are those of one account: say its "accountId" too.', {
      field: 'tag',
    });
  const withoutOperations = operation === undefined && traffic !== 'all' ? withoutModels : undefined;
  const finding = check === undefined && verdict === undefined ? undefined : { check, verdict };
  const named = { accountId, keyId, personId, model, provider, operation, result, cause, tag };
  return { ...span, ...named, finding, withoutOperations };
}

/** The filter of a query, with the ids of its project. */
export async function requestFilterIn(
  services: ConsoleServices,
  query: FilterQuery & { readonly project?: string | undefined },
  span: Span,
  { accountId, keys }: Scope,
): Promise<RequestFilter> {
  const projectIds = await idsOfProject(services, query.project, accountId);
  return { ...requestFilter(query, span, accountId), keys, projectIds };
}

export const bucketQuery = z.object({
  bucketMinutes: countInput(1, 10_080)
    .optional()
    .describe(
      'Minutes of a bucket; by default what makes about 60. Of more than six hours whole quarters of an hour, and from a day on whole days of the time zone.',
    ),
});
const mostBuckets = 1_500;

/** The buckets of a query's span, with their nominal length. */
export function bucketsOf(span: Span, query: z.output<typeof bucketQuery> & z.output<typeof zoneQuery>) {
  const minutes = bucketMinutesOf(span, query.bucketMinutes, mostBuckets);
  const tz = query.tz ?? usualZone;
  return { tz, bucketMs: minutes * 60_000, bounds: boundsOf(span, minutes, tz, mostBuckets) };
}

export const noRequest = () => nothingHere('request');
