/** `generateContent` for image models of vendors that do not speak it: an order for which the client waits. */
import { defineContextKey, type Endpoint, type Exchange, type Host } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { call } from '../../common/domain/calls.ts';
import { protocolsOf } from '../../common/domain/models.ts';
import { translations } from '../../common/domain/upstreams.ts';
import { renderError } from '../../common/kit/dialects.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import type { TaskConfig } from '../config.ts';
import type { Shape } from '../contract.ts';
import type { Tools } from '../engine/dependencies.ts';
import type { Engine } from '../engine/engine.ts';
import { contentAnswer, specAnswer } from './shapes/content-answer.ts';
import { readContentRequest } from './shapes/content-request.ts';
import { imageTask } from './shapes/index.ts';
import { callOf, takeOrder } from './submit.ts';
import { submission } from './waiting.ts';

const protocol = 'gemini';
/** Orders, and what is made for them, are rows and files. */
export const keptOrders = 'orders of images and videos';
const paths = ['/v1beta/models/*', '/v1/models/*', '/v1alpha/models/*'];
/** Added to the longest wait, for reading and answering. */
const spareMs = 10_000;

/** The services that take orders. */
export interface OrderRooms {
  readonly host: Host;
  readonly config: TaskConfig;
  readonly tools: Tools;
  readonly engine: Engine;
}

const isStreamed = defineContextKey<boolean>('streamed content');
const isSpecForm = defineContextKey<boolean>('content in the form of the specification');

export function contentEndpoints({ host, config, tools, engine }: OrderRooms): Endpoint[] {
  const shape: Shape = { ...imageTask, waited: contentAnswer.render, submitted: contentAnswer.submitted };
  const limits = { waitMs: config.wait, mostStreams: config.streams };
  const context = { tools, engine, host, shape, synchronous: true, tasksPath: '/v1/tasks', ...limits };
  /** The protocol's own endpoint serves other models, and vendors that have the protocol. */
  const takes: Endpoint['takes'] = (params) => {
    const entry = tools.catalog.find(modelIn(params)?.model ?? '');
    if (entry?.kind !== 'image') return false;
    const known = host.find(translations);
    const speaks = (name: string) => name === protocol || known?.relays?.(protocol, name) === true;
    return !entry.targets.some((target) => protocolsOf(target, tools.providers.find(target.provider)).some(speaks));
  };
  return paths.map((path) => ({
    method: 'POST',
    path,
    takes,
    operation: 'images',
    keeps: keptOrders,
    modelKind: 'image',
    body: 'json',
    charges: true,
    deferred: true,
    timeoutMs: config.wait + spareMs,
    setsOnOpen: [call, submission, isStreamed, isSpecForm],
    open(exchange) {
      const { body, params } = exchange.request;
      const { model, streams } = modelIn(params)!;
      const read = readContentRequest(body, model);
      exchange.set(submission, read);
      exchange.set(isStreamed, streams || read.stream);
      exchange.set(isSpecForm, read.isSpecForm);
      exchange.set(call, callOf(read, tools));
    },
    renderError: (error, exchange) => renderError(error, 'gemini', exchange.id),
    handle: async (exchange) => inForm(exchange, await takeOrder(exchange, context)),
  }));
}

/** undefined: another method. */
function modelIn(
  params: Exchange['request']['params'],
): { readonly model: string; readonly streams: boolean } | undefined {
  const match = /^(.+):(generateContent|streamGenerateContent)$/.exec(params['*'] ?? '');
  return match === null ? undefined : { model: match[1]!, streams: match[2] === 'streamGenerateContent' };
}

/** A stream has one frame: an event, or a line. */
function inForm(exchange: Exchange, answer: Answer): Answer {
  const created = Math.floor(exchange.receivedAt / 1000);
  const text = exchange.get(isSpecForm) ? specAnswer(String(answer.body), created) : String(answer.body);
  if (!exchange.get(isStreamed)) return { ...answer, body: text };
  const isSse = exchange.request.query.get('alt') === 'sse';
  const headers = { ...answer.headers, 'content-type': isSse ? 'text/event-stream' : 'application/x-ndjson' };
  return { ...answer, headers, body: isSse ? formatFrame(text) : `${text}\n` };
}
