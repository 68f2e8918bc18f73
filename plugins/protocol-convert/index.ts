/**
 * Wire protocols, its own four and those that other plugins add: endpoints, byte-for-byte relays between equal protocols, and
 * translation between different ones.
 */

import { isDeepStrictEqual } from 'node:util';
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Fault,
  type Host,
  type PluginInstance,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { JsonObject } from '../../core/json/json.ts';
import { type RequestBody, readBody } from '../../core/json/request-body.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import { caller } from '../common/domain/accounts.ts';
import { upstreamProbes } from '../common/domain/admin/upstreams.ts';
import { call, conversation, dropped, pinned, spendGuard, usageReport } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { catalog, instead, model } from '../common/domain/models.ts';
import { uploadedFiles } from '../common/domain/stored-files.ts';
import { openings, providers, target, translations } from '../common/domain/upstreams.ts';
import { callTransforms } from '../common/wire/call-transforms.ts';
import {
  answerKeeper,
  hasClients,
  type Opened,
  opened,
  type Protocol,
  type ProtocolEndpoint,
  wireProtocols,
} from '../common/wire/protocols.ts';
import { configSchema, type ProtocolConvertConfig } from './config.ts';
import type { Added, Attempt, Tools } from './dependencies.ts';
import { KeptRequests } from './metering/kept-requests.ts';
import { openProbes } from './probe/probe.ts';
import { completions } from './protocols/completions.ts';
import { protocols, versionPrefixes } from './protocols/index.ts';
import { inputItems } from './protocols/responses/decode/input-items.ts';
import { responses } from './protocols/responses/index.ts';
import { relayCall } from './relay/call.ts';
import { relays, type SpokenProtocol, spokenProtocols } from './relay/variants.ts';
import { invalid, singleMembers } from './request/checks.ts';
import { RequestConversation } from './request/conversation.ts';
import { withoutHeldElsewhere } from './request/held-files.ts';
import { KeptFiles } from './request/kept-files.ts';
import { refuseItems, withNothingKept } from './request/nothing-kept.ts';
import { openState, type ResponseState } from './state/index.ts';
import { readsPrompt } from './transforms/chain.ts';
import { changedPrompt, mustTranslate, translateCall } from './translate/call.ts';
import { countCall, mustCount } from './translate/count-call.ts';
import { openSealer, rotatedSeals } from './translate/seal-secrets.ts';
import { SignatureCache } from './translate/signature-cache.ts';

/** Used without `route`, which has the setting. */
const usualOpeningMs = 5_000;

export default definePlugin<ProtocolConvertConfig>({
  name: 'protocol-convert',
  config: configSchema,
  extensionPoints: [wireProtocols, callTransforms],
  extends: [wireProtocols],
  services: {
    optional: [database, errorShape, providers, catalog, uploadedFiles, openings],
    provides: [translations, upstreamProbes, answerKeeper],
  },
  requires: [call, opened, target],
  optional: [spendGuard, caller, model, instead],
  sets: [upstreamRequest, usageReport, dropped],
  async setup(host, config) {
    for (const protocol of [...protocols, completions]) host.extend(wireProtocols, protocol);
    const known = knownProtocols(host);
    host.provide(translations, {
      can(from, to) {
        const [client, upstream] = [known.client(from), known.named(to)];
        if (client === undefined || upstream === undefined) return false;
        return from === to || upstream.servesOwnClients !== true;
      },
      relays: (from, to) => relays(known.named(to), from),
      answersOnce: (to) => known.named(to)?.answersOnce === true,
      paths: () => new Map([...known.all()].map(([name, { path }]) => [name, path])),
      endpoints: () =>
        new Map(exposedTo(known, config.expose).map(({ name, address }) => [name, address.replace('POST ', '')])),
    });
    host.provide(upstreamProbes, openProbes({ ...host, protocolNamed: known.named }));
    const state = openState(host, config.state, responses);
    host.provide(answerKeeper, {
      recorder: (exchange, request) => state.keeper.recordTranslated(exchange, request),
    });
    const keptFiles = new KeptFiles(() => host.find(uploadedFiles), config.media);
    const opening: OpeningTools = {
      ...{ state, keptFiles, keptRequests: new KeptRequests() },
      isPainter: (name) => host.find(catalog)?.find(name)?.kind === 'image',
    };
    const offered = once(() => offeredBy(known, config.expose, opening));
    const added = once(() => addedTo(host, known));
    const tools: OwnTools = {
      clock: host.clock,
      sealer: await openSealer(host, config.seal_secret),
      signatureCache: new SignatureCache(host.clock),
      responseRecorder: state.keeper,
      ids: state.ids,
      config,
      shape: () => host.find(errorShape),
      openingMs: () => host.find(openings)?.heldMs ?? usualOpeningMs,
    };
    const instance: PluginInstance<ProtocolConvertConfig> = {
      get endpoints() {
        return offered().endpoints;
      },
      addresses: { pathPrefixes: versionPrefixes },
      applies: (endpoint) => offered().answered.has(endpoint),
      checks: { problems: () => unknownNames(known, config.expose) },
      handle: converting(tools, added),
      commandLine: { secrets: () => [rotatedSeals(host, config.seal_secret)] },
      lifecycle: {
        start: () => state.start(),
        stop: () => state.stop(),
      },
      reload: {
        members: ['on_loss', 'answer_model', 'media', 'translated_values', 'seal_secret'],
        prepare: preparing({ host, tools, keptFiles }, (changed) => {
          instance.handle = converting({ ...tools, config: changed }, added);
        }),
      },
    };
    return instance;
  },
});

