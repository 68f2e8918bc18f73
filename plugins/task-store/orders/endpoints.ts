/** The endpoints of orders and tasks in every client protocol that has them. */

import type { Endpoint, Exchange } from '../../../core/contract/contract.ts';
import { errorStatus, GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { call } from '../../common/domain/calls.ts';
import { envelope } from '../../common/kit/error-envelope.ts';
import type { Shape } from '../contract.ts';
import { contentEndpoints, keptOrders, type OrderRooms } from './content-endpoints.ts';
import type { ListQueries } from './list-queries.ts';
import type { Queries, Scope } from './queries.ts';
import { imageEdit, imageTask, openaiVideos, videoTask } from './shapes/index.ts';
import { callOf, takeOrder } from './submit.ts';
import { submission } from './waiting.ts';

/** Section 8 of the interface. */
const queryTimeoutMs = 60_000;
/** Added to the longest wait, for reading and answering. */
const spareMs = 10_000;

export interface Rooms extends OrderRooms {
  readonly queries: Queries;
  readonly lists: ListQueries;
  /** Throws invalid_request for an address that the guard would always refuse. */
  readonly checkCallback: (address: string) => void;
}

type Handle = (exchange: Exchange) => Promise<Answer>;

const renderError = (error: GatewayError): Answer => ({
  status: error.status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(envelope(error)),
});

/** Section 7 of the interface: a video order for a model that is not offered is a bad request; 404 is only about tasks. */
function renderVideoError(error: GatewayError): Answer {
  const isModel = error.kind === 'not_found' && error.field === 'model';
  return { ...renderError(error), status: isModel ? errorStatus.invalid_request : error.status };
}

export function endpointsOf(rooms: Rooms): Endpoint[] {
  const { expose } = rooms.config;
  const images = expose.includes('images');
  const videos = expose.includes('videos');
  const any: Scope = { kind: images && videos ? undefined : images ? 'image' : 'video' };
  return [
    ...(images
      ? [
          order(rooms, '/v1/images/generations', 'images', imageTask),
          order(rooms, '/v1/images/edits', 'images', imageEdit),
          ...contentEndpoints(rooms),
        ]
      : []),
    ...taskEndpoints(rooms, '/v1/tasks', 'tasks', any),
    ...(videos ? videoEndpoints(rooms) : []),
  ];
}

function videoEndpoints(rooms: Rooms): Endpoint[] {
  const tasks = '/v1/contents/generations/tasks';
  const official: Scope = { kind: 'video', shape: openaiVideos };
  return [
    order(rooms, tasks, 'videos', videoTask),
    ...taskEndpoints(rooms, tasks, 'video-tasks', { kind: 'video', shape: videoTask }, (exchange) =>
      rooms.lists.numbered(exchange),
    ),
    order(rooms, '/v1/videos', 'videos', openaiVideos),
    ...taskEndpoints(rooms, '/v1/videos', 'video-tasks', official),
    ...unsupportedOperations,
    {
      method: 'GET',
      path: '/v1/videos/:id/content',
      operation: 'video-tasks',
      describes: [{ summary: 'Sends a video.', answers: ['video/mp4'] }],
      body: 'none',
      renderError,
      handle: (exchange) => rooms.queries.content(exchange, official),
    },
  ];
}

/** Operations of the official API that no model here supports. */
const unsupportedOperations: readonly Endpoint[] = (
  [
    ['POST', '/v1/videos/:id/remix', 'Videos are not remixed here'],
    ['POST', '/v1/videos/edits', 'Videos are not edited here'],
    ['POST', '/v1/videos/extensions', 'Videos are not extended here'],
    ['POST', '/v1/videos/characters', 'Characters are not kept here'],
    ['GET', '/v1/videos/characters/:id', 'Characters are not kept here'],
  ] as const
).map(([method, path, sentence]) => ({
  method,
  path,
  operation: 'video-tasks',
  body: 'none',
  timeoutMs: queryTimeoutMs,
  renderError,
  handle() {
    throw new GatewayError('not_found', `${sentence}; order a new one at POST /v1/videos.`, { code: 'unsupported' });
  },
}));

/** Forms are taken where official clients send files. */
const formsAt = (path: string) => (/\/(?:videos|edits)$/.test(path) ? ['multipart/form-data'] : []);

function order(rooms: Rooms, path: string, operation: string, shape: Shape): Endpoint {
  const { host, config, tools, engine } = rooms;
  const synchronous = config.mode === 'synchronous';
  const context = {
    ...{ tools, engine, host, shape, synchronous, waitMs: config.wait, mostStreams: config.streams },
    // Image orders and image tasks have different addresses.
    tasksPath: operation === 'videos' ? path : '/v1/tasks',
  };
  return {
    method: 'POST',
    path,
    operation,
    describes: [
      {
        summary: operation === 'videos' ? 'Orders a video.' : 'Orders images.',
        body: { types: ['application/json', ...formsAt(path)], required: ['model'] },
        answers: operation === 'videos' ? ['application/json'] : ['application/json', 'text/event-stream'],
      },
    ],
    keeps: keptOrders,
    modelKind: operation === 'videos' ? 'video' : 'image',
    body: 'json',
    charges: true,
    deferred: true,
    timeoutMs: config.wait + spareMs,
    setsOnOpen: [call, submission],
    open(exchange: Exchange) {
      const { body, headers } = exchange.request;
      const read = shape.read(body, headers);
      if (read.callbackUrl !== undefined) rooms.checkCallback(read.callbackUrl);
      exchange.set(submission, read);
      exchange.set(call, callOf(read, tools));
    },
    renderError: operation === 'videos' ? renderVideoError : renderError,
    handle: (exchange) => takeOrder(exchange, context),
  };
}

/** Endpoints to get one task, list all, and delete one. */
function taskEndpoints(
  { queries, lists }: Rooms,
  path: string,
  operation: string,
  scope: Scope,
  list: Handle = (exchange) => lists.after(exchange, scope),
): Endpoint[] {
  const common = { operation, body: 'none', timeoutMs: queryTimeoutMs, renderError } as const;
  return [
    { ...common, method: 'GET', path, describes: [{ summary: 'Lists the tasks.' }], handle: list },
    {
      ...common,
      method: 'GET',
      path: `${path}/:id`,
      describes: [{ summary: 'Returns the state and the results of a task.' }],
      handle: (exchange) => queries.one(exchange, scope),
    },
    {
      ...common,
      method: 'DELETE',
      path: `${path}/:id`,
      describes: [{ summary: 'Cancels or deletes a task.' }],
      handle: (exchange) => queries.delete(exchange, scope),
    },
  ];
}
