/** Requests that others send by themselves: they ask the breaker of their target first, and tell it how they fared. */
import type { Host } from '../../core/contract.ts';
import type { UpstreamVisit } from '../../core/desk.ts';
import type { RouteConfig } from './config.ts';
import type { TargetHealth } from './health.ts';

type Surroundings = Pick<Host, 'clock' | 'random' | 'log'>;

/** undefined: the circuit lets nobody pass now, unless one is `forced`. */
export function visitTo(
  health: TargetHealth,
  { clock, random, log }: Surroundings,
  rules: RouteConfig['breaker'],
  forced: boolean,
): UpstreamVisit | undefined {
  const { breaker, figures, provider, model } = health;
  const now = clock.monotonic();
  const pass = forced ? breaker.force(now) : breaker.admit(now);
  if (pass === undefined) return undefined;
  health.inFlight += 1;
  let isOver = false;
  const end = (learn: () => void) => {
    if (isOver) return;
    isOver = true;
    health.inFlight -= 1;
    learn();
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
