/** The four chat protocols: their endpoints; answers relayed byte for byte where both sides speak the same, translated where not. */
import { type Answer, definePlugin, type Endpoint, type Part, upstreamRequest } from '../../core/contract.ts';
import { probeDesk } from '../../core/desk.ts';
import {
  call,
  caller,
  catalog,
  conversation,
  database,
  dropped,
  errorShape,
  meter,
  model,
  pinned,
  providers,
  target,
  translations,
  usageReport,
} from '../../core/vocabulary.ts';
import { readRequestBody } from './checks.ts';
import { configSchema, type ProtocolConvertConfig } from './config.ts';
import { ToldConversation } from './conversation.ts';
import { countCall, mustCount } from './count-call.ts';
import { KeepsakeMemory } from './keepsake-memory.ts';
import { openProbes } from './probe.ts';
import { opened, type Protocol, type ProtocolEndpoint } from './protocol.ts';
import { protocolNamed, protocols } from './protocols/index.ts';
import { relayCall } from './relay-call.ts';
import { Sealer } from './seal.ts';
import { openState } from './state/index.ts';
import type { Resolver } from './state/resolver.ts';
import type { Tools } from './tools.ts';
import { mustTranslate, translateCall } from './translate-call.ts';

export default definePlugin<ProtocolConvertConfig>({
  name: 'protocol-convert',
  config: configSchema,
  uses: [database, errorShape, providers, catalog],
  provides: [translations, probeDesk],
  reads: [call, opened, target],
  finds: [meter, caller, model],
  writes: [upstreamRequest, usageReport, dropped],
  async setup(host, config) {
    host.provide(translations, { can: (from, to) => [from, to].every((name) => protocolNamed(name) !== undefined) });
    host.provide(probeDesk, openProbes(host));
    const exposed = protocols.filter((protocol) => config.expose.some((name) => name === protocol.name));
    const keeping = exposed.find((protocol) => protocol.name === 'responses');
    const state = openState(host, config.state, keeping ?? protocolNamed('responses')!);
    const own = new Set<Endpoint>();
    for (const protocol of exposed) {
      for (const endpoint of protocol.endpoints) own.add(endpointOf(protocol, endpoint, state.resolver));
    }
    const secret = config.seal_secret === '' ? undefined : config.seal_secret;
    const tools: Tools = {
      clock: host.clock,
      sealer:
        host.mode === 'serve' ? await Sealer.open(host.commonDirectory, secret, host.random) : Sealer.idle(host.random),
      memory: new KeepsakeMemory(host.clock),
      keeper: state.keeper,
      config,
      shape: () => host.find(errorShape),
    };
    const part: Part<ProtocolConvertConfig> = {
      endpoints: [...own, ...(keeping === undefined ? [] : state.endpoints)],
      applies: (endpoint) => own.has(endpoint),
      handle: converting(tools),
      start: () => state.start(),
      stop: () => state.stop(),
      reloads: ['on_loss', 'media'],
      prepare: (changed) => () => {
        part.handle = converting({ ...tools, config: changed });
      },
    };
    return part;
  },
});

function converting(tools: Tools): NonNullable<Part['handle']> {
  return async function protocolConvert(exchange, next) {
    const request = exchange.get(opened);
    const to = exchange.get(target);
    const upstream = protocolNamed(to.protocol);
    if (upstream === undefined) throw new Error(`route chose a protocol that is not spoken: ${to.protocol}`);
    let answer: Answer;
    if (mustCount(request, to)) answer = await countCall(exchange, request, upstream, to, tools, next);
    else if (mustTranslate(request, to)) answer = await translateCall(exchange, request, upstream, to, tools, next);
    else answer = await relayCall(exchange, request, to, tools, next);
    // Nothing is tried again from here on: the parsed body need not be kept for as long as the answer streams.
    exchange.set(opened, { protocol: request.protocol, call: request.call, json: {}, prepare: spent });
    return answer;
  };
}

function endpointOf(protocol: Protocol, endpoint: ProtocolEndpoint, resolver: Resolver): Endpoint {
  return {
    method: 'POST',
    path: endpoint.path,
    operation: endpoint.operation,
    states: [call, opened, pinned, conversation],
    finds: [caller],
    open(exchange) {
      const request = endpoint.open(readRequestBody(exchange.request.body), exchange);
      exchange.set(call, request.call);
      exchange.set(opened, request);
      exchange.set(conversation, new ToldConversation(exchange, request));
      return resolver.resolve(exchange, request);
    },
    renderError: (error, exchange) => protocol.renderError(error, exchange),
  };
}

function spent(): never {
  throw new Error('the answer has begun: this request cannot be worded again');
}
