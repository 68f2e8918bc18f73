/** Tools of servers that a prompt names, as "the weather in Oslo" does `sandbox__weather`: they are called with its words. Pure. */
import { isObject, objectOf } from '../json.ts';
import type { ModelRequest, ToolOffer } from './model-request.ts';
import { sampleOf } from './sample.ts';

export interface NamedTool {
  readonly offer: ToolOffer;
  /** JSON. */
  readonly input: string;
}

/**
 * A tool is called once in each user turn, and only if its name begins with that of a server, as in `sandbox__weather`, or is `web_search` and
 * the prompt says "search the web", or `file_search` and it says "search the files".
 */
export function namedTools({ tools, results, forced, userText, parallel }: ModelRequest): NamedTool[] {
  if (results.length > 0 || forced !== undefined || userText === '') return [];
  const named = tools.flatMap((offer): NamedTool[] => {
    if (offer.name === 'web_search' || offer.name === 'file_search') return searches(offer, userText);
    const at = offer.name.lastIndexOf('__');
    const word = offer.name.slice(at + 2).replaceAll('_', ' ');
    if (at <= 0 || offer.kind !== 'function' || word === '') return [];
    const found = userText.search(new RegExp(`\\b${word.replaceAll(/\W/g, ' ')}s?\\b`, 'i'));
    if (found < 0) return [];
    return [{ offer, input: JSON.stringify(argumentsOf(offer.schema, userText.slice(found + word.length))) }];
  });
  return parallel ? named : named.slice(0, 1);
}

const filesWords = /\bsearch the files(?: for| about)?\b[\s:]*([^.?!\n]{0,200})/i;

function searches(offer: ToolOffer, text: string): NamedTool[] {
  const place = offer.name === 'web_search' ? /\bsearch the web(?: for| about)?\b[\s:]*([^.?!\n]{0,200})/i : filesWords;
  const match = place.exec(text);
  return match === null || offer.kind !== 'function'
    ? []
    : [{ offer, input: JSON.stringify({ query: match[1]?.trim() || 'news' }) }];
}

/** Values out of the words behind the tool's name; else samples. */
function argumentsOf(schema: unknown, text: string): object {
  const sample = sampleOf(schema);
  const values = isObject(sample) ? sample : {};
  const properties = objectOf(objectOf(schema)['properties']);
  const found = Object.keys(values).map((name) => {
    const { type, enum: choices } = objectOf(properties[name]);
    if (choices !== undefined) return [name, values[name]];
    if (type === 'string') return [name, nameIn(text) ?? values[name]];
    return [name, type === 'integer' || type === 'number' ? (numberIn(text) ?? values[name]) : values[name]];
  });
  return Object.fromEntries(found);
}

/** The name behind the next preposition. */
function nameIn(text: string): string | undefined {
  return /\b(?:in|of|for|at)\s+(?:the\s+)?([A-Z][\w/+-]*(?:\s[A-Z][\w-]*)*)/.exec(text)?.[1];
}

function numberIn(text: string): number | undefined {
  const digits = /\b\d{1,9}\b/.exec(text)?.[0];
  return digits === undefined ? undefined : Number(digits);
}
