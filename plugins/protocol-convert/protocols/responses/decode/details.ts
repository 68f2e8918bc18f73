/** Decodes what answers and histories have in common: searches, citations, token log probabilities. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { Citation, SearchPart, TokenLogprob } from '../../../../common/canonical/prompt.ts';
import { citedSource } from '../../../encoding/citations.ts';
import { fenced } from '../../../encoding/fenced.ts';

/** A `web_search_call` item, of an answer or a client's history. */
export function searchOf(item: JsonObject): SearchPart {
  const action = objectOf(item['action']) ?? {};
  const queries = listOf(action['queries']).filter((query) => typeof query === 'string');
  const query = textOf(action['query']);
  const opened = textOf(action['url']);
  const sources = listOf(action['sources']).flatMap((source) => textOf(objectOf(source)?.['url']) ?? []);
  return {
    kind: 'search',
    id: textOf(item['id']) ?? '',
    queries: queries.length > 0 || query === undefined ? queries : [query],
    results: (opened === undefined ? sources : [opened, ...sources]).map((url) => ({ url, title: '' })),
  };
}

/** A `code_interpreter_call` item as text: the code, and its output if the item has one. */
export function ranCode(item: JsonObject): string {
  const code = fenced('python', textOf(item['code']) ?? '');
  const logs = listOf(item['outputs']).map((output) => textOf(objectOf(output)?.['logs']));
  return code + logs.map((text) => (text === undefined ? '' : fenced('', text))).join('');
}

/** An annotation as a citation; undefined: it has no citable source. */
export function citationOf(annotation: unknown): Citation | undefined {
  if (!isObject(annotation)) return undefined;
  const source = citedSource(annotation);
  if (source === undefined) return undefined;
  const { start_index: start, end_index: end } = annotation;
  return {
    ...source,
    ...(typeof start === 'number' && typeof end === 'number' ? { start, end } : {}),
  };
}

/** undefined: there are none. */
export function logprobsOf(value: unknown): readonly TokenLogprob[] | undefined {
  const logprobs = listOf(value).flatMap((entry) => logprobOf(entry) ?? []);
  return logprobs.length === 0 ? undefined : logprobs;
}

function logprobOf(value: unknown): TokenLogprob | undefined {
  if (!isObject(value)) return undefined;
  const { token, logprob, bytes, top_logprobs: top } = value;
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined;
  const others = listOf(top).flatMap((entry) => logprobOf(entry) ?? []);
  return {
    token,
    logprob,
    ...(Array.isArray(bytes) ? { bytes: bytes.filter((byte) => typeof byte === 'number') } : {}),
    ...(others.length === 0 ? {} : { top: others }),
  };
}
