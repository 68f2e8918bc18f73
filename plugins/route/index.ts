/** Chooses where a request goes, and tries the next place while nothing can have been executed or sent to the client. */
import { definePlugin } from '../../core/contract.ts';
import { upstreamHealth } from '../../core/desk.ts';
import { reloadable } from '../../core/reloadable.ts';
import {
  attempts,
  call,
  caller,
  conversation,
  meter,
  model,
  pinned,
  providers,
  target,
  translations,
} from '../../core/vocabulary.ts';
import { Sessions } from './affinity.ts';
import { type RouteConfig, routeSchema } from './config.ts';
import { HealthBook } from './health.ts';
import { HedgeBudget } from './hedge.ts';
import { Journey, type Tools } from './journey.ts';
import { visitTo } from './visits.ts';

export default definePlugin<RouteConfig>({
  name: 'route',
  config: routeSchema,
  needs: [providers],
  uses: [translations],
  provides: [upstreamHealth],
  reads: [call, model],
  finds: [pinned, conversation, caller, meter],
  writes: [target, attempts],
  repeats: true,
  setup(host, config) {
    const book = new HealthBook(host.clock);
    let rules = config.breaker;
    host.provide(upstreamHealth, {
      targets: (provider) => book.targets(provider),
      reset: (provider) => book.reset(provider),
      visit: (provider, name, forced) =>
        visitTo(book.of({ provider, model: name, weight: 0 }), host, rules, forced && rules.all_open !== 'refuse'),
    });
    // What was learned of targets and sessions stays when the settings change.
    const tools: Tools = {
      host,
      providers: host.need(providers),
      book,
      sessions: new Sessions(host.clock),
      hedges: new HedgeBudget(host.clock),
    };
    const part = reloadable<RouteConfig>({}, config, (settings) => ({
      applies: (endpoint) => endpoint.later !== true && (endpoint.states?.includes(call) ?? false),
      handle: (exchange, next) => new Journey(exchange, tools, settings).go(next),
    }));
    const { prepare } = part;
    part.prepare = async (changed) => {
      const takeUp = await prepare!(changed);
      return () => {
        takeUp();
        rules = changed.breaker;
      };
    };
    return part;
  },
});
