/** Background calls: requests that other plugins send themselves, admitted by the target's breaker and reported to it. */
import type { Host } from '../../core/contract/contract.ts';
import type { BackgroundCall } from '../common/domain/admin/upstreams.ts';
import type { RouteConfig } from './config.ts';
import type { TargetHealth } from './health.ts';

type HostTools = Pick<Host, 'clock' | 'random' | 'log'>;

/** undefined: the circuit is open and the call is not `forced`. */
export function beginBackgroundCall(
  health: TargetHealth,
  { clock, random, log }: HostTools,
  rules: RouteConfig['breaker'],
  forced: boolean,
): BackgroundCall | undefined {
  const { breaker, figures, provider, model } = health;
  const now = clock.monotonic();
  const pass = forced ? breaker.force(now) : breaker.admit(now);
  if (pass === undefined) return undefined;
  health.inFlight += 1;
  let isOver = false;
  const end = (report: () => void) => {
    if (isOver) return;
    isOver = true;
    health.inFlight -= 1;
    report();
  };
  return {
    answered: (tookMs) =>
      end(() => {
        figures.noteAnswer(tookMs, false);
        breaker.answered(pass, clock.monotonic());
        if (pass !== 'plain') log.info({ provider, model }, 'a target answers again');
        breaker.succeeded();
      }),
    failed: () =>
      end(() => {
        const { failures, share, open: openMs, max_open: maxOpenMs } = rules;
        const at = clock.monotonic();
        figures.noteFailure();
        if (breaker.failed(pass, at, { failures, share, openMs, maxOpenMs }, random))
          log.warn({ provider, model, forMs: breaker.opensForMs(at) }, 'a target fails and is passed over');
      }),
    dropped: () => end(() => breaker.dropped(pass)),
  };
}
