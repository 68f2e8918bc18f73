/**
 * The four chat protocols: endpoints, byte-for-byte relays between equal protocols, and translation between different
 * ones.
 */

import { definePlugin, type Endpoint, type PluginInstance, upstreamRequest } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { JsonObject } from '../../core/json/json.ts';
import { caller } from '../common/domain/accounts.ts';
import { upstreamProbes } from '../common/domain/admin/upstreams.ts';
import { call, conversation, dropped, pinned, spendGuard, usageReport } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { catalog, model } from '../common/domain/models.ts';
import { providers, target, translations } from '../common/domain/upstreams.ts';
import { configSchema, type ProtocolConvertConfig } from './config.ts';
import type { Tools } from './dependencies.ts';
import { openProbes } from './probe/probe.ts';
import { protocolNamed, protocols, versionPrefixes } from './protocols/index.ts';
import { relayCall } from './relay/call.ts';
import { opened, type Protocol, type ProtocolEndpoint } from './relay/protocol.ts';
import { readRequestBody } from './request/checks.ts';
import { RequestConversation } from './request/conversation.ts';
import { openState, type ResponseState } from './state/index.ts';
import { mustTranslate, translateCall } from './translate/call.ts';
import { countCall, mustCount } from './translate/count-call.ts';
import { Sealer } from './translate/seal.ts';
import { SignatureCache } from './translate/signature-cache.ts';

export default definePlugin<ProtocolConvertConfig>({
  name: 'protocol-convert',
  config: configSchema,
  services: { optional: [database, errorShape, providers, catalog], provides: [translations, upstreamProbes] },
  requires: [call, opened, target],
  optional: [spendGuard, caller, model],
  sets: [upstreamRequest, usageReport, dropped],
  async setup(host, config) {
    host.provide(translations, { can: (from, to) => [from, to].every((name) => protocolNamed(name) !== undefined) });
    host.provide(upstreamProbes, openProbes(host));
    const exposed = protocols.filter((protocol) => config.expose.some((name) => name === protocol.name));
    const responsesProtocol = exposed.find((protocol) => protocol.name === 'responses');
    const state = openState(host, config.state, responsesProtocol ?? protocolNamed('responses')!);
    const own = new Set<Endpoint>();
    for (const protocol of exposed) {
      for (const endpoint of protocol.endpoints) own.add(endpointOf(protocol, endpoint, state));
    }
    const secret = config.seal_secret === '' ? undefined : config.seal_secret;
    const tools: Tools = {
      clock: host.clock,
      sealer:
        host.mode === 'serve' ? await Sealer.open(host.commonDirectory, secret, host.random) : Sealer.idle(host.random),
      signatureCache: new SignatureCache(host.clock),
      responseRecorder: state.keeper,
      ids: state.ids,
      config,
      shape: () => host.find(errorShape),
    };
    const instance: PluginInstance<ProtocolConvertConfig> = {
      endpoints: [
        ...own,
        ...exposed.flatMap(({ ownEndpoints = [] }) => ownEndpoints),
        ...(responsesProtocol === undefined ? [] : state.endpoints),
      ],
      pathPrefixes: versionPrefixes,
      applies: (endpoint) => own.has(endpoint),
      handle: converting(tools),
      start: () => state.start(),
      stop: () => state.stop(),
      reloads: ['on_loss', 'media', 'translated_values'],
      prepare: (changed) => () => {
        instance.handle = converting({ ...tools, config: changed });
      },
    };
    return instance;
  },
});

function converting(tools: Tools): NonNullable<PluginInstance['handle']> {
  return function protocolConvert(exchange, next) {
    const request = exchange.get(opened);
    const to = exchange.get(target);
    const upstream = protocolNamed(to.protocol);
    if (upstream === undefined) throw new Error(`route chose an unsupported protocol: ${to.protocol}`);
    request.protocol.checkTarget?.(request, to);
    const give = (answer: Answer) => {
      // No retry follows: the parsed body need not stay in memory while the answer streams.
      exchange.set(opened, { protocol: request.protocol, call: request.call, json: noMembers, prepare: spent });
      return answer;
    };
    if (mustCount(request, to)) return countCall(exchange, request, upstream, to, tools, next).then(give);
    if (mustTranslate(request, to)) return translateCall(exchange, request, upstream, to, tools, next).then(give);
    return relayCall(exchange, request, to, tools, next, give);
  };
}

function endpointOf(protocol: Protocol, endpoint: ProtocolEndpoint, state: ResponseState): Endpoint {
  return {
    method: 'POST',
    path: endpoint.path,
    operation: endpoint.operation,
    charges: endpoint.charges ?? true,
    body: 'json',
    setsOnOpen: [call, opened, pinned, conversation],
    optional: [caller],
    open(exchange) {
      const request = endpoint.open(readRequestBody(exchange.request.body), exchange);
      exchange.set(call, request.call);
      exchange.set(opened, request);
      exchange.set(conversation, new RequestConversation(exchange, request));
      return state.ids.check(exchange, request, state.resolver.resolve(exchange, request));
    },
    renderError: (error, exchange) => protocol.renderError(error, exchange),
  };
}

const noMembers: JsonObject = Object.freeze({});

function spent(): never {
  throw new Error('the answer has begun: this request cannot be encoded again');
}