function addedTo(host: Host, known: KnownProtocols): Added {
  const all = host.extensions(callTransforms);
  return {
    protocols: known.all(),
    ofPrompts: all.filter(({ request }) => request !== undefined),
    ofAnswers: all.filter(({ answer }) => answer !== undefined),
  };
}

/** The secrets of seals are looked at in the database when their list is another one: other changes apply while it is away. */
function preparing(
  { host, tools, keptFiles }: { readonly host: Host; readonly tools: OwnTools; readonly keptFiles: KeptFiles },
  use: (changed: ProtocolConvertConfig) => void,
) {
  let running = tools.config.seal_secret;
  return async (changed: ProtocolConvertConfig) => {
    const list = changed.seal_secret;
    const sealer = isDeepStrictEqual(list, running) ? tools.sealer : await openSealer(host, list);
    return () => {
      running = list;
      tools.sealer.become(sealer);
      keptFiles.applyConfig(changed.media);
      use(changed);
    };
  };
}

type OwnTools = Omit<Tools, 'added'>;

function converting(own: OwnTools, added: () => Added): NonNullable<PluginInstance['handle']> {
  let tools: Tools | undefined;
  return function protocolConvert(exchange, next) {
    tools ??= { ...own, added: added() };
    const to = exchange.get(target);
    const requested = exchange.get(opened);
    const request = requested.vendorIds?.held === undefined ? requested : withoutHeldElsewhere(requested, to);
    const upstream = tools.added.protocols.get(to.protocol);
    if (upstream === undefined) throw new Error(`route chose an unsupported protocol: ${to.protocol}`);
    const { variant } = upstream;
    request.protocol.checkTarget?.(request, variant === undefined ? to : { ...to, protocol: variant.variantOf });
    const give = (answer: Answer) => {
      // No retry follows: the parsed body need not stay in memory while the answer streams.
      exchange.set(opened, { protocol: request.protocol, call: request.call, json: noMembers, prepare: spent });
      return answer;
    };
    const attempt: Attempt = { exchange, opened: request, upstream, target: to, tools };
    if (!request.call.billable && mustCount(request, to)) return countCall(attempt, next).then(give);
    if (mustTranslate(request, upstream, to)) return translateCall(attempt, next).then(give);
    const { ofPrompts } = tools.added;
    const isRead = request.call.billable && ofPrompts.length > 0 && readsPrompt(ofPrompts, exchange);
    if (!isRead) return relayCall(attempt, next, give);
    return changedPrompt(attempt).then((transformed) =>
      transformed === undefined
        ? relayCall(attempt, next, give)
        : translateCall({ ...attempt, opened: { ...request, transformed } }, next).then(give),
    );
  };
}

interface KnownProtocols {
  all(): ReadonlyMap<string, SpokenProtocol | Protocol>;
  named(name: string): SpokenProtocol | undefined;
  /** undefined: no clients of the gateway speak it. */
  client(name: string): Protocol | undefined;
}

