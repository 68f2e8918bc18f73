/** Which operations give the texts of their answers to checks, and what `check` says of the others. */
import type { Endpoint } from '../../core/contract/contract.ts';
import type { Notice } from '../../core/contract/remarks.ts';
import { call } from '../common/domain/calls.ts';
import { guardedSessions } from '../common/guardrails/sessions.ts';
import { opened } from '../common/wire/protocols.ts';
import { transcribing } from './answer/transcripts.ts';
import type { GuardrailsConfig, Place } from './config.ts';

/** Places of answers. */
export const ofAnswers: readonly Place[] = ['answer', 'text', 'tool_arguments', 'thinking'];

/** Operations with answers that have no texts of a model. */
export const textless: ReadonlySet<string> = new Set([
  ...['embeddings', 'rerank', 'moderations', 'decisions', 'speech', 'images', 'videos', 'video-tasks', 'count-tokens'],
]);

/** What the start says where a policy checks answers that cannot be read. */
export function coverageNotices(section: GuardrailsConfig, endpoints: readonly Endpoint[]): Notice[] {
  const strict = section.apply.filter(({ policy }) => {
    const { checks = [], uncovered } = section.policies[policy] ?? {};
    return (
      uncovered !== 'allow' &&
      checks.some((name) => section.checks[name]?.on.some((place) => ofAnswers.includes(place)))
    );
  });
  const unread = endpoints.filter(({ operation, setsOnOpen = [] }) => {
    if (textless.has(operation) || transcribing.has(operation) || guardedSessions.has(operation)) return false;
    return setsOnOpen.includes(call) && !setsOnOpen.includes(opened);
  });
  if (strict.length === 0 || unread.length === 0) return [];
  const [policies, operations] = [strict.map(({ policy }) => policy), unread.map(({ operation }) => operation)].map(
    (list) => [...new Set(list)].toSorted().join(', '),
  );
  const text = `Answers of these operations cannot be checked, and their calls are refused where a policy checks answers (${policies}): ${operations}.`;
  return [{ level: 'warning', text, path: ['apply'] }];
}
