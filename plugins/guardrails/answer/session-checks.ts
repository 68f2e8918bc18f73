/** The checks of the answers of one session: each answer as the events of a call, refused by an error whatever `as` says. */
import type { SessionAnswer, SessionChecks } from '../../common/guardrails/sessions.ts';
import { ofAnswers } from '../coverage.ts';
import type { GuardedCall } from '../guarded-call.ts';
import type { OpenCheck } from '../open-checks.ts';
import type { Applied } from '../policies.ts';
import { AnswerCheck, type Release } from './answer-check.ts';

/** One answer as a call, and what is done at its end. */
type Begin = (checks: readonly OpenCheck[]) => { readonly call: GuardedCall; readonly done: () => void };

/** undefined: none of the checks reads answers. */
export function sessionChecks(
  { checks: all, allowsUncovered }: Applied,
  release: Release,
  begin: Begin,
): SessionChecks | undefined {
  const checks = all
    .filter(({ settings }) => settings.on.some((place) => ofAnswers.includes(place)))
    .map((check): OpenCheck => ({ ...check, settings: { ...check.settings, as: 'error' } }));
  if (checks.length === 0) return undefined;
  const isHeld = checks.some(({ settings }) => settings.do !== 'log' || settings.broken === 'refuse');
  return {
    allowsUncovered,
    holdsSound: release.mode !== 'end' && isHeld,
    begin(): SessionAnswer {
      const { call, done } = begin(checks);
      const check = new AnswerCheck(call, release);
      return { event: (event) => check.event(event), done };
    },
  };
}
