/** Routing: chooses a target, and tries the next one while nothing can have been executed or sent to the client. */
import { definePlugin, type PluginInstance } from '../../core/contract/contract.ts';
import { caller } from '../common/domain/accounts.ts';
import { upstreamHealth } from '../common/domain/admin/upstreams.ts';
import { attempts, call, conversation, pinned, spendGuard } from '../common/domain/calls.ts';
import { instead, model } from '../common/domain/models.ts';
import { plan } from '../common/domain/plans.ts';
import { openings, providers, target } from '../common/domain/upstreams.ts';
import { Sessions } from './affinity.ts';
import { beginBackgroundCall } from './background-calls.ts';
import { endpointServices } from './candidates.ts';
import { type RouteConfig, routeSchema } from './config.ts';
import { HealthRegistry } from './health.ts';
import { HedgeBudget } from './hedging/hedge.ts';
import { RoutingSession } from './routing-session.ts';
import type { Tools } from './tools.ts';

export default definePlugin<RouteConfig>({
  name: 'route',
  config: routeSchema,
  services: { requires: [providers], optional: [...endpointServices], provides: [upstreamHealth, openings] },
  requires: [call, model],
  optional: [pinned, conversation, caller, plan, spendGuard, instead],
  sets: [target, attempts],
  retries: true,
  setup(host, config) {
    const registry = new HealthRegistry(host.clock);
    let current = config;
    host.provide(upstreamHealth, {
      targets: (provider) => registry.targets(provider),
      reset: (provider) => registry.reset(provider),
      beginBackgroundCall: (provider, name, forced) =>
        beginBackgroundCall(
          registry.of({ provider, model: name, weight: 0 }),
          host,
          current.breaker,
          forced && current.breaker.all_open !== 'refuse',
        ),
    });
    host.provide(openings, {
      get heldMs() {
        return current.opening;
      },
    });
    // Health and sessions are kept when the settings change.
    const tools: Tools = {
      host,
      providers: host.get(providers),
      registry,
      sessions: new Sessions(host.clock),
      hedges: new HedgeBudget(host.clock),
    };
    const routing =
      (settings: RouteConfig): NonNullable<PluginInstance['handle']> =>
      (exchange, next) =>
        new RoutingSession(exchange, tools, settings).run(next);
    const instance: PluginInstance<RouteConfig> = {
      // An endpoint that sets the entry itself has its own way to answer.
      applies: ({ deferred, setsOnOpen = [] }) =>
        deferred !== true && setsOnOpen.includes(call) && !setsOnOpen.includes(model),
      handle: routing(config),
      reload: {
        prepare: (changed) => () => {
          current = changed;
          instance.handle = routing(changed);
        },
      },
    };
    return instance;
  },
});
