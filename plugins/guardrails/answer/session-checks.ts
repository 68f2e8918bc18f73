/** The checks of the answers of one session: each answer as the events of a call, refused by an error whatever `as` says. */
import type { Event } from '../../common/canonical/reply.ts';
import type { SessionAnswer, SessionChecks } from '../../common/guardrails/sessions.ts';
import { replaceTexts } from '../../common/wire/replace-texts.ts';
import { ofAnswers } from '../coverage.ts';
import type { GuardedCall } from '../guarded-call.ts';
import type { OpenCheck } from '../open-checks.ts';
import type { Applied } from '../policies.ts';
import { AnswerCheck, type Release } from './answer-check.ts';

/** `isSpoken`: words of sound. */
type SessionEvent = Event & { readonly isSpoken?: true };

/** One answer as a call, and what is done at its end. */
type Begin = (checks: readonly OpenCheck[]) => { readonly call: GuardedCall; readonly done: () => void };

/** A placeholder in any answer: which there are may change while one is written. */
const form = /\[[A-Z_]{1,20}-\d{1,6}\]/g;
const longestName = 30;

/** undefined: none of the checks reads answers, and nothing is put back in them. */
export function sessionChecks(
  { checks: all, allowsUncovered }: Applied,
  release: Release,
  restored: ReadonlyMap<string, string>,
  begin: Begin,
): SessionChecks | undefined {
  const checks = all
    .filter(({ settings }) => settings.on.some((place) => ofAnswers.includes(place)))
    .map((check): OpenCheck => ({ ...check, settings: { ...check.settings, as: 'error' } }));
  const restores = all.some(({ settings }) => settings.restore && settings.do === 'mask');
  if (checks.length === 0 && !restores) return undefined;
  const isHeld = checks.some(({ settings }) => settings.do !== 'log' || settings.broken === 'refuse');
  return {
    allowsUncovered: checks.length === 0 || allowsUncovered,
    holdsSound: release.mode !== 'end' && isHeld,
    restored: (text) => (restored.size > 0 ? text.replace(form, (match) => restored.get(match) ?? match) : text),
    begin(): SessionAnswer {
      const { call, done } = begin(checks);
      const check = new AnswerCheck(call, release);
      const restoring = restores && restored.size > 0 ? restoringBlocks(restored) : undefined;
      if (restoring === undefined) return { event: (event) => check.event(event), done };
      const put = (events: readonly Event[]) => events.flatMap(restoring);
      return {
        event(event) {
          const made = check.event(event);
          return made instanceof Promise ? made.then(put) : put(made);
        },
        done,
      };
    },
  };
}

/** Blocks of sessions come without their starts. Words of sound stay what the model says. */
function restoringBlocks(restored: ReadonlyMap<string, string>): (event: SessionEvent) => readonly Event[] {
  const { event: restore } = replaceTexts({
    pattern: form,
    longest: longestName,
    by: (match) => restored.get(match) ?? match,
  });
  const begun = new Set<number>();
  return (event) => {
    if (event.isSpoken === true || !('block' in event)) return [event];
    if (event.type === 'tool-delta' && !begun.has(event.block)) {
      begun.add(event.block);
      void restore({ ...event, type: 'tool-start', id: '', name: '', namespace: undefined, custom: false });
    }
    if (event.type === 'tool-end') begun.delete(event.block);
    return restore(event) as readonly Event[];
  };
}