/** The protocols of all plugins; complete when every plugin is set up. */
function knownProtocols(host: Host): KnownProtocols {
  const all = once(() => spokenProtocols(host.extensions(wireProtocols)));
  return {
    all,
    named: (name) => all().get(name),
    client(name) {
      const protocol = all().get(name);
      return protocol !== undefined && hasClients(protocol) ? protocol : undefined;
    },
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function exposedTo(known: KnownProtocols, expose: readonly string[] | undefined): Protocol[] {
  return [...known.all().values()].filter(hasClients).filter(({ name }) => expose?.includes(name) ?? true);
}

/** Tools for the opening of requests. */
interface OpeningTools {
  readonly state: ResponseState;
  readonly keptFiles: KeptFiles;
  readonly keptRequests: KeptRequests;
  /** Whether a model makes images. */
  readonly isPainter: (model: string) => boolean;
}

/** `answered`: those that this plugin's `handle` is for. */
function offeredBy(known: KnownProtocols, expose: readonly string[] | undefined, tools: OpeningTools) {
  const exposed = exposedTo(known, expose);
  const answered = new Set(
    exposed.flatMap((protocol) => protocol.endpoints.map((endpoint) => endpointOf(protocol, endpoint, tools))),
  );
  const others = exposed.flatMap(({ ownEndpoints = [] }) => ownEndpoints);
  const stored = exposed.some(({ name }) => name === responses.name) ? tools.state.endpoints : [];
  return { answered, endpoints: [...answered, ...others, ...stored] };
}

function unknownNames(known: KnownProtocols, expose: readonly string[] = []): Fault[] {
  const names = [...known.all().keys()].filter((name) => known.client(name) !== undefined);
  return expose.flatMap((name, index) =>
    names.includes(name)
      ? []
      : {
          path: ['expose', index],
          message: `there is no protocol "${name}" for clients${didYouMean(name, names) || `; known are ${names.join(', ')}`}`,
          lacks: { point: wireProtocols, name },
        },
  );
}

function endpointOf(
  protocol: Protocol,
  endpoint: ProtocolEndpoint,
  { state, keptFiles, keptRequests, isPainter }: OpeningTools,
): Endpoint {
  const { imageCall } = protocol;
  const begin = (body: RequestBody, exchange: Exchange, sent: RequestBody) => {
    const requested = endpoint.open(body, exchange);
    const request =
      imageCall !== undefined && isPainter(requested.call.model)
        ? { ...requested, call: imageCall(requested.call, body.json) }
        : requested;
    exchange.set(call, request.call);
    exchange.set(opened, request);
    exchange.set(conversation, new RequestConversation(exchange, request, keptRequests));
    if (request.builtOn === undefined) return state.ids.check(exchange, request, undefined);
    if (exchange.find(caller)?.retention === 'none') refuseItems(request.builtOn);
    if (state.resolver.isInConversation(request)) return inConversation(exchange, request, sent);
    return state.ids.check(exchange, request, state.resolver.resolve(exchange, request));
  };
  /** What the conversation names is checked with the call's own. */
  const inConversation = async (exchange: Exchange, request: Opened, sent: RequestBody) => {
    if (protocol.name !== responses.name || 'messages' in sent.json)
      throw invalid('Conversations are continued by "input" at /v1/responses.', 'conversation');
    const fill = (items: readonly JsonObject[]) => keptFiles.fill(exchange, items);
    await state.resolver.continueConversation(exchange, request, inputItems(sent.json), fill);
    await state.ids.check(exchange, exchange.get(opened), undefined);
  };
  return {
    method: 'POST',
    path: endpoint.path,
    operation: endpoint.operation,
    charges: endpoint.charges ?? true,
    ...(endpoint.describes === undefined ? {} : { describes: endpoint.describes }),
    body: 'json',
    setsOnOpen: [call, opened, pinned, conversation],
    optional: [caller],
    open(exchange) {
      const sent = readBody(exchange.request.body, singleMembers);
      const isKept = exchange.find(caller)?.retention !== 'none';
      const body = isKept ? sent : withNothingKept(sent, protocol, endpoint.operation);
      const inserted = keptFiles.insert(exchange, body);
      return inserted === undefined
        ? begin(body, exchange, body)
        : inserted.then((full) => begin(full, exchange, body));
    },
    renderError: (error, exchange) => protocol.renderError(error, exchange),
  };
}

const noMembers: JsonObject = Object.freeze({});

function spent(): never {
  throw new Error('the answer has begun: this request cannot be encoded again');
}
