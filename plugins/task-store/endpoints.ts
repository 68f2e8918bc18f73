/** The endpoints of tasks: orders and queries, in every client protocol that speaks of them. */
import type { Answer, Endpoint, Exchange, Host } from '../../core/contract.ts';
import { envelope } from '../../core/error-envelope.ts';
import { errorStatus, type GatewayError } from '../../core/errors.ts';
import { call } from '../../core/vocabulary.ts';
import type { TaskConfig } from './config.ts';
import type { Shape } from './contract.ts';
import type { Engine } from './engine.ts';
import type { ListQueries } from './list-queries.ts';
import type { Queries, Scope } from './queries.ts';
import { imageEdit, imageTask, openaiVideos, videoTask } from './shapes/index.ts';
import { callOf, takeOrder } from './submit.ts';
import { submission } from './taking.ts';
import type { Tools } from './tools.ts';

/** Section 8 of the interface. */
const queryTimeoutMs = 60_000;
/** Beyond the longest wait: reading and answering. */
const spareMs = 10_000;

export interface Rooms {
  readonly host: Host;
  readonly config: TaskConfig;
  readonly tools: Tools;
  readonly engine: Engine;
  readonly queries: Queries;
  readonly lists: ListQueries;
  /** Throws invalid_request for an address that would never be called. */
  readonly checkCallback: (address: string) => void;
}

type Handle = (exchange: Exchange) => Promise<Answer>;

const renderError = (error: GatewayError): Answer => ({
  status: error.status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(envelope(error)),
});

/** Section 7 of the interface: a video of a model that is not offered is a bad request, and 404 speaks of tasks alone. */
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
        ]
      : []),
    ...asked(rooms, '/v1/tasks', 'tasks', any),
    ...(videos ? videoEndpoints(rooms) : []),
  ];
}

function videoEndpoints(rooms: Rooms): Endpoint[] {
  const tasks = '/v1/contents/generations/tasks';
  const official: Scope = { kind: 'video', shape: openaiVideos };
  return [
    order(rooms, tasks, 'videos', videoTask),
    ...asked(rooms, tasks, 'video-tasks', { kind: 'video', shape: videoTask }, (exchange) =>
      rooms.lists.numbered(exchange),
    ),
    order(rooms, '/v1/videos', 'videos', openaiVideos),
    ...asked(rooms, '/v1/videos', 'video-tasks', official),
    {
      method: 'GET',
      path: '/v1/videos/:id/content',
      operation: 'video-tasks',
      body: 'none',
      renderError,
      handle: (exchange) => rooms.queries.content(exchange, official),
    },
  ];
}

function order(rooms: Rooms, path: string, operation: string, shape: Shape): Endpoint {
  const { host, config, tools, engine } = rooms;
  const synchronous = config.mode === 'synchronous';
  const taking = { tools, engine, host, shape, synchronous, waitMs: config.wait, mostStreams: config.streams };
  return {
    method: 'POST',
    path,
    operation,
    takes: operation === 'videos' ? 'video' : 'image',
    later: true,
    timeoutMs: config.wait + spareMs,
    states: [call, submission],
    open(exchange: Exchange) {
      const { body, headers } = exchange.request;
      const read = shape.read(body, headers);
      if (read.callbackUrl !== undefined) rooms.checkCallback(read.callbackUrl);
      exchange.set(submission, read);
      exchange.set(call, callOf(read, tools));
    },
    renderError: operation === 'videos' ? renderVideoError : renderError,
    handle: (exchange) => takeOrder(exchange, taking),
  };
}

/** One, all, and the end of one. */
function asked(
  { queries, lists }: Rooms,
  path: string,
  operation: string,
  scope: Scope,
  list: Handle = (exchange) => lists.after(exchange, scope),
): Endpoint[] {
  const common = { operation, body: 'none', timeoutMs: queryTimeoutMs, renderError } as const;
  return [
    { ...common, method: 'GET', path, handle: list },
    { ...common, method: 'GET', path: `${path}/:id`, handle: (exchange) => queries.one(exchange, scope) },
    { ...common, method: 'DELETE', path: `${path}/:id`, handle: (exchange) => queries.cancel(exchange, scope) },
  ];
}
