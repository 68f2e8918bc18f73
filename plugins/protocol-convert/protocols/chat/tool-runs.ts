/** Counts runs of the vendor's own tools that a chat answer shows by itself: those that it names as executed, and built-in functions. Pure. */
import { type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Counts } from '../../../common/wire/counts.ts';

/** Runs that were counted already: a stream may show a run twice, before and after its result. */
export type ToolRuns = Set<string>;

/** Counters by names of executed tools; any other one is another call. */
const executed: readonly (readonly [pattern: RegExp, counter: string])[] = [
  [/search/, 'executedSearches'],
  [/^(visit|open|browser|fetch)/, 'executedFetches'],
  [/python|code/, 'executedCode'],
];

/** The message of a choice, or the part of it that a frame brings. */
export function saidIn(choice: unknown): JsonObject {
  const { delta, message } = objectOf(choice) ?? {};
  return objectOf(delta) ?? objectOf(message) ?? {};
}

export function takeRuns(counts: Counts, said: JsonObject, seen: ToolRuns | undefined): ToolRuns | undefined {
  if (said['executed_tools'] === undefined && said['tool_calls'] === undefined) return seen;
  let known = seen;
  const add = (id: string, counter: string) => {
    known ??= new Set();
    if (known.has(id)) return;
    known.add(id);
    counts.take(counter, (counts.get(counter) ?? 0) + 1);
  };
  listOf(said['executed_tools']).forEach((run, at) => {
    const { index = at, type, name } = objectOf(run) ?? {};
    const called = textOf(type) ?? textOf(name) ?? '';
    add(`run ${String(index)}`, executed.find(([pattern]) => pattern.test(called))?.[1] ?? 'executedOthers');
  });
  listOf(said['tool_calls']).forEach((one, at) => {
    const { id, index = at, function: called } = objectOf(one) ?? {};
    // The vendor makes it; the client only returns the arguments.
    if (objectOf(called)?.['name'] === '$web_search') add(`call ${textOf(id) ?? String(index)}`, 'builtinSearches');
  });
  return known;
}
